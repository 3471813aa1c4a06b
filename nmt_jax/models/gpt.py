"""The left-to-right Transformer language model (Radford et al., 2018), and with `norm="pre"` that of 2019."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from nmt_jax.models.layers.activations import ACTIVATIONS
from nmt_jax.models.layers.dense import matmul
from nmt_jax.models.layers.dropout import Dropout
from nmt_jax.models.layers.embedding import Embedding, Positions
from nmt_jax.models.layers.hyperparameters import check_choices, check_positive, check_rates
from nmt_jax.models.layers.normalization import LayerNorm
from nmt_jax.models.layers.transformer_layers import EncoderLayer

Array = jax.Array

CHOICES = {"norm": ("pre", "post"), "activation": tuple(ACTIVATIONS), "dtype": ("float32", "bfloat16")}


class Layer(EncoderLayer):
    """An encoder's layer, its projections with a bias, which can also be run token by token."""

    def step(
        self, x: Array, past: tuple[Array, Array], position: Array, mask: Array
    ) -> tuple[Array, tuple[Array, Array]]:
        """The token at `position`: x float[B, 1, D], mask bool[1, 1, 1, T] of what was read -> x, the longer past."""
        y, past = self.self_attention.extend(self.self_attention_residual.before(x), past, position, mask)
        x = self.self_attention_residual.after(x, y, train=False)
        return self.ffn_residual.after(x, self.ffn(self.ffn_residual.before(x), train=False), train=False), past


class Model(nn.Module):
    """Layers of self-attention to the past that put out, after each token, logits of the next one.

    norm: "post" as in 2018, "pre" as in 2019. The input's table is the output's too (Press and Wolf, 2017).
    """

    vocab_size: int
    num_layers: int = 4
    d_model: int = 256
    d_ff: int = 1024
    num_heads: int = 4
    dropout: float = 0.1
    attention_dropout: float = 0.1
    max_positions: int = 512
    norm: str = "post"
    activation: str = "gelu"
    dtype: str = "float32"
    remat: bool = False

    def __post_init__(self) -> None:
        """ValueError on hyperparameters that cannot be meant."""
        check_choices(self, CHOICES)
        check_positive(self, "num_layers", "d_model", "d_ff", "num_heads", "max_positions")
        check_rates(self, "dropout", "attention_dropout")
        if self.d_model % self.num_heads:
            raise ValueError(f"d_model={self.d_model} is not divisible by num_heads={self.num_heads}: change one")
        super().__post_init__()

    def setup(self) -> None:
        """Create the tables and the layers."""
        per_head = self.d_model // self.num_heads
        attention = {"d_model": self.d_model, "num_heads": self.num_heads, "d_k": per_head, "d_v": per_head}
        feed_forward = {"d_ff": self.d_ff, "activation": self.activation, "dropout": 0.0, "dtype": self.dtype}
        layer = nn.remat(Layer, static_argnums=(3,)) if self.remat else Layer
        self.layers = [
            layer(
                {**attention, "dropout": self.attention_dropout, "dtype": self.dtype, "use_bias": True},
                feed_forward,
                self.norm,
                self.dropout,
            )
            for _ in range(self.num_layers)
        ]
        self.embedding = Embedding(self.vocab_size, self.d_model)
        self.position = Positions("learned", self.max_positions, self.d_model)
        self.drop = Dropout(self.dropout)
        if self.norm == "pre":
            self.final_norm = LayerNorm()

    def _hidden(self, x: Array) -> Array:
        return self.final_norm(x) if self.norm == "pre" else x

    def __call__(self, tokens: Array, train: bool = False) -> tuple[Array, dict[str, Any]]:
        """Tokens int[B, T] -> logits float[B, T, V], those at t of the token after t; and named intermediates.

        `attention`: L weights float[B, H, T, T]; `hidden` float[B, T, D] and `output_kernel` float[D, V], whose product
        the logits are, for a loss that never holds all of them. ValueError if T exceeds max_positions.
        """
        length = tokens.shape[1]
        causal = jnp.tril(jnp.ones((length, length), bool))[None, None]
        x = self.drop(self.embedding(tokens) + self.position(length)[None], train)
        attention = []
        for layer in self.layers:
            x, weights = layer(x, causal, train)
            attention.append(weights)
        hidden, kernel = self._hidden(x), self.embedding.table.T
        out = {"attention": tuple(attention), "hidden": hidden, "output_kernel": kernel}
        return matmul(hidden, kernel, self.dtype), out

    def init_cache(self, batch_size: int, max_length: int) -> dict[str, Any]:
        """What is carried from step to step, up to max_length of them; keys and values lead with B."""
        past = tuple(layer.self_attention.init_memory(batch_size, 1, max_length) for layer in self.layers)
        return {"position": jnp.int32(0), "past": past}

    def decode_step(self, tokens: Array, cache: dict[str, Any]) -> tuple[Array, dict[str, Any]]:
        """The tokens that come next, int[B] -> logits float[B, V] of those after them, and the cache one step on."""
        position, past = cache["position"], []
        length = cache["past"][0][1].shape[2]
        mask = (jnp.arange(length) <= position)[None, None, None]
        x = self.embedding(tokens)[:, None] + self.position(length)[position][None, None]
        for layer, old in zip(self.layers, cache["past"], strict=True):
            x, new = layer.step(x, old, position, mask)
            past.append(new)
        logits = matmul(self._hidden(x)[:, 0], self.embedding.table.T, self.dtype)
        return logits, {"position": position + 1, "past": tuple(past)}
