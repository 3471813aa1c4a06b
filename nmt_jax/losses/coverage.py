"""The coverage loss: a penalty on attention to source positions that were attended to before (See et al., 2017)."""

import jax
import jax.numpy as jnp


def coverage_loss(attended: jax.Array, weights: jax.Array) -> jax.Array:
    """Return the sum over target tokens t of sum_j min(a_tj, c_tj), where c_t = sum of a_t' over t' < t (eq. 10, 12).

    attended a float[B, T, S]: attention weights, weights float[B, T] of the tokens. Each token adds between 0 and the
    sum of its attention, which is 1 at most.
    """
    before = jnp.cumsum(jnp.pad(attended[:, :-1], ((0, 0), (1, 0), (0, 0))), axis=1)
    return jnp.sum(jnp.minimum(attended, before).sum(axis=-1) * weights)
