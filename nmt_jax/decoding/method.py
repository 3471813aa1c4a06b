"""The interface of decoding methods: beam search, and sampling with and without replacement."""

from collections.abc import Callable
from typing import Any, Protocol

import jax

from nmt_jax.decoding.beam_search import SearchRequest
from nmt_jax.decoding.next_logits import Step

Array = jax.Array


class DecodingMethod(Protocol):
    """A hashable way to find hypotheses with a step closure and a cache; each one has its own compiled program."""

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
        """Whether `run` needs the arguments `attention` and `source_mask`."""

    def check_phrases(self) -> None:
        """Raise ValueError if the method cannot make a hypothesis contain given phrases."""

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
        """Decode B sentences: tokens int32[B, n, T] with 0 after `eos`, scores float32[B, n].

        step, cache: of B*K hypotheses. seeds uint32[B]: a seed per sentence. attention: takes a cache to the weights
        float[B*K, S] of the last step. source_mask bool[B, S]. halve: see `beam_search`.
        """
