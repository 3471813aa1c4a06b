"""IBM model 1 (Brown et al., 1993, section 4.1): all source positions, and NULL, are equally probable.

All models have the interface that is described here.
"""

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array


class Lexical(NamedTuple):
    """Probabilities of the words of a batch, given the translation table.

    words: float32[B, T, S], p(f_j | e_i). null: float32[B, T], p(f_j | NULL). Both are 0 at padding, else positive.
    source: bool[B, S], target: bool[B, T]: False at padding.
    """

    words: Array
    null: Array
    source: Array
    target: Array


class Expectations(NamedTuple):
    """What the E-step computes for a batch.

    links: float32[B, T, S], the posterior probability that source word i generated target word j. null: float32[B, T],
    that NULL did. log_likelihood: float32[], of all sentences. statistics: sums over the batch, for `update`.
    """

    links: Array
    null: Array
    log_likelihood: Array
    statistics: Any


@dataclasses.dataclass(frozen=True)
class IBM1:
    """The model has no parameters besides the translation table."""

    def initial(self, longest: int) -> Any:
        """Returns the parameters before training; longest: padded length of the longest sentence."""
        return ()

    def expectations(self, parameters: Any, lexical: Lexical) -> Expectations:
        """Returns the posteriors of a batch (Brown et al., 1993, equation 17)."""
        prior = 1.0 / (lexical.source.sum(-1, keepdims=True) + 1.0)  # [B, 1]
        return independent(lexical.words * prior[..., None], lexical.null * prior)

    def update(self, parameters: Any, statistics: Any) -> Any:
        """Returns the parameters for the statistics of all batches."""
        return ()


def independent(words: Array, null: Array) -> Expectations:
    """Returns the posteriors if target words are generated independently of each other.

    words: float32[B, T, S], null: float32[B, T]: prior of the position times probability of the word, 0 at padding.
    """
    total = words.sum(-1) + null  # [B, T]
    total = jnp.where(total > 0, total, 1.0)  # padding
    return Expectations(words / total[..., None], null / total, jnp.log(total).sum(), ())
