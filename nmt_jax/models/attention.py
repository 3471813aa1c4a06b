"""Multi-head scaled dot-product attention, for whole sequences and for beams that grow by one token."""

from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp

from nmt_jax.models.layers import Dense, Dropout

Array = jax.Array

MASKED = -1e9  # finite, so that a row with nothing to attend to is uniform instead of NaN


def attend(
    query: Array, keys: Array, values: Array, mask: Array, drop: Callable[[Array], Array] = lambda weights: weights
) -> tuple[Array, Array]:
    """softmax(Q K^T / sqrt(d_k)) V (Vaswani et al., 2017, eq. 1).

    query float[B, H, T, Dk], keys float[B, H, S, Dk], values float[B, H, S, Dv], mask bool broadcast to [B, H, T, S]
    -> context float[B, H, T, Dv], weights float32[B, H, T, S]; masked positions get exactly zero.
    `drop` is applied to the weights that average the values, not to those returned.
    """
    scores = jnp.einsum("bhtd,bhsd->bhts", query, keys) * query.shape[-1] ** -0.5
    scores = jnp.where(jnp.broadcast_to(mask, scores.shape), scores.astype(jnp.float32), MASKED)
    weights = jax.nn.softmax(scores)
    return jnp.einsum("bhts,bhsd->bhtd", drop(weights), values), weights


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1 .. head_H) W_O (Vaswani et al., 2017, section 3.2.2)."""

    d_model: int
    num_heads: int
    d_k: int
    d_v: int
    dropout: float
    dtype: str

    def setup(self) -> None:
        """The four projections, without bias as in the paper."""
        self.query = Dense(self.num_heads * self.d_k, use_bias=False, dtype=self.dtype)
        self.key = Dense(self.num_heads * self.d_k, use_bias=False, dtype=self.dtype)
        self.value = Dense(self.num_heads * self.d_v, use_bias=False, dtype=self.dtype)
        self.output = Dense(self.d_model, use_bias=False, dtype=self.dtype)
        self.weight_dropout = Dropout(self.dropout)

    def heads(self, x: Array) -> Array:
        """x float[B, T, H * Dk] -> float[B, H, T, Dk]."""
        return x.reshape(*x.shape[:2], self.num_heads, -1).swapaxes(1, 2)

    def memory(self, x: Array) -> tuple[Array, Array]:
        """What is attended to: x float[B, S, D] -> keys float[B, H, S, Dk], values float[B, H, S, Dv]."""
        return self.heads(self.key(x)), self.heads(self.value(x))

    def __call__(self, x: Array, memory: tuple[Array, Array], mask: Array, train: bool) -> tuple[Array, Array]:
        """x float[B, T, D], mask bool[B or 1, 1, T or 1, S] -> float[B, T, D], weights float[B, H, T, S]."""
        context, weights = attend(
            self.heads(self.query(x)), *memory, mask, drop=lambda weights: self.weight_dropout(weights, train)
        )
        return self.output(context.swapaxes(1, 2).reshape(*x.shape[:2], -1)), weights

    def init_memory(self, batch_size: int, beam_size: int, max_length: int) -> tuple[Array, Array]:
        """Empty keys and values, float[B, H, T * K, Dk or Dv]: row t * K + k is what beam slot k wrote at step t."""
        shape = (batch_size, self.num_heads, max_length * beam_size)
        return jnp.zeros((*shape, self.d_k)), jnp.zeros((*shape, self.d_v))

    def extend(
        self, x: Array, memory: tuple[Array, Array], position: Array, mask: Array
    ) -> tuple[Array, tuple[Array, Array]]:
        """Write the keys and values of x float[B, K, D] as step `position` and attend to all that was ever written.

        mask bool[B, 1, K, T * K] tells which rows are a beam's own past -> float[B, K, D], the longer memory.
        """
        row = position * x.shape[1]
        keys, values = (
            jax.lax.dynamic_update_slice_in_dim(old, new, row, axis=2)
            for old, new in zip(memory, self.memory(x), strict=True)
        )
        y, _ = self(x, (keys, values), mask, train=False)
        return y, (keys, values)
