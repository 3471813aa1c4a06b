"""Encoder and decoder layers of the Transformer (Vaswani et al., 2017, section 3.1)."""

import functools
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.dropout import Dropout
from nmt_jax.models.layers.feed_forward import FeedForward
from nmt_jax.models.layers.multi_head_attention import MultiHeadAttention
from nmt_jax.models.layers.normalization import LayerNorm

COMBINATIONS = ("joint", "flat", "serial", "parallel", "hierarchical")

Memory = tuple[tuple[Array, Array], ...]  # of each attention to the source, keys and values float[B, H, S, Dk or Dv]


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
    """Masked self-attention, cross-attention to the source, and feed-forward sublayers.

    Several sources are attended to in one of these ways (Libovicky et al., 2018, section 3):

    joint, flat: one attention to the states of all sources (what these are differs, see `transformer.Model`).
    serial: an attention to each source, one sublayer after another, each with its residual connection.
    parallel: y = sum_k a^k, the sum of an attention a^k to each source, in one sublayer.
    hierarchical: y = MultiHead(x, C, C) attends to the contexts C = (a^1 .. a^N) of each position.
    """

    combination: str = "joint"
    num_sources: int = 1

    def setup(self) -> None:
        super().setup()
        each = 1 if self.combination in ("joint", "flat") else self.num_sources
        suffixes = ["", *(f"_{k}" for k in range(1, each))]
        self.cross = [MultiHeadAttention(**self.attention, name=f"cross_attention{suffix}") for suffix in suffixes]
        residuals = suffixes if self.combination == "serial" else [""]
        self.cross_residual = [
            Sublayer(self.norm, self.dropout, self.epsilon, name=f"cross_attention_residual{suffix}")
            for suffix in residuals
        ]
        if self.combination == "hierarchical" and each > 1:
            self.choose = MultiHeadAttention(**self.attention)

    def memory(self, encoded: Array) -> Memory:
        """States of the encoder, float[B, N S, D] -> what `__call__` and `step` attend to."""
        parts = jnp.split(encoded, len(self.cross), axis=1)
        return tuple(attention.memory(part) for attention, part in zip(self.cross, parts, strict=True))

    def _attend_to_source(self, x: Array, memory: Memory, mask: Array, train: bool) -> tuple[Array, Array]:
        """The weights, float32[B, H, T, N S], sum to 1 over each source if serial or parallel, else over all."""
        sources = list(zip(self.cross, memory, jnp.split(mask, len(memory), axis=-1), strict=True))
        if self.combination in ("parallel", "hierarchical"):
            query = self.cross_residual[0].before(x)
            found = [attention(query, states, real, train) for attention, states, real in sources]
            y, weights = self._combine(query, [context for context, _ in found], [used for _, used in found], train)
            return self.cross_residual[0].after(x, y, train), jnp.concatenate(weights, axis=-1)
        weights = []
        for residual, (attention, states, real) in zip(self.cross_residual, sources, strict=True):
            y, of_source = attention(residual.before(x), states, real, train)
            x = residual.after(x, y, train)
            weights.append(of_source)
        return x, jnp.concatenate(weights, axis=-1)

    def _combine(
        self, query: Array, contexts: list[Array], weights: list[Array], train: bool
    ) -> tuple[Array, list[Array]]:
        """Queries and contexts a^1 .. a^N float[B, T, D] -> y float[B, T, D], the weights float32[B, H, T, S] of each.

        If hierarchical, they are multiplied by the share of their source: the mean over the heads that choose, because
        these and the heads of a source are not related.
        """
        if self.combination == "parallel" or len(contexts) == 1:
            return functools.reduce(jnp.add, contexts), weights
        rows = jnp.stack(contexts, axis=2).reshape(-1, len(contexts), query.shape[-1])  # [B T, N, D]
        mask = jnp.ones((1, 1, 1, len(contexts)), bool)
        y, share = self.choose(query.reshape(-1, 1, query.shape[-1]), self.choose.memory(rows), mask, train)
        share = share.mean(axis=1).reshape(query.shape[0], 1, query.shape[1], -1)  # [B, 1, T, N]
        return y.reshape(query.shape), [share[..., k, None] * of_source for k, of_source in enumerate(weights)]

    def __call__(self, x: Array, causal: Array, memory: Memory, mask: Array, train: bool) -> tuple[Array, Array, Array]:
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
        memory: Memory,
        mask: Array,
    ) -> tuple[Array, tuple[Array, Array], Array]:
        """One token per beam: x float[B, K, D], history bool[B, 1, K, T * K] -> x, the longer past, cross weights."""
        x, past = self._extend(x, past, position, history)
        x, cross = self._attend_to_source(x, memory, mask, train=False)
        return self._feed_forward(x, train=False), past, cross
