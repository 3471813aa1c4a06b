"""Scaled dot-product attention (Vaswani et al., 2017, section 3.2.1)."""

import functools
import logging
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax import platforms
from nmt_jax.models.layers.dropout import dropout

logger = logging.getLogger(__name__)

MASKED = -1e9  # finite, so that the weights of a row without any position are uniform instead of NaN
FUSED_LENGTH = 16  # the fewest queries for which a fused kernel is used


def attend(
    query: Array,
    keys: Array,
    values: Array,
    mask: Array,
    rate: float = 0.0,
    key: Array | None = None,
    bias: Array | None = None,
    scale: float | None = None,
) -> tuple[Array, Array]:
    """softmax(Q K^T / sqrt(d_k) + bias) V (Vaswani et al., 2017, eq. 1, without a bias).

    query float[B, H, T, Dk], keys float[B, H, S, Dk], values float[B, H, S, Dv], mask bool broadcast to [B, H, T, S]
    -> context [B, H, T, Dv] of the type of the query, weights float32[B, H, T, S]; masked positions have weight exactly
    0, except in a row without any other position, whose weights are uniform. With a random key, dropout of this rate is
    applied to the weights that average the values, not to those returned. bias: float[1 or B, H, T, S], added to the
    scores. scale: of the scores, instead of 1 / sqrt(d_k).
    """
    plain = key is None and bias is None and scale is None
    if plain and (context := fused_context(query, keys, values, mask)) is not None:
        return context, _weights(query, keys, mask).astype(jnp.float32)  # jit drops weights that are not used
    average: Callable[..., tuple[Array, Array]] = functools.partial(_average, rate=rate, scale=scale)
    if platforms.current().attention_weights == "recomputed":
        average = jax.checkpoint(average)  # the backward pass computes the weights again instead of reading them
    return average(query, keys, values, mask, key, bias)


def _average(
    query: Array,
    keys: Array,
    values: Array,
    mask: Array,
    key: Array | None,
    bias: Array | None,
    rate: float,
    scale: float | None,
) -> tuple[Array, Array]:
    weights = _weights(query, keys, mask, bias, scale)
    kept = weights if key is None else dropout(weights, rate, key)
    return jnp.einsum("bhts,bhsd->bhtd", kept, values), weights.astype(jnp.float32)


def _weights(query: Array, keys: Array, mask: Array, bias: Array | None = None, scale: float | None = None) -> Array:
    """The weights of `attend`, [B, H, T, S] of the type of the query."""
    scores = jnp.einsum("bhtd,bhsd->bhts", query, keys) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias.astype(scores.dtype)
    return softmax(jnp.where(jnp.broadcast_to(mask, scores.shape), scores, MASKED))


def fused_context(query: Array, keys: Array, values: Array, mask: Array) -> Array | None:
    """The context of `attend` by a kernel that keeps no weights in memory (Dao et al., 2022); None where there is none.

    cuDNN's kernels compute in 16 bits, for even lengths, and for heads whose width is a multiple of 8.
    """
    length, source_length, d_k = query.shape[2], keys.shape[2], query.shape[3]
    if platforms.current().attention != "cudnn" or query.dtype == jnp.float32 or length < FUSED_LENGTH:
        return None
    if length % 2 or source_length % 2 or d_k % 8 or d_k != values.shape[3]:
        return None
    mask = jnp.broadcast_to(mask, (len(query), 1, length, source_length))
    try:
        query, keys, values = (x.swapaxes(1, 2) for x in (query, keys, values))
        return jax.nn.dot_product_attention(query, keys, values, mask=mask, implementation="cudnn").swapaxes(1, 2)
    except (NotImplementedError, RuntimeError) as error:  # no cuDNN, or not for this GPU
        logger.info("attention without cuDNN: %s", error)
        return None


def softmax(scores: Array) -> Array:
    """Softmax over the last axis of [..., S], computed in float32; the result has the type of the scores."""
    return jax.nn.softmax(scores) if scores.dtype == jnp.float32 else _softmax(scores)


@jax.custom_vjp
def _softmax(scores: Array) -> Array:
    return jax.nn.softmax(scores.astype(jnp.float32)).astype(scores.dtype)


def _softmax_forward(scores: Array) -> tuple[Array, Array]:
    weights = _softmax(scores)
    return weights, weights


def _softmax_backward(weights: Array, gradient: Array) -> tuple[Array]:
    # The derived rule would keep the weights in float32 for the backward pass.
    p, g = weights.astype(jnp.float32), gradient.astype(jnp.float32)
    return ((p * (g - jnp.sum(p * g, axis=-1, keepdims=True))).astype(weights.dtype),)


_softmax.defvjp(_softmax_forward, _softmax_backward)
