"""The Transformer of BART (Lewis et al., 2020) and mBART (Liu et al., 2020): its encoder alone, and the whole model.

Layers are those of Vaswani et al. (2017) with biases. BART normalizes after each sublayer; mBART normalizes before it,
and after the last layer.
"""

from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.dense import activation_type, matmul
from nmt_jax.models.layers.encoder_stack import EncoderStack
from nmt_jax.models.layers.hyperparameters import check_choices, check_heads, check_positive, shared_fields
from nmt_jax.models.layers.normalization import LayerNorm
from nmt_jax.models.layers.transformer_layers import DecoderLayer, EncoderLayer

CHOICES = {"activation": ("gelu_erf", "gelu", "relu"), "norm": ("post", "pre"), "dtype": ("float32", "bfloat16")}
EPSILON = 1e-5  # of all norms
FIRST_POSITION = 2  # row of the position table; the rows before it are not used


class Embeddings(nn.Module):
    """norm(scale * word + position).

    scales_words: scale is sqrt(D), otherwise 1. vocab_size: 0 if the words come from the table of another module.
    """

    d_model: int
    max_positions: int
    scales_words: bool
    dtype: str
    vocab_size: int = 0

    def setup(self) -> None:
        init = nn.initializers.normal(0.02)
        self.position = self.param("position", init, (FIRST_POSITION + self.max_positions, self.d_model))
        self.norm = LayerNorm(EPSILON)
        if self.vocab_size:
            self.word = self.param("word", init, (self.vocab_size, self.d_model))

    def __call__(self, ids: Array, table: Array | None = None) -> Array:
        """Ids int[B, T] -> float[B, T, D]; table float[V, D]: of the words, if they are not of this module.

        Raises ValueError if T exceeds max_positions.
        """
        length = ids.shape[1]
        if length > self.max_positions:
            raise ValueError(f"a sequence has {length} tokens, but max_positions={self.max_positions}")
        words = (self.word if table is None else table)[ids] * (self.d_model**0.5 if self.scales_words else 1.0)
        places = self.position[FIRST_POSITION : FIRST_POSITION + length]
        return self.norm(words + places[None]).astype(activation_type(self.dtype))


class LastEncoderLayer(EncoderLayer):
    """The last layer of an encoder with norms before its sublayers, and the norm after it."""

    def setup(self) -> None:
        super().setup()
        self.final_norm = LayerNorm(self.epsilon)

    def __call__(self, x: Array, mask: Array, train: bool = False) -> tuple[Array, Array]:
        """As `EncoderLayer`."""
        x, weights = super().__call__(x, mask, train)
        return self.final_norm(x), weights


def layer_fields(d_model: int, d_ff: int, num_heads: int, norm: str, activation: str, dtype: str) -> dict[str, Any]:
    """The fields of `EncoderLayer` and `DecoderLayer`."""
    attention = {"d_model": d_model, "num_heads": num_heads, "dropout": 0.0, "dtype": dtype, "use_bias": True}
    attention |= {"d_k": d_model // num_heads, "d_v": d_model // num_heads}
    feed_forward = {"d_ff": d_ff, "activation": activation, "dropout": 0.0, "dtype": dtype}
    return {
        "attention": nn.FrozenDict(attention),
        "feed_forward": nn.FrozenDict(feed_forward),
        "norm": norm,
        "dropout": 0.0,
        "epsilon": EPSILON,
    }


class BartEncoder(EncoderStack):
    """The encoder of BART and mBART; the defaults are BART base. norm: "post" (BART) or "pre" (mBART).

    scales_words: of `Embeddings`.
    """

    vocab_size: int = 50265
    num_layers: int = 6
    d_model: int = 768
    d_ff: int = 3072
    num_heads: int = 12
    max_positions: int = 1024
    activation: str = "gelu_erf"
    norm: str = "post"
    scales_words: bool = False
    dtype: str = "float32"

    def __post_init__(self) -> None:
        check_choices(self, CHOICES)
        check_positive(self, "vocab_size", "num_layers", "d_model", "d_ff", "num_heads", "max_positions")
        check_heads(self)
        super().__post_init__()

    @nn.nowrap
    def layer(self, number: int) -> EncoderLayer:
        sizes = self.d_model, self.d_ff, self.num_heads
        last = self.norm == "pre" and number == self.num_layers - 1
        kind = LastEncoderLayer if last else EncoderLayer
        return kind(**layer_fields(*sizes, self.norm, self.activation, self.dtype))

    def setup(self) -> None:
        self.embeddings = Embeddings(**shared_fields(self, Embeddings))
        self.layers = [self.layer(number) for number in range(self.num_layers)]

    def begin(self, ids: Array, mask: Array) -> tuple[Array, tuple[Array]]:
        return self.embeddings(ids), (mask[:, None, None, :],)


class Bart(nn.Module):
    """The whole model; other fields as for `BartEncoder`. The output layer is the table of words.

    num_decoder_layers, d_decoder_ff, num_decoder_heads: sizes of the decoder. has_output_bias: the logits have a bias.
    """

    vocab_size: int = 50265
    num_layers: int = 6
    d_model: int = 768
    d_ff: int = 3072
    num_heads: int = 12
    num_decoder_layers: int = 6
    d_decoder_ff: int = 3072
    num_decoder_heads: int = 12
    max_positions: int = 1024
    activation: str = "gelu_erf"
    norm: str = "post"
    scales_words: bool = False
    has_output_bias: bool = True
    dtype: str = "float32"

    def __post_init__(self) -> None:
        check_positive(self, "num_decoder_layers", "d_decoder_ff", "num_decoder_heads")
        if self.d_model % self.num_decoder_heads:
            raise ValueError(f"d_model={self.d_model} is not divisible by num_decoder_heads={self.num_decoder_heads}")
        self._encoder()  # checks the other fields
        super().__post_init__()

    @nn.nowrap
    def _encoder(self) -> BartEncoder:
        return BartEncoder(**shared_fields(self, BartEncoder))

    def setup(self) -> None:
        self.encoder = self._encoder()
        fields = shared_fields(self, Embeddings) | {"vocab_size": 0}
        self.decoder_embeddings = Embeddings(**fields)
        sizes = self.d_model, self.d_decoder_ff, self.num_decoder_heads
        layer = layer_fields(*sizes, self.norm, self.activation, self.dtype)
        self.decoder_layers = [DecoderLayer(**layer) for _ in range(self.num_decoder_layers)]
        if self.norm == "pre":
            self.decoder_norm = LayerNorm(EPSILON)
        if self.has_output_bias:
            self.output_bias = self.param("output_bias", nn.initializers.zeros, (1, self.vocab_size))

    def encode(self, ids: Array, mask: Array) -> Array:
        """Ids int[B, S], mask bool[B, S] -> states float[B, S, D]."""
        return self.encoder.last(ids, mask)

    def decode(self, states: Array, mask: Array, previous: Array) -> Array:
        """States float[B, S, D], mask bool[B, S], previous int[B, T] -> logits float32[B, T, V] of the next tokens.

        previous: the target up to the token before, behind the start token.
        """
        length, table = previous.shape[1], self.encoder.embeddings.word
        x = self.decoder_embeddings(previous, table)
        causal = jnp.tril(jnp.ones((length, length), bool))[None, None]
        for layer in self.decoder_layers:
            x, _, _ = layer(x, causal, layer.memory(states), mask[:, None, None, :], False)
        logits = matmul(self.decoder_norm(x) if self.norm == "pre" else x, table.T, self.dtype)
        return logits + self.output_bias[None] if self.has_output_bias else logits

    def __call__(self, ids: Array, mask: Array, previous: Array) -> Array:
        """Ids int[B, S], mask bool[B, S], previous int[B, T] -> logits float32[B, T, V], as for `decode`."""
        return self.decode(self.encode(ids, mask), mask, previous)
