"""The contrastive loss of pairs: each side must find the other among all pairs of the batch."""

import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.scaled_attention import MASKED


def info_nce(first: Array, second: Array, scale: Array, same: Array, weights: Array) -> tuple[Array, Array]:
    """Return the (sum, weight) of the symmetric InfoNCE in nats, half of it for each direction.

    The logits are the products of vectors first float32[B, D] and second float32[B, D], times `scale`; pair i is the
    right one of row i and of column i (van den Oord et al., 2018, equation 4; Radford et al., 2021, figure 3). same
    bool[B, B]: pairs that are right for each other as well, such as equal texts, and so no negatives. weights
    float32[B]: 0 for rows of padding, which are no candidates either. The batch is the global one, B rows of all
    devices, or the micro-batch if `train.accumulate` is above 1.
    """
    logits = scale * jnp.matmul(first, second.T, precision=jax.lax.Precision.HIGHEST)
    own = jnp.eye(len(first), dtype=bool)
    real = weights > 0
    logits = jnp.where(own | (~same & real[:, None] & real[None, :]), logits, MASKED)
    right = jnp.diagonal(logits)
    losses = (jax.nn.logsumexp(logits, axis=0) + jax.nn.logsumexp(logits, axis=1)) / 2 - right
    return jnp.sum(losses * weights), jnp.sum(weights)


def equal_rows(ids: Array) -> Array:
    """Which rows of ids int[B, T] are equal, bool[B, B]."""
    return jnp.all(ids[:, None, :] == ids[None, :, :], axis=-1)
