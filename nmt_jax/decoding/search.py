"""Beam search as a decoding method."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax

from nmt_jax.decoding.beam_search import SearchRequest, beam_search
from nmt_jax.decoding.next_logits import Step
from nmt_jax.decoding.search_options import SearchOptions

Array = jax.Array


@dataclasses.dataclass(frozen=True)
class Search(SearchOptions):
    """A beam search (a `DecodingMethod`); for its options see `SearchOptions`."""

    @property
    def width(self) -> int:
        """Number of hypotheses of a sentence that grow at the same time."""
        return self.beam_size

    @property
    def num_results(self) -> int:
        """Number of hypotheses returned for a sentence."""
        return self.n_best

    @property
    def min_limit(self) -> int:
        """The smallest length limit that `min_length` allows, EOS included."""
        return self.min_length + 1

    @property
    def needs_attention(self) -> bool:
        """Whether the search needs the attention weights of each step."""
        return self.coverage_penalty > 0

    def check_phrases(self) -> None:
        """A beam search supports constraints."""

    def run(
        self,
        step: Step,
        cache: Any,
        request: SearchRequest,
        seeds: Array,
        *,
        max_length: int,
        bos: int,
        eos: int,
        attention: Callable[[Any], Array] | None = None,
        source_mask: Array | None = None,
        halve: bool = False,
    ) -> tuple[Array, Array]:
        """Search with `beam_search`; there are no random draws, so `seeds` is not used."""
        return beam_search(
            step,
            cache,
            request,
            search=self,
            max_length=max_length,
            bos=bos,
            eos=eos,
            attention=attention,
            source_mask=source_mask,
            halve=halve,
        )
