"""Shorter sources: neighbouring rows are joined, or convolved with a stride of two.

Each halving leaves half of the rows, rounded up; a row is real if the first of its two rows is, so that masks are
shortened by `mask[:, ::2]`. Padding counts as zeros, whatever it contains.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.dense import Dense


def join_neighbours(x: Array, mask: Array) -> Array:
    """Rows 2i and 2i + 1 of x float[B, S, D] in one row (Chan et al., 2016, eq. 5) -> float[B, ceil(S / 2), 2 D].

    mask: bool[B, S].
    """
    rows = jnp.pad(jnp.where(mask[..., None], x, 0), ((0, 0), (0, x.shape[1] % 2), (0, 0)))
    return rows.reshape(len(rows), -1, 2 * x.shape[2])


class StridedConvolutions(nn.Module):
    """Convolutions over rows 2i - 1, 2i and 2i + 1, each followed by a ReLU."""

    num_layers: int
    width: int
    dtype: str = "float32"

    def setup(self) -> None:
        self.layers = [Dense(self.width, dtype=self.dtype) for _ in range(self.num_layers)]

    def __call__(self, x: Array, mask: Array) -> Array:
        """x float[B, S, F], mask bool[B, S] -> float[B, ceil(S / 2^num_layers), width]."""
        for layer in self.layers:
            half = -(-x.shape[1] // 2)
            rows = jnp.pad(jnp.where(mask[..., None], x, 0), ((0, 0), (1, x.shape[1] % 2), (0, 0)))
            taps = [rows[:, first : first + 2 * half - 1 : 2] for first in range(3)]
            x, mask = jax.nn.relu(layer(jnp.concatenate(taps, axis=-1))), mask[:, ::2]
        return x
