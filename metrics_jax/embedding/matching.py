"""Comparison of the tokens of two texts in JAX: best matches, distances, and transport plans of finite temperature.

Functions are written for one pair of texts and mapped over B pairs, or over all pairs of H and R texts; x and y are
of type `token_batches.Side`. Padding is never matched and never changes a number.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from metrics_jax.embedding.sinkhorn import sinkhorn
from metrics_jax.embedding.token_batches import Side

_NORM_EPSILON, _SHARE_EPSILON = 1e-6, 1e-5  # as in MoverScore's program


@dataclasses.dataclass(frozen=True)
class Match:
    """A function of this module with its options. Equal ones have the same hash, so programs with them compile once."""

    function: Callable[..., Any]
    options: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, function: Callable[..., Any], **options: Any) -> "Match":
        """The function with these options."""
        return cls(function, tuple(sorted(options.items())))

    def __call__(self, x: Side, y: Side, *, pairwise: bool) -> Any:
        return self.function(x, y, **dict(self.options), pairwise=pairwise)


@functools.partial(jax.jit, static_argnames=("n_gram", "nonnegative", "pairwise"))
def greedy(x: Side, y: Side, *, n_gram: int, nonnegative: bool, pairwise: bool) -> tuple[Array, Array]:
    """Precision and recall, float32[...]: the weighted mean over the tokens of x, or of y, of the best similarity.

    Vectors must have length 1. n_gram: compare runs of this many tokens, or of as many as the shorter text has. The
    similarity of two runs is the mean similarity of their tokens, weighted by the tokens of the side that is averaged
    over; their sum is the weight of the run. nonnegative: a best similarity below 0 counts as 0. If a side has no
    weight at all, both results are 0.
    """

    def one(x: Side, y: Side) -> tuple[Array, Array]:
        similarities = jnp.matmul(x.vectors, y.vectors.T, precision="highest")
        length, others = x.real.sum(), y.real.sum()
        precision = _mean_best(similarities, x.weights, length, others, n_gram, nonnegative)
        recall = _mean_best(similarities.T, y.weights, others, length, n_gram, nonnegative)
        matchable = (x.weights.sum() > 0) & (y.weights.sum() > 0)
        return jnp.where(matchable, precision, 0), jnp.where(matchable, recall, 0)

    return _mapped(one, pairwise)(x, y)


def _mean_best(
    similarities: Array, weights: Array, length: Array, others: Array, n_gram: int, nonnegative: bool
) -> Array:
    """The weighted mean over rows, float32[], of similarities [S, T] with weights [S]; length, others: real tokens."""
    n = jnp.minimum(n_gram, jnp.minimum(length, others))
    weighted, totals = jnp.zeros_like(similarities), jnp.zeros_like(weights)
    for k in range(n_gram):
        part = jnp.where(k < n, _shifted(weights, k), 0)
        totals += part
        weighted += part[:, None] * _shifted(_shifted(similarities, k).T, k).T
    runs, other_runs = jnp.arange(len(weights)) <= length - n, jnp.arange(similarities.shape[1]) <= others - n
    best = jnp.where(other_runs[None], _divided(weighted, totals[:, None]), -jnp.inf).max(axis=-1)
    totals = jnp.where(runs, totals, 0)
    if nonnegative:
        best = jnp.maximum(best, 0)
    return _divided((totals * jnp.where(totals > 0, best, 0)).sum(), totals.sum())


@functools.partial(jax.jit, static_argnames=("n_gram", "pairwise"))
def squared_distances(x: Side, y: Side, *, n_gram: int, pairwise: bool) -> Array:
    """Squared distances float32[..., S, T] between the runs of `n_gram` tokens that begin at each token of x and y.

    The vector of a run is the weighted mean of its token vectors, scaled to length 1.
    """

    def one(x: Side, y: Side) -> Array:
        runs, others = _runs(x, n_gram), _runs(y, n_gram)
        products = jnp.matmul(runs, others.T, precision="highest")
        squares = (runs**2).sum(axis=-1)[:, None] + (others**2).sum(axis=-1)[None]
        return jnp.maximum(squares - 2 * products, 0)

    return _mapped(one, pairwise)(x, y)


def _runs(side: Side, n_gram: int) -> Array:
    """Vectors of the runs that begin at each token, float32[S, E]; a run is shorter at the end of the text."""
    total, weighted = jnp.zeros_like(side.weights), jnp.zeros_like(side.vectors)
    for k in range(n_gram):
        total += _shifted(side.weights, k)
        weighted += _shifted(side.weights[:, None] * side.vectors, k)
    vectors = weighted / (total + _SHARE_EPSILON)[:, None]
    return vectors / (jnp.linalg.norm(vectors, axis=-1, keepdims=True) + _NORM_EPSILON)


@functools.partial(jax.jit, static_argnames=("pairwise",))
def distances(x: Side, y: Side, *, pairwise: bool) -> Array:
    """Distances float32[..., S, T] between the tokens of x and y; equal vectors have distance exactly 0."""
    return _mapped(lambda x, y: jnp.sqrt(((x.vectors[:, None] - y.vectors[None]) ** 2).sum(axis=-1)), pairwise)(x, y)


def transport_cost(x: Side, y: Side, *, costs: Match, n_gram: int, pairwise: bool) -> tuple[Array, Array]:
    """The cost of moving the runs of x to those of y by `sinkhorn`, float32[...], and the bound on its error.

    costs: the distances between runs. The cost is 0 if a side has no weight.
    """
    found = sinkhorn(*_weights_of_both(x, y, n_gram, pairwise), costs(x, y, pairwise=pairwise))
    return found.value, found.gap


@functools.partial(jax.jit, static_argnames=("n_gram", "pairwise"))
def _weights_of_both(x: Side, y: Side, n_gram: int, pairwise: bool) -> tuple[Array, Array]:
    return both_weights(x, y, n_gram, pairwise)


def both_weights(x: Side, y: Side, n_gram: int, pairwise: bool) -> tuple[Any, Any]:
    """Weights of the runs of both sides, [B, S] and [B, T]; with `pairwise`, [H, R, S] and [H, R, T].

    Arrays of NumPy or JAX, as those of the sides.
    """
    a, b = (_run_weights(side.weights, side.real, n_gram) for side in (x, y))
    if pairwise:
        of, shape = _library(a), (len(a), len(b))
        a, b = of.broadcast_to(a[:, None], (*shape, a.shape[-1])), of.broadcast_to(b[None], (*shape, b.shape[-1]))
    return a, b


def _run_weights(weights: Any, real: Any, n_gram: int) -> Any:
    """Weights of the runs that begin at each token, [B, S], 0 if none does; a short text is one run."""
    of = _library(weights)
    padded = of.pad(weights, ((0, 0), (0, n_gram - 1)))
    sums = sum(padded[:, k : k + weights.shape[1]] for k in range(n_gram))
    num_runs = of.maximum(real.sum(axis=1, keepdims=True) - n_gram + 1, 1)
    return of.where(of.arange(weights.shape[1])[None] < num_runs, sums, 0.0)


def _library(array: Any) -> Any:
    """The library that an array is of."""
    return jnp if isinstance(array, Array) else np


def tempered_similarities(x: Side, y: Side, *, pairwise: bool, **options: Any) -> tuple[tuple[Array, Array], ...]:
    """`tempered_similarity` of x with x, of y with y, and of x with y."""
    pairs = ((x, x, False), (y, y, False), (x, y, pairwise))
    return tuple(tempered_similarity(one, other, **options, pairwise=every) for one, other, every in pairs)


@functools.partial(jax.jit, static_argnames=("relaxed", "pairwise"))
def tempered_similarity(
    x: Side, y: Side, *, temperature: float, relaxed: bool, num_iters: int, pairwise: bool
) -> tuple[Array, Array]:
    """Two mean cosines float32[...]: under the plan normalized last over x, and under the one normalized last over y.

    Vectors must have length 1; the result is 0 if a side has no weight. Options as for `TemperedWMD`.
    """
    if pairwise:
        x, y = Side(*(array[:, None] for array in x)), Side(*(array[None] for array in y))
    cosines = jnp.matmul(x.vectors, jnp.swapaxes(y.vectors, -1, -2), precision="highest")
    scale = functools.partial(_mean_cosine, temperature=temperature, relaxed=relaxed, num_iters=num_iters)
    matchable = (x.weights.sum(axis=-1) > 0) & (y.weights.sum(axis=-1) > 0)
    over_x = scale(cosines, x.weights, y.weights)
    over_y = scale(jnp.swapaxes(cosines, -1, -2), y.weights, x.weights)
    return jnp.where(matchable, over_x, 0), jnp.where(matchable, over_y, 0)


def _mean_cosine(cosines: Array, a: Array, b: Array, temperature: float, relaxed: bool, num_iters: int) -> Array:
    """The mean of cosines [..., S, T] under the plan whose row sums are exact; a [..., S], b [..., T]: weights."""
    a, b = (weights / weights.sum(axis=-1, keepdims=True) for weights in (a, b))
    log_a = jnp.broadcast_to(jnp.log(a)[..., :, None], (*cosines.shape[:-1], 1))
    log_b = jnp.broadcast_to(jnp.log(b)[..., None, :], (*cosines.shape[:-2], 1, cosines.shape[-1]))
    logits = cosines / temperature
    f, g = jnp.where(log_a > -jnp.inf, 0, log_a), jnp.where(log_b > -jnp.inf, 0, log_b)

    def iterate(_: int, potentials: tuple[Array, Array]) -> tuple[Array, Array]:
        f = potentials[0]
        g = log_b - jax.nn.logsumexp(f + logits, axis=-2, keepdims=True)
        return log_a - jax.nn.logsumexp(g + logits, axis=-1, keepdims=True), g

    if not relaxed:
        f, g = jax.lax.fori_loop(0, num_iters, iterate, (f, g))
    return (a * (jax.nn.softmax(g + logits, axis=-1) * cosines).sum(axis=-1)).sum(axis=-1)


def _mapped(one: Callable[[Side, Side], Any], pairwise: bool) -> Callable[[Side, Side], Any]:
    """Maps a function of one pair of texts over B pairs, [B, ...], or over all pairs of H and R texts, [H, R, ...]."""
    return jax.vmap(jax.vmap(one, (None, 0)), (0, None)) if pairwise else jax.vmap(one)


def _shifted(values: Array, by: int) -> Array:
    """Row i of the result is row i + by; the last rows are zeros."""
    return jnp.concatenate([values[by:], jnp.zeros_like(values[:by])]) if by else values


def _divided(numerator: Array, denominator: Array) -> Array:
    """The quotient, 0 where the denominator is not positive."""
    return jnp.where(denominator > 0, numerator / jnp.where(denominator > 0, denominator, 1), 0)
