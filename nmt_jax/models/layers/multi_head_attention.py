"""Multi-head attention (Vaswani et al., 2017, section 3.2.2), with a cache for decoding."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax import platforms
from nmt_jax.models.layers.dense import Dense, activation_type
from nmt_jax.models.layers.dropout import Dropout
from nmt_jax.models.layers.scaled_attention import attend

# The order in which the axes of keys [B, H, T * K, Dk] are cached, by `Platform.cached_keys`; its own inverse. A few
# queries multiply columns twice as fast on a CPU.
KEY_AXES = {"rows": (0, 1, 2, 3), "columns": (0, 1, 3, 2)}


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1 .. head_H) W_O (Vaswani et al., 2017, section 3.2.2).

    scaled: divide scores by sqrt(d_k); T5 does not.
    """

    d_model: int
    num_heads: int
    d_k: int
    d_v: int
    dropout: float
    dtype: str
    use_bias: bool = False  # as in the paper
    scaled: bool = True

    def setup(self) -> None:
        self.query = Dense(self.num_heads * self.d_k, self.use_bias, self.dtype)
        self.key = Dense(self.num_heads * self.d_k, self.use_bias, self.dtype)
        self.value = Dense(self.num_heads * self.d_v, self.use_bias, self.dtype)
        self.output = Dense(self.d_model, self.use_bias, self.dtype)
        self.weight_dropout = Dropout(self.dropout)

    def heads(self, x: Array) -> Array:
        """x float[B, T, H * Dk] -> float[B, H, T, Dk]."""
        return x.reshape(*x.shape[:2], self.num_heads, -1).swapaxes(1, 2)

    def memory(self, x: Array) -> tuple[Array, Array]:
        """x float[B, S, D] -> keys float[B, H, S, Dk], values float[B, H, S, Dv]."""
        return self.heads(self.key(x)), self.heads(self.value(x))

    def __call__(
        self, x: Array, memory: tuple[Array, Array], mask: Array, train: bool, bias: Array | None = None
    ) -> tuple[Array, Array]:
        """x float[B, T, D], mask bool[B or 1, 1, T or 1, S] -> float[B, T, D], weights float32[B, H, T, S].

        bias: added to the scores, float[1, H, T, S].
        """
        query, key = self.heads(self.query(x)), self.weight_dropout.key(train)
        scale = None if self.scaled else 1.0
        context, weights = attend(query, *memory, mask, self.dropout, key, bias, scale)
        return self.output(context.swapaxes(1, 2).reshape(*x.shape[:2], -1)), weights

    def init_memory(self, batch_size: int, beam_size: int, max_length: int) -> tuple[Array, Array]:
        """Return an empty cache of keys float[B, H, T * K, Dk], axes ordered by KEY_AXES, and values [B, H, T * K, Dv].

        Row t * K + k holds what beam slot k wrote at step t.
        """
        rows = max_length * beam_size
        shape = (batch_size, self.num_heads, rows, self.d_k)
        dtype = activation_type(self.dtype)
        keys = jnp.zeros(tuple(shape[axis] for axis in KEY_AXES[platforms.current().cached_keys]), dtype)
        return keys, jnp.zeros((batch_size, self.num_heads, rows, self.d_v), dtype)

    def extend(
        self, x: Array, memory: tuple[Array, Array], position: Array, mask: Array
    ) -> tuple[Array, tuple[Array, Array]]:
        """Write the keys and values of x float[B, K, D] at step `position`, and attend to all steps written so far.

        mask bool[B, 1, K, T * K]: the rows that belong to the history of a beam. Returns float[B, K, D] and the new
        memory.
        """
        row, axes = position * x.shape[1], KEY_AXES[platforms.current().cached_keys]
        keys, values = memory
        new_keys, new_values = self.memory(x)
        keys = jax.lax.dynamic_update_slice_in_dim(keys, new_keys.transpose(axes), row, axis=axes.index(2))
        values = jax.lax.dynamic_update_slice_in_dim(values, new_values, row, axis=2)
        return self(x, (keys.transpose(axes), values), mask, train=False)[0], (keys, values)
