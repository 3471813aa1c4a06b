"""Pooling: the states of a text become one vector."""

import jax
import jax.numpy as jnp
from jax import Array

POOLING = ("mean", "first")


def pool(states: Array, mask: Array, pooling: str) -> Array:
    """States float[B, S, D], mask bool[B, S] -> their mean, or the first, float[B, D]; the mean of no states is 0."""
    if pooling == "first":
        return states[:, 0]
    total = jnp.einsum("bsd,bs->bd", states, mask.astype(jnp.float32))
    return total / jnp.maximum(jnp.sum(mask, axis=1), 1)[:, None]


def unit_vectors(vectors: Array) -> Array:
    """Vectors float[..., D] -> vectors of length 1 with the same directions, float[..., D]; 0 stays 0."""
    # The zero vector of an empty text has no direction: its cosine is 0, and so is the gradient.
    squares = jnp.sum(jnp.square(vectors), axis=-1, keepdims=True)
    return vectors * jax.lax.rsqrt(jnp.maximum(squares, 1e-12))
