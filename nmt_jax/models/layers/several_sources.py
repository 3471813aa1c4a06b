"""Encoders of several sources, and attention over all of them (Zoph and Knight, 2016)."""

from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.attention import Attention
from nmt_jax.models.layers.cells import State
from nmt_jax.models.layers.dense import Dense
from nmt_jax.models.layers.recurrent_encoder import Encoder, Unordered

COMBINATIONS = ("concat", "flat", "hierarchical")


class SeveralEncoders(nn.Module):
    """An encoder for each of N sources, or one for all if `shared`; encoder: its fields.

    ordered: whether each source has an order; those without have no recurrent layers.
    """

    encoder: dict[str, Any]
    ordered: tuple[bool, ...]
    shared: bool

    def setup(self) -> None:
        self.encoders = [
            Encoder(**self.encoder) if ordered else Unordered(self.encoder["cell"], self.encoder["num_layers"])
            for ordered in (self.ordered[:1] if self.shared else self.ordered)
        ]

    def __call__(self, x: Sequence[Array], mask: Array, train: bool) -> tuple[Array, tuple[State, ...]]:
        """x: N of float[B, S, D], mask bool[B, N, S] -> float[B, N, S, H], and the N last states of each layer.

        The latter, in a row, float[B, N H], initialize a decoder (Zoph and Knight, 2016, section 3).
        """
        encoders = self.encoders * (len(self.ordered) if self.shared else 1)
        parts = zip(encoders, x, mask.swapaxes(0, 1), strict=True)
        runs = [encoder(part, real, train) for encoder, part, real in parts]
        states = jnp.stack([states for states, _ in runs], axis=1)
        return states, jax.tree.map(lambda *ends: jnp.concatenate(ends, axis=-1), *(last for _, last in runs))


class SeveralAttention(nn.Module):
    """Attention of a state s to N sources with states h^k_j of the same width, giving one context c.

    "concat": c = [c^1; ...; c^N], where c^k is the context of source k (Zoph and Knight, 2016, section 4).
    "flat": e^k_j = score(s, U^k h^k_j), a = softmax(e) over the positions j of all sources k,
    c = sum_k sum_j a^k_j U^k h^k_j (Libovicky and Helcl, 2017, section 3.1).
    "hierarchical": c^k = sum_j a^k_j U^k h^k_j of an attention to each source, then an attention to the N contexts,
    e^k = score(s, c^k), b = softmax(e) over k, c = sum_k b^k c^k (Libovicky and Helcl, 2017, section 3.2).
    U^k maps source k to a space common to all, for scores and contexts alike. U^1 = 1, so that every combination of a
    single source is plain attention to it.
    """

    combination: str
    num_sources: int
    attention: dict[str, Any]

    def setup(self) -> None:
        each = 1 if self.combination == "flat" else self.num_sources
        self.attend = [Attention(**self.attention) for _ in range(each)]
        if self.combination != "concat":
            width = self.attention["d_query"]
            self.common = [
                Dense(width, use_bias=False, dtype=self.attention["dtype"]) for _ in range(self.num_sources - 1)
            ]
        if self.combination == "hierarchical":
            self.choose = Attention(**{**self.attention, "kind": "global"})

    def memory(self, states: Array, mask: Array) -> dict[str, Any]:
        """States float[B, N, S, D] and mask bool[B, N, S] -> the memory that all steps attend to."""
        sources = [states[:, k] for k in range(self.num_sources)]
        if self.combination != "concat":
            sources[1:] = [project(source) for project, source in zip(self.common, sources[1:], strict=True)]
        masks = [mask[:, k] for k in range(self.num_sources)]
        if self.combination == "flat":
            sources, masks = [jnp.concatenate(sources, axis=1)], [jnp.concatenate(masks, axis=1)]
        parts = zip(self.attend, sources, masks, strict=True)
        return {"sources": [attend.memory(source, mask) for attend, source, mask in parts]}

    def __call__(self, query: Array, memory: dict[str, Any], position: Array) -> tuple[Array, Array]:
        """Queries float[B, Q, D] of steps `position` int[Q] -> context float[B, Q, D or N D], weights [B, Q, N, S].

        The weights sum to 1 over all sources (b^k a^k_j if hierarchical), for `concat` over each source.
        """
        parts = zip(self.attend, memory["sources"], strict=True)
        attended = [attend(query, source, position) for attend, source in parts]
        if self.combination == "flat":
            context, weights = attended[0]
            return context, weights.reshape(*query.shape[:2], self.num_sources, -1)
        weights = jnp.stack([found for _, found in attended], axis=2)
        if self.combination == "concat":
            return jnp.concatenate([context for context, _ in attended], axis=-1), weights
        contexts = jnp.stack([context for context, _ in attended], axis=2)  # [B, Q, N, D]
        rows = contexts.reshape(-1, *contexts.shape[2:])
        choices = self.choose.memory(rows, jnp.ones(rows.shape[:2], bool))
        context, share = self.choose(query.reshape(-1, 1, query.shape[-1]), choices, position)
        share = share.reshape(*query.shape[:2], self.num_sources, 1)
        return context.reshape(*query.shape[:2], -1), share * weights
