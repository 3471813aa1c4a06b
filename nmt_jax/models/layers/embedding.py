"""Embeddings of tokens and of positions."""

import functools

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
from jax import Array

from nmt_jax import platforms
from nmt_jax.models.layers.dense import activation_type
from nmt_jax.models.layers.lookup import look_up


class Embedding(nn.Module):
    """A table of V vectors of width D, N(0, 1/D), that may also serve as the output layer (Press and Wolf, 2017).

    `table` is in the type of activations; the parameter is float32.
    """

    vocab_size: int
    d_model: int
    dtype: str = "float32"

    def setup(self) -> None:
        init = nn.initializers.normal(self.d_model**-0.5)
        table = self.param("table", init, (self.vocab_size, self.d_model))
        self.table = table.astype(activation_type(self.dtype))  # once, for the one sum of its gradients (`lookup`)

    def __call__(self, tokens: Array) -> Array:
        """Tokens int[...] -> [..., D] in the type of activations, times sqrt(D) (Vaswani et al., 2017, section 3.4)."""
        return self.rows(tokens) * self.d_model**0.5

    def rows(self, tokens: Array) -> Array:
        """Tokens int[...] -> [..., D] in the type of activations, as they are in the table."""
        return look_up(self.table, tokens) if platforms.current().row_gradient == "by_device" else self.table[tokens]


@functools.lru_cache
def sinusoids(length: int, d_model: int) -> np.ndarray:
    """Embeddings of the positions 0 .. length-1, float32[length, D]: first all sines, then all cosines.

    PE(p, i) = sin(p / 10000^(2 i / D)), and likewise with cos (Vaswani et al., 2017, section 3.5, which interleaves the
    two).
    """
    half = -(-d_model // 2)
    angles = np.arange(length)[:, None] / 10000.0 ** (np.arange(half) / half)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)[:, :d_model].astype(np.float32)


class Positions(nn.Module):
    """Embeddings of the positions 0 .. max_positions-1: `sinusoidal` or `learned` (Gehring et al., 2017)."""

    kind: str
    max_positions: int
    d_model: int

    def setup(self) -> None:
        if self.kind == "learned":
            init = nn.initializers.normal(1.0)
            self.table = self.param("table", init, (self.max_positions, self.d_model))

    def __call__(self, length: int) -> Array:
        """Return float[length, D]. Raises ValueError if `length` exceeds the learned table."""
        if self.kind == "sinusoidal":
            return jnp.asarray(sinusoids(length, self.d_model))
        if length > self.max_positions:
            raise ValueError(f"a sequence has {length} positions, but max_positions={self.max_positions}")
        return self.table[:length]
