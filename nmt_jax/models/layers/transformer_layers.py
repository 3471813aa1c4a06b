"""Encoder and decoder layers of the Transformer (Vaswani et al., 2017, section 3.1)."""

from typing import Any

import flax.linen as nn
import jax

from nmt_jax.models.layers.attention import MultiHeadAttention
from nmt_jax.models.layers.dropout import Dropout
from nmt_jax.models.layers.feed_forward import FeedForward
from nmt_jax.models.layers.normalization import LayerNorm

Array = jax.Array


class Sublayer(nn.Module):
    """The residual connection around a layer: x + drop(f(norm(x))) (pre) or norm(x + drop(f(x))) (post)."""

    norm: str
    dropout: float

    def setup(self) -> None:
        """Create the norm."""
        self.layer_norm = LayerNorm()
        self.residual_dropout = Dropout(self.dropout)

    def before(self, x: Array) -> Array:
        """x float[B, T, D] -> what the layer reads."""
        return self.layer_norm(x) if self.norm == "pre" else x

    def after(self, x: Array, y: Array, train: bool) -> Array:
        """x float[B, T, D] and what the layer made of it -> the sublayer's output."""
        x = x + self.residual_dropout(y, train)
        return x if self.norm == "pre" else self.layer_norm(x)


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each in a residual connection."""

    attention: dict[str, Any]
    feed_forward: dict[str, Any]
    norm: str
    dropout: float

    def setup(self) -> None:
        """Create the two sublayers."""
        self.self_attention = MultiHeadAttention(**self.attention)
        self.self_attention_residual = Sublayer(self.norm, self.dropout)
        self.ffn = FeedForward(**self.feed_forward)
        self.ffn_residual = Sublayer(self.norm, self.dropout)

    def __call__(self, x: Array, mask: Array, train: bool) -> tuple[Array, Array]:
        """x float[B, S, D], mask bool[B, 1, 1, S] -> float[B, S, D], weights float[B, H, S, S]."""
        y = self.self_attention_residual.before(x)
        y, weights = self.self_attention(y, self.self_attention.memory(y), mask, train)
        x = self.self_attention_residual.after(x, y, train)
        return self.ffn_residual.after(x, self.ffn(self.ffn_residual.before(x), train), train), weights


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the source, and feed-forward, each in a residual connection."""

    attention: dict[str, Any]
    feed_forward: dict[str, Any]
    norm: str
    dropout: float

    def setup(self) -> None:
        """Create the three sublayers."""
        self.self_attention = MultiHeadAttention(**self.attention)
        self.self_attention_residual = Sublayer(self.norm, self.dropout)
        self.cross_attention = MultiHeadAttention(**self.attention)
        self.cross_attention_residual = Sublayer(self.norm, self.dropout)
        self.ffn = FeedForward(**self.feed_forward)
        self.ffn_residual = Sublayer(self.norm, self.dropout)

    def _after_self_attention(
        self, x: Array, y: Array, memory: tuple[Array, Array], mask: Array, train: bool
    ) -> tuple[Array, Array]:
        x = self.self_attention_residual.after(x, y, train)
        y, cross = self.cross_attention(self.cross_attention_residual.before(x), memory, mask, train)
        x = self.cross_attention_residual.after(x, y, train)
        return self.ffn_residual.after(x, self.ffn(self.ffn_residual.before(x), train), train), cross

    def __call__(
        self, x: Array, causal: Array, memory: tuple[Array, Array], mask: Array, train: bool
    ) -> tuple[Array, Array, Array]:
        """x float[B, T, D], causal bool[1, 1, T, T], the source's memory and mask -> float[B, T, D], two weights."""
        y = self.self_attention_residual.before(x)
        y, weights = self.self_attention(y, self.self_attention.memory(y), causal, train)
        x, cross = self._after_self_attention(x, y, memory, mask, train)
        return x, weights, cross

    def step(
        self, x: Array, past: tuple[Array, Array], position: Array, own: Array, memory: tuple[Array, Array], mask: Array
    ) -> tuple[Array, tuple[Array, Array], Array]:
        """One token a beam: x float[B, K, D], `own` bool[B, 1, K, T * K] -> the next x, the past, weights."""
        y, past = self.self_attention.extend(self.self_attention_residual.before(x), past, position, own)
        x, cross = self._after_self_attention(x, y, memory, mask, train=False)
        return x, past, cross
