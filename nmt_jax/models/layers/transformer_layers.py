"""Encoder and decoder layers of the Transformer (Vaswani et al., 2017, section 3.1)."""

from typing import Any

import flax.linen as nn
from jax import Array

from nmt_jax.models.layers.attention import MultiHeadAttention
from nmt_jax.models.layers.basic import Dropout, FeedForward, LayerNorm


class Sublayer(nn.Module):
    """The residual connection around f: x + drop(f(norm(x))) for norm="pre", norm(x + drop(f(x))) for "post"."""

    norm: str
    dropout: float
    epsilon: float = 1e-6

    def setup(self) -> None:
        self.layer_norm = LayerNorm(self.epsilon)
        self.residual_dropout = Dropout(self.dropout)

    def before(self, x: Array) -> Array:
        """x float[B, T, D] -> the input of f."""
        return self.layer_norm(x) if self.norm == "pre" else x

    def after(self, x: Array, y: Array, train: bool) -> Array:
        """x float[B, T, D] and y = f(before(x)) -> the output of the sublayer."""
        x = x + self.residual_dropout(y, train)
        return x if self.norm == "pre" else self.layer_norm(x)


class _SelfAttentionLayer(nn.Module):
    """The fields and the sublayers that encoder and decoder layers share."""

    attention: dict[str, Any]
    feed_forward: dict[str, Any]
    norm: str
    dropout: float
    epsilon: float = 1e-6

    def setup(self) -> None:
        self.self_attention = MultiHeadAttention(**self.attention)
        self.self_attention_residual = Sublayer(self.norm, self.dropout, self.epsilon)
        self.ffn = FeedForward(**self.feed_forward)
        self.ffn_residual = Sublayer(self.norm, self.dropout, self.epsilon)

    def _attend_to_itself(self, x: Array, mask: Array, train: bool) -> tuple[Array, Array]:
        y = self.self_attention_residual.before(x)
        y, weights = self.self_attention(y, self.self_attention.memory(y), mask, train)
        return self.self_attention_residual.after(x, y, train), weights

    def _extend(
        self, x: Array, past: tuple[Array, Array], position: Array, mask: Array
    ) -> tuple[Array, tuple[Array, Array]]:
        """`_attend_to_itself` for one token per beam, with the keys and values of earlier tokens in `past`."""
        y, past = self.self_attention.extend(self.self_attention_residual.before(x), past, position, mask)
        return self.self_attention_residual.after(x, y, train=False), past

    def _feed_forward(self, x: Array, train: bool) -> Array:
        return self.ffn_residual.after(x, self.ffn(self.ffn_residual.before(x), train), train)


class EncoderLayer(_SelfAttentionLayer):
    """Self-attention and feed-forward sublayers."""

    def __call__(self, x: Array, mask: Array, train: bool = False) -> tuple[Array, Array]:
        """x float[B, S, D], mask bool[B, 1, 1 or S, S] -> float[B, S, D], weights float[B, H, S, S]."""
        x, weights = self._attend_to_itself(x, mask, train)
        return self._feed_forward(x, train), weights

    def step(
        self, x: Array, past: tuple[Array, Array], position: Array, mask: Array
    ) -> tuple[Array, tuple[Array, Array]]:
        """One token at `position`: x float[B, 1, D], mask bool[1, 1, 1, T] of tokens so far -> x, the longer past."""
        x, past = self._extend(x, past, position, mask)
        return self._feed_forward(x, train=False), past


class DecoderLayer(_SelfAttentionLayer):
    """Masked self-attention, cross-attention to the source, and feed-forward sublayers."""

    def setup(self) -> None:
        super().setup()
        self.cross_attention = MultiHeadAttention(**self.attention)
        self.cross_attention_residual = Sublayer(self.norm, self.dropout, self.epsilon)

    def _attend_to_source(self, x: Array, memory: tuple[Array, Array], mask: Array, train: bool) -> tuple[Array, Array]:
        y, cross = self.cross_attention(self.cross_attention_residual.before(x), memory, mask, train)
        return self.cross_attention_residual.after(x, y, train), cross

    def __call__(
        self, x: Array, causal: Array, memory: tuple[Array, Array], mask: Array, train: bool
    ) -> tuple[Array, Array, Array]:
        """x float[B, T, D], causal bool[1 or B, 1, T, T], memory and mask of the source -> x, both weights."""
        x, weights = self._attend_to_itself(x, causal, train)
        x, cross = self._attend_to_source(x, memory, mask, train)
        return self._feed_forward(x, train), weights, cross

    def step(
        self,
        x: Array,
        past: tuple[Array, Array],
        position: Array,
        history: Array,
        memory: tuple[Array, Array],
        mask: Array,
    ) -> tuple[Array, tuple[Array, Array], Array]:
        """One token per beam: x float[B, K, D], history bool[B, 1, K, T * K] -> x, the longer past, cross weights."""
        x, past = self._extend(x, past, position, history)
        x, cross = self._attend_to_source(x, memory, mask, train=False)
        return self._feed_forward(x, train=False), past, cross
