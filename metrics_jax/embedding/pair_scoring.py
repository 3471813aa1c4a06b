"""Scores of pairs of texts by one program per shape: tokens in, scores out, on all devices of this process.

Every device encodes the texts of its own pairs and compares them, so devices exchange nothing. Token vectors stay on
the devices.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh

from metrics_jax.embedding import devices, platforms
from metrics_jax.embedding.encoder import NOT_FINITE, Tokens, progress
from metrics_jax.embedding.forward import combined, layer_numbers, selected_states, shape_of_states
from metrics_jax.embedding.matching import Match
from metrics_jax.embedding.pair_batches import PairBatch, PairBatches, PairTokens, Places
from metrics_jax.embedding.token_batches import Side, Units


class Scoring(NamedTuple):
    """What a program does with tokens: layers of the encoder, their combination, the comparison, and the devices."""

    layers: tuple[int, ...]
    combine: str
    match: Match
    mesh: Mesh

    @classmethod
    def of(cls, metric: Any, mesh: Mesh) -> "Scoring":
        """That of a `ContextualMetric`. Raises ValueError if the encoder does not have a layer."""
        layers, combine = metric.selection
        count, _ = shape_of_states(metric.encoder.embed, height=mesh.size)
        return cls(layer_numbers(layers, count), combine, metric.match, mesh)


@functools.partial(jax.jit, static_argnames="scoring")
def match_pairs(embed: jax.tree_util.Partial, tokens: PairTokens, *, scoring: Scoring) -> tuple[Any, Array]:
    """What `scoring.match` returns for the P pairs of a batch, and bool[P]: whether their vectors are finite."""
    mask = jnp.arange(tokens.ids.shape[1])[None] < tokens.lengths[:, None]
    selected = selected_states(embed, tokens.ids, mask, layers=scoring.layers, normalize=True)
    # Otherwise XLA considers fusing them with the comparison, and takes three times as long to compile for GPUs.
    states = combined(jax.lax.optimization_barrier(selected), combine=scoring.combine)
    x, y = (_side(states, places, scoring.mesh) for places in (tokens.left, tokens.right))
    finite = jnp.isfinite(x.vectors.sum(axis=(1, 2)) + y.vectors.sum(axis=(1, 2)))
    return scoring.match(x, y, pairwise=False), finite


def _side(states: Array, places: Places, mesh: Mesh) -> Side:
    real = places.at >= 0
    # Padding repeats the first token: it is never read, but must be finite.
    at = jnp.maximum(jnp.where(real, places.at, places.at[:, :1]), 0)
    return Side(devices.local_rows(states, at, mesh), places.weights, real)


def score_pairs(metric: Any, tokens: Tokens, x: Units, y: Units, pairs: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Values float64[P, C] of P pairs of texts, int[P] of x and int[P] of y, by a `ContextualMetric`.

    A batch has about as many tokens per device as `platforms` says, and half as many after memory runs out. Raises
    ValueError if a vector is not finite, and MemoryError if there is not enough memory for a few pairs.
    """
    mesh = devices.local_mesh()
    scoring, embed = Scoring.of(metric, mesh), devices.put_weights(metric.encoder.embed, mesh)
    batches = PairBatches(tokens, x, y, pairs, metric.encoder.max_length)
    sizes = platforms.batch_tokens(devices.platform())

    def start(batch: PairBatch) -> tuple[Any, Array]:
        return match_pairs(embed, devices.put(batch.tokens, devices.by_rows(mesh)), scoring=scoring)

    values, done = np.zeros((len(pairs[0]), len(metric.columns))), np.zeros(len(pairs[0]), bool)
    with progress("scoring", len(done)) as advance:
        while not done.all():
            try:
                for batch, result in devices.overlapped(start, batches(np.flatnonzero(~done), sizes, mesh.size)):
                    values[batch.pairs], done[batch.pairs] = _values(metric, batch, *result), True
                    advance(len(batch.pairs))
            except Exception as error:
                if not devices.out_of_memory(error):
                    raise
                longest = int(batches.lengths[~done].max())
                if sizes[0] <= longest:
                    raise MemoryError(f"not enough memory for pairs of {longest} tokens on each device") from error
                sizes = (sizes[0] // 2,)
    return values


def _values(metric: Any, batch: PairBatch, matched: Any, finite: np.ndarray) -> np.ndarray:
    """Values float64[N, C] of the pairs of a batch from the result of its program."""
    if not finite[batch.rows].all():
        raise ValueError(NOT_FINITE)
    return metric.values(matched, batch.x, batch.y, pairwise=False)[batch.rows]
