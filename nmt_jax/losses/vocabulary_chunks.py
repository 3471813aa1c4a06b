"""Cross-entropy and its gradient by parts of the vocabulary, for accelerators.

A first pass over the parts finds the log-normalizer of every token, a second one computes the logits again and their
gradient. The logits of a part fit on the chip of a TPU, and the gradient of the output table is written once, part by
part; by chunks of tokens (`losses.cross_entropy`), all of it would be read and written for every chunk.

Products, and the sums of their gradients over the parts and devices, have the type of the model, as in the layers; what
is computed from the logits is in float32.

Shapes: P devices with N tokens each, C parts of W words; V words in all.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.scaled_attention import MASKED

WORDS = 4096  # in a part, at most
TILE = 16  # rows of a tile of 16-bit numbers on a TPU


class Part(NamedTuple):
    """The rows of the output table [W, D] for some words, and the number [] of the first word."""

    rows: Array
    first: Array


class Sums(NamedTuple):
    """Sums over the words so far, float32[P, N]: the largest logit, exp(logit - top), label's logit, all logits."""

    top: Array
    total: Array
    label_logit: Array
    logit_sum: Array


@functools.partial(jax.custom_vjp, nondiff_argnums=(4, 5))
def loss_sum(hidden: Array, table: Array, labels: Array, weights: Array, label_smoothing: float, dtype: str) -> Array:
    """Weighted sum of the label-smoothed cross-entropy of softmax(hidden table^T), in nats -> float32[].

    hidden float[P, N, D], table float[V, D], labels int[P, N], weights float[P, N].
    """
    return _loss_and_normalizer(hidden, table, labels, weights, label_smoothing, dtype)[0]


def _loss_and_normalizer(
    hidden: Array, table: Array, labels: Array, weights: Array, label_smoothing: float, dtype: str
) -> tuple[Array, Array]:
    """The sum float32[], and the log-normalizer of every token float32[P, N]."""

    def add(sums: Sums, part: Part) -> tuple[Sums, None]:
        words, logits = _logits(hidden, part, len(table))
        top = jnp.maximum(sums.top, jnp.max(logits, axis=-1))
        total = sums.total * jnp.exp(sums.top - top) + jnp.sum(jnp.exp(logits - top[..., None]), axis=-1)
        label_logit = sums.label_logit + jnp.sum(jnp.where(words == labels[..., None], logits, 0.0), axis=-1)
        logit_sum = sums.logit_sum + jnp.sum(jnp.where(words < len(table), logits, 0.0), axis=-1)
        return Sums(top, total, label_logit, logit_sum), None

    zeros = jnp.zeros(labels.shape)
    start = Sums(jnp.full(labels.shape, MASKED), zeros, zeros, zeros)
    sums, _ = jax.lax.scan(add, start, _parts(table, dtype))
    normalizer = sums.top + jnp.log(sums.total)
    losses = normalizer - (1 - label_smoothing) * sums.label_logit - label_smoothing * sums.logit_sum / len(table)
    return jnp.sum(weights * losses), normalizer


def _forward(
    hidden: Array, table: Array, labels: Array, weights: Array, label_smoothing: float, dtype: str
) -> tuple[Array, tuple[Array, Array, Array]]:
    total, normalizer = _loss_and_normalizer(hidden, table, labels, weights, label_smoothing, dtype)
    smooth = label_smoothing / len(table)

    def add(d_hidden: Array, part: Part) -> tuple[Array, Array]:
        words, logits = _logits(hidden, part, len(table))
        expected = jnp.where(words < len(table), smooth, 0.0)
        expected += jnp.where(words == labels[..., None], 1 - label_smoothing, 0.0)
        # d loss / d logits = softmax - q, where q is the smoothed label
        d_logits = (weights[..., None] * (jnp.exp(logits - normalizer[..., None]) - expected)).astype(dtype)
        d_rows = jnp.einsum("pnv,pnd->pvd", d_logits, hidden.astype(dtype))
        return d_hidden + jnp.einsum("pnv,vd->pnd", d_logits, part.rows).astype(hidden.dtype), d_rows

    d_hidden, d_rows = jax.lax.scan(add, jnp.zeros_like(hidden), _parts(table, dtype))
    # Summed over P after the loop, so that the devices communicate once.
    d_table = jax.lax.reduce_sum(d_rows, axes=(1,)).reshape(-1, table.shape[1])[: len(table)]
    return total, (d_hidden, d_table.astype(table.dtype), weights)


def _backward(
    label_smoothing: float, dtype: str, saved: tuple[Array, Array, Array], gradient: Array
) -> tuple[Array, Array, None, Array]:
    d_hidden, d_table, weights = saved
    d_hidden = (gradient * d_hidden).astype(d_hidden.dtype)
    return d_hidden, (gradient * d_table).astype(d_table.dtype), None, jnp.zeros_like(weights)


loss_sum.defvjp(_forward, _backward)


def _parts(table: Array, dtype: str) -> Part:
    """The table [V, D] as C parts of at most WORDS words, zeros at the end: rows [C, W, D] and first words int[C]."""
    count = -(-len(table) // WORDS)
    size = -(-len(table) // (count * TILE)) * TILE
    rows = jnp.pad(table.astype(dtype), ((0, count * size - len(table)), (0, 0)))
    return Part(rows.reshape(count, size, -1), size * jnp.arange(count))


def _logits(hidden: Array, part: Part, vocab_size: int) -> tuple[Array, Array]:
    """The words of a part int32[P, N, W], and their logits float32[P, N, W], MASKED beyond the vocabulary."""
    rows = part.rows
    logits = jnp.einsum("pnd,vd->pnv", hidden.astype(rows.dtype), rows).astype(jnp.float32)
    words = part.first + jax.lax.broadcasted_iota(jnp.int32, logits.shape, 2)
    return words, jnp.where(words < vocab_size, logits, MASKED)
