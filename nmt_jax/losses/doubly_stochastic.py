"""The doubly stochastic regularization of attention: every place of the source should be attended to."""

import jax
import jax.numpy as jnp


def doubly_stochastic(attention: jax.Array, places: jax.Array, weights: jax.Array) -> jax.Array:
    """Return sum_i (1 - sum_t a_ti)^2 over the places i of all sources and rows (Xu et al., 2015, equation 14).

    attention a float[B, N, T, S], places bool[B, N, S]: those that are not padding, weights float[B, T]: 0 for padding
    of the target. A row whose target is all padding counts 0.
    """
    total = jnp.einsum("bnts,bt->bns", attention, weights)
    counted = places & (weights > 0).any(axis=1)[:, None, None]
    return jnp.sum(jnp.where(counted, jnp.square(1.0 - total), 0.0))
