"""The left-to-right Transformer language model GPT (Radford et al., 2018), with `norm="pre"` GPT-2 (2019)."""

from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.activations import ACTIVATIONS
from nmt_jax.models.layers.dense import activation_type, matmul
from nmt_jax.models.layers.dropout import Dropout
from nmt_jax.models.layers.embedding import Embedding, Positions
from nmt_jax.models.layers.hyperparameters import check_choices, check_heads, check_positive, check_rates
from nmt_jax.models.layers.layer_stack import REMAT, run_layers
from nmt_jax.models.layers.normalization import LayerNorm
from nmt_jax.models.layers.packing import embed_positions, same_item
from nmt_jax.models.layers.transformer_layers import EncoderLayer

CHOICES = {
    "norm": ("pre", "post"),
    "activation": tuple(ACTIVATIONS),
    "dtype": ("float32", "bfloat16"),
    "remat": tuple(REMAT),
}


class Model(nn.Module):
    """p(x_{t+1} | x_1 .. x_t) by layers of causal self-attention (Radford et al., 2018, eq. 2).

    norm: "post" as in GPT, "pre" as in GPT-2. Input embeddings and output layer are tied (Press and Wolf, 2017).
    epsilon: of the norms. scale_embeddings: multiply input embeddings by sqrt(D), which published weights do not.

    With `states` it is also an encoder for task heads (Radford et al., 2018, section 3.2): a token sees those before
    it.
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
    epsilon: float = 1e-6
    scale_embeddings: bool = True
    dtype: str = "float32"
    remat: str = "none"
    scan_layers: bool = False

    def __post_init__(self) -> None:
        check_choices(self, CHOICES)
        check_positive(self, "num_layers", "d_model", "d_ff", "num_heads", "max_positions")
        check_rates(self, "dropout", "attention_dropout")
        check_heads(self)
        super().__post_init__()

    def setup(self) -> None:
        per_head = self.d_model // self.num_heads
        attention = {"d_model": self.d_model, "num_heads": self.num_heads, "d_k": per_head, "d_v": per_head}
        feed_forward = {"d_ff": self.d_ff, "activation": self.activation, "dropout": 0.0, "dtype": self.dtype}
        self.layers = [
            EncoderLayer(
                {**attention, "dropout": self.attention_dropout, "dtype": self.dtype, "use_bias": True},
                feed_forward,
                self.norm,
                self.dropout,
                self.epsilon,
            )
            for _ in range(self.num_layers)
        ]
        self.embedding = Embedding(self.vocab_size, self.d_model, self.dtype)
        self.position = Positions("learned", self.max_positions, self.d_model)
        self.drop = Dropout(self.dropout)
        if self.norm == "pre":
            self.final_norm = LayerNorm(self.epsilon)

    def _embed(self, tokens: Array) -> Array:
        """Tokens int[...] -> [..., D], without positions."""
        return self.embedding(tokens) if self.scale_embeddings else self.embedding.rows(tokens)

    def _hidden(self, x: Array) -> Array:
        return self.final_norm(x) if self.norm == "pre" else x

    def __call__(
        self, tokens: Array, train: bool = False, packing: Array | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Tokens int[B, T] -> logits float[B, T, V], at t those of token t + 1, and intermediates.

        packing: the number of each token's line, int[B, T], in rows that hold several independent ones.
        `attention`: L weights float[B, H, T, T]. `hidden` float[B, T, D] and `output_kernel` float[D, V]: their product
        is the logits; a chunked loss uses them instead. Raises ValueError if T exceeds max_positions.
        """
        length = tokens.shape[1]
        causal = jnp.tril(jnp.ones((length, length), bool))[None, None]
        if packing is not None:
            causal = causal & same_item(packing, packing)
        x = self._embed(tokens) + embed_positions(self.position(length), packing)
        x = self.drop(x.astype(activation_type(self.dtype)), train)
        x, attention = run_layers(
            self.layers, lambda layer, x: layer(x, causal, train), x, scan=self.scan_layers, remat=self.remat
        )
        hidden, kernel = self._hidden(x), self.embedding.table.T
        out = {"attention": tuple(attention), "hidden": hidden, "output_kernel": kernel}
        return matmul(hidden, kernel, self.dtype), out

    def states(
        self, ids: Array, mask: Array, segments: Array | None, train: bool
    ) -> tuple[list[Array], dict[str, Any]]:
        """Ids int[B, S] -> the L + 1 hidden states float[B, S, D], the embeddings first, and intermediates.

        As `Bert.states`: mask bool[B, S] is False at padding, which must follow the tokens, so that no token sees it;
        there are no segments. The last states are those after the final norm. Intermediates: `attention` as in
        `__call__`.
        """
        length = ids.shape[1]
        causal = jnp.tril(jnp.ones((length, length), bool))[None, None]
        x = self._embed(ids) + self.position(length)[None]
        x = self.drop(x.astype(activation_type(self.dtype)), train)

        def step(layer: EncoderLayer, x: Array) -> tuple[Array, tuple[Array, Array]]:
            y, weights = layer(x, causal, train)
            return y, (x, weights)

        x, outputs = run_layers(self.layers, step, x, scan=self.scan_layers, remat=self.remat)
        inputs, attention = zip(*outputs, strict=True)
        return [*inputs, self._hidden(x)], {"attention": attention}

    def init_cache(self, batch_size: int, max_length: int) -> dict[str, Any]:
        """The decoding cache for up to max_length steps; keys and values lead with B."""
        past = tuple(layer.self_attention.init_memory(batch_size, 1, max_length) for layer in self.layers)
        return {"position": jnp.int32(0), "past": past}

    def decode_step(self, tokens: Array, cache: dict[str, Any]) -> tuple[Array, dict[str, Any]]:
        """The tokens at this step, int[B] -> logits float[B, V] of the next ones, and the new cache."""
        position, past = cache["position"], []
        length = cache["past"][0][1].shape[2]
        mask = (jnp.arange(length) <= position)[None, None, None]
        x = self._embed(tokens)[:, None] + self.position(length)[position][None, None]
        x = x.astype(activation_type(self.dtype))
        for layer, old in zip(self.layers, cache["past"], strict=True):
            x, new = layer.step(x, old, position, mask)
            past.append(new)
        logits = matmul(self._hidden(x)[:, 0], self.embedding.table.T, self.dtype)
        return logits, {"position": position + 1, "past": tuple(past)}
