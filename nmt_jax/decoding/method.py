"""Decoding methods: the interface of beam search and sampling, and beam search."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from jax import Array

from nmt_jax.decoding.beam_search import SearchRequest, beam_search
from nmt_jax.decoding.next_logits import Step
from nmt_jax.decoding.search_options import SearchOptions


class StepModel(NamedTuple):
    """A model or an ensemble as decoding sees it, for B*K hypotheses."""

    step: Step
    cache: Any
    max_length: int  # T, EOS included
    bos: int
    eos: int
    attention: Callable[[Any], Array] | None = None  # takes a cache to the weights float[B*K, S] of the last step
    source_mask: Array | None = None  # bool[B, S]: the source positions that count for coverage
    halve: bool = False  # see `beam_search`


class DecodingMethod(Protocol):
    """A hashable way to find hypotheses; each one has its own compiled program."""

    @property
    def width(self) -> int:
        """Number of hypotheses of a sentence that grow at the same time, K."""

    @property
    def num_results(self) -> int:
        """Number of hypotheses returned for a sentence, n."""

    @property
    def min_limit(self) -> int:
        """The smallest length limit of a hypothesis."""

    @property
    def needs_attention(self) -> bool:
        """Whether the method needs `attention` and `source_mask` of a model."""

    def check_phrases(self) -> None:
        """Raise ValueError if the method cannot make a hypothesis contain given phrases."""

    def run(self, model: StepModel, request: SearchRequest, seeds: Array) -> tuple[Array, Array]:
        """Decode B sentences: tokens int32[B, n, T] with 0 after EOS, scores float32[B, n].

        seeds uint32[B]: a random seed per sentence.
        """


@dataclasses.dataclass(frozen=True)
class Search(SearchOptions):
    """A beam search (a `DecodingMethod`); for its options see `SearchOptions`."""

    @property
    def width(self) -> int:
        return self.beam_size

    @property
    def num_results(self) -> int:
        return self.n_best

    @property
    def min_limit(self) -> int:
        return self.min_length + 1

    @property
    def needs_attention(self) -> bool:
        return self.coverage_penalty > 0

    def check_phrases(self) -> None:
        """A beam search supports constraints."""

    def run(self, model: StepModel, request: SearchRequest, seeds: Array) -> tuple[Array, Array]:
        """Search with `beam_search`; there are no random draws, so `seeds` is not used."""
        step, cache, *_ = model
        options = {name: value for name, value in model._asdict().items() if name not in ("step", "cache")}
        return beam_search(step, cache, request, search=self, **options)
