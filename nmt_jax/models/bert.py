"""The encoder of BERT (Devlin et al., 2019) and of its kin, which differ in sizes, tables and pretraining.

Heads (masked words, classes, spans ...) are modules of their own that read the hidden states.
"""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from nmt_jax.models.attention import attend
from nmt_jax.models.hyperparameters import check_choices, check_positive, check_rates
from nmt_jax.models.layers import ACTIVATIONS, Dense, Dropout, LayerNorm

Array = jax.Array

CHOICES = {"activation": ("gelu_erf", "gelu", "relu"), "dtype": ("float32", "bfloat16")}


class Embeddings(nn.Module):
    """norm(word + position + segment), each from a learned table (section 3, figure 2)."""

    vocab_size: int
    max_positions: int
    first_position: int
    num_segments: int
    d_model: int
    epsilon: float
    dropout: float
    init_stddev: float

    def setup(self) -> None:
        """Create the tables."""
        init = nn.initializers.truncated_normal(self.init_stddev)
        self.word = self.param("word", init, (self.vocab_size, self.d_model))
        self.position = self.param("position", init, (self.first_position + self.max_positions, self.d_model))
        if self.num_segments:
            self.segment = self.param("segment", init, (self.num_segments, self.d_model))
        self.norm = LayerNorm(self.epsilon)
        self.drop = Dropout(self.dropout)

    def __call__(self, ids: Array, segments: Array | None, train: bool) -> Array:
        """Ids and segments int[B, S] -> float[B, S, D]."""
        length = ids.shape[1]
        if length > self.max_positions:
            raise ValueError(f"a sequence of {length} tokens, but max_positions={self.max_positions}")
        x = self.word[ids] + self.position[None, self.first_position : self.first_position + length]
        if self.num_segments:
            x = x + self.segment[jnp.zeros_like(ids) if segments is None else segments]
        return self.drop(self.norm(x), train)


class Layer(nn.Module):
    """Self-attention and feed-forward, each followed by norm(x + drop(f(x))); all products with a bias."""

    d_model: int
    d_ff: int
    num_heads: int
    activation: str
    epsilon: float
    dropout: float
    attention_dropout: float
    dtype: str
    init_stddev: float

    def setup(self) -> None:
        """Create the six products and the two norms."""

        def dense(features: int) -> Dense:
            return Dense(
                features, dtype=self.dtype, kernel_init=nn.initializers.truncated_normal(stddev=self.init_stddev)
            )

        self.query, self.key, self.value = dense(self.d_model), dense(self.d_model), dense(self.d_model)
        self.attention_output = dense(self.d_model)
        self.attention_norm = LayerNorm(self.epsilon)
        self.ffn_hidden, self.ffn_output = dense(self.d_ff), dense(self.d_model)
        self.ffn_norm = LayerNorm(self.epsilon)
        self.weight_dropout = Dropout(self.attention_dropout)
        self.drop = Dropout(self.dropout)

    def __call__(self, x: Array, mask: Array, train: bool) -> tuple[Array, Array]:
        """x float[B, S, D], mask bool[B, 1, 1, S] -> float[B, S, D], attention weights float[B, H, S, S]."""

        def heads(y: Array) -> Array:
            return y.reshape(*y.shape[:2], self.num_heads, -1).swapaxes(1, 2)

        query, keys, values = heads(self.query(x)), heads(self.key(x)), heads(self.value(x))
        context, weights = attend(query, keys, values, mask, drop=lambda weights: self.weight_dropout(weights, train))
        y = self.attention_output(context.swapaxes(1, 2).reshape(x.shape))
        x = self.attention_norm(x + self.drop(y, train))
        y = self.ffn_output(ACTIVATIONS[self.activation](self.ffn_hidden(x)))
        return self.ffn_norm(x + self.drop(y, train)), weights


class Bert(nn.Module):
    """BERT, RoBERTa, DistilBERT, MiniLM, XLM-R ...; the defaults are BERT base, uncased.

    first_position: rows of the position table that no token uses (2 in RoBERTa). num_segments: 0 without that table.
    pooler: tanh of a product with the first token's last state. init_stddev: of truncated normal draws.
    """

    vocab_size: int = 30522
    num_layers: int = 12
    d_model: int = 768
    d_ff: int = 3072
    num_heads: int = 12
    max_positions: int = 512
    first_position: int = 0
    num_segments: int = 2
    activation: str = "gelu_erf"
    epsilon: float = 1e-12
    pooler: bool = True
    dropout: float = 0.1
    attention_dropout: float = 0.1
    dtype: str = "float32"
    init_stddev: float = 0.02

    def __post_init__(self) -> None:
        """ValueError on hyperparameters that cannot be meant."""
        check_choices(self, CHOICES)
        check_positive(self, "vocab_size", "num_layers", "d_model", "d_ff", "num_heads", "max_positions")
        check_rates(self, "dropout", "attention_dropout")
        if min(self.first_position, self.num_segments) < 0:
            raise ValueError("first_position and num_segments must not be negative")
        if self.d_model % self.num_heads:
            raise ValueError(f"d_model={self.d_model} is not divisible by num_heads={self.num_heads}: change one")
        super().__post_init__()

    def setup(self) -> None:
        """Create the tables, the layers and the pooler."""
        common: dict[str, Any] = {
            "d_model": self.d_model,
            "epsilon": self.epsilon,
            "dropout": self.dropout,
            "init_stddev": self.init_stddev,
        }
        self.embeddings = Embeddings(
            self.vocab_size, self.max_positions, self.first_position, self.num_segments, **common
        )
        self.layers = [
            Layer(
                d_ff=self.d_ff,
                num_heads=self.num_heads,
                activation=self.activation,
                attention_dropout=self.attention_dropout,
                dtype=self.dtype,
                **common,
            )
            for _ in range(self.num_layers)
        ]
        if self.pooler:
            init = nn.initializers.truncated_normal(stddev=self.init_stddev)
            self.pooler_dense = Dense(self.d_model, dtype=self.dtype, kernel_init=init)

    def __call__(
        self, ids: Array, mask: Array, segments: Array | None = None, train: bool = False
    ) -> tuple[Array, dict[str, Any]]:
        """Ids int[B, S], mask bool[B, S] (False: padding), segments int[B, S] or all 0 -> hidden float[L+1, B, S, D].

        Hidden state 0 is the embeddings'. Named intermediates: `attention`, L weights float[B, H, S, S], and with a
        pooler `pooled` float[B, D]. States at padding mean nothing. ValueError if S exceeds max_positions.
        """
        x = self.embeddings(ids, segments, train)
        hidden, attention = [x], []
        for layer in self.layers:
            x, weights = layer(x, mask[:, None, None, :], train)
            hidden.append(x)
            attention.append(weights)
        intermediates: dict[str, Any] = {"attention": tuple(attention)}
        if self.pooler:
            intermediates["pooled"] = jnp.tanh(self.pooler_dense(x[:, 0]))
        return jnp.stack(hidden), intermediates
