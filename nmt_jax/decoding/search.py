"""Beam search as a decoding method."""

import dataclasses

import jax

from nmt_jax.decoding.beam_search import SearchRequest, beam_search
from nmt_jax.decoding.method import StepModel
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

    def run(self, model: StepModel, request: SearchRequest, seeds: Array) -> tuple[Array, Array]:
        """Search with `beam_search`; there are no random draws, so `seeds` is not used."""
        step, cache, *_ = model
        options = {name: value for name, value in model._asdict().items() if name not in ("step", "cache")}
        return beam_search(step, cache, request, search=self, **options)
