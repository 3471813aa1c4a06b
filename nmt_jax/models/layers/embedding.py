"""Token embeddings and position embeddings."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

Array = jax.Array


class Embedding(nn.Module):
    """A table of V vectors of width D, N(0, 1/D), that may also serve as the output layer (Press and Wolf, 2017)."""

    vocab_size: int
    d_model: int

    def setup(self) -> None:
        """Create the table."""
        init = nn.initializers.normal(self.d_model**-0.5)
        self.table = self.param("table", init, (self.vocab_size, self.d_model))

    def __call__(self, tokens: Array) -> Array:
        """Tokens int[...] -> float[..., D], multiplied by sqrt(D) (Vaswani et al., 2017, section 3.4)."""
        return self.table[tokens] * self.d_model**0.5


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
        """Create the table of learned embeddings."""
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
