"""Translation probabilities p(f | e) for the pairs of words that occur together, and for the NULL word."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import digamma

from nmt_jax.alignment.bitext import SPECIAL, Bitext


class Table(NamedTuple):
    """A value for each pair of words: a probability or an expected count.

    pairs: float32[P], pair 0 is padding. null: float32[V], of each target word and the NULL word, word 0 is padding.
    V is the size of the larger vocabulary, so that the tables of both directions have equal shapes and share programs.
    """

    pairs: Array
    null: Array


class Rows(NamedTuple):
    """The pairs of each source word e: `of_pair` int32[P] is e, `sizes` float32[V] the number of its pairs.

    words: float32[], the number of target words, which all occur with NULL.
    """

    of_pair: Array
    sizes: Array
    words: Array

    @classmethod
    def of(cls, bitext: Bitext, reverse: bool) -> "Rows":
        """Returns the rows p(target | source), or with `reverse` those of p(source | target)."""
        source = jnp.asarray(bitext.pair_words[1 if reverse else 0])
        return cls(source, jnp.zeros(_size(bitext)).at[source].add(1.0), jnp.float32(_targets(bitext, reverse)))


def uniform(bitext: Bitext, reverse: bool) -> Table:
    """Returns the same probability for each pair, before training."""
    value = 1.0 / _targets(bitext, reverse)
    pairs, null = (jnp.full(size, value, jnp.float32).at[0].set(0.0) for size in (len(bitext.keys), _size(bitext)))
    return Table(pairs, null)


def _size(bitext: Bitext) -> int:
    return max(len(bitext.source_words), len(bitext.target_words))


def _targets(bitext: Bitext, reverse: bool) -> int:
    """Returns the number of target words, or with `reverse` that of source words."""
    return len(bitext.source_words if reverse else bitext.target_words) - SPECIAL


@functools.partial(jax.jit, static_argnames="alpha")
def maximized(counts: Table, rows: Rows, alpha: float) -> Table:
    """Returns the probabilities for expected counts.

    alpha: 0 for maximum likelihood, c(e, f) / c(e); otherwise the parameter of a symmetric Dirichlet prior of each row,
    for variational Bayes: exp(digamma(c(e, f) + alpha)) / exp(digamma(c(e) + n alpha)), where n is the number of words
    that occur with e (Riley and Gildea, 2012; Dyer et al., 2013).
    """
    totals = jnp.zeros_like(rows.sizes).at[rows.of_pair].add(counts.pairs)
    pairs = _estimate(counts.pairs, totals[rows.of_pair], rows.sizes[rows.of_pair], alpha)
    null = _estimate(counts.null, jnp.sum(counts.null), rows.words, alpha)
    return Table(pairs.at[0].set(0.0), null.at[0].set(0.0))


def _estimate(counts: Array, totals: Array, sizes: Array, alpha: float) -> Array:
    if not alpha:
        return counts / jnp.maximum(totals, 1e-30)
    return jnp.exp(digamma(counts + alpha) - digamma(totals + sizes * alpha))
