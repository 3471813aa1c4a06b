"""Rows that hold several items: positions that restart, and attention within an item (Krell et al., 2021).

`packing` int[B, T] is the number of the item that each token belongs to, from 1, in order; 0 is padding.
"""

import jax
import jax.numpy as jnp
from jax import Array


def restarting_positions(packing: Array) -> Array:
    """The position of each token in its own item, from 0: int[B, T] -> int[B, T]."""
    index = jnp.broadcast_to(jnp.arange(packing.shape[1]), packing.shape)
    begins = jnp.pad(packing[:, 1:] != packing[:, :-1], ((0, 0), (1, 0)), constant_values=True)
    return index - jax.lax.cummax(jnp.where(begins, index, 0), axis=1)


def embed_positions(table: Array, packing: Array | None) -> Array:
    """Embeddings of the positions 0 .. T-1, float[T, D] -> those of each row, float[1, T, D] or float[B, T, D]."""
    return table[None] if packing is None else table[restarting_positions(packing)]


def same_item(queries: Array, keys: Array) -> Array:
    """The keys that each query attends to: packing int[B, T] and int[B, S] -> bool[B, 1, T, S]."""
    return queries[:, None, :, None] == keys[:, None, None, :]
