"""The Transformer of T5 (Raffel et al., 2020) and mT5 (Xue et al., 2021): its encoder alone, and the whole model.

Sublayers are x + f(norm(x)) with the norm of Zhang and Sennrich (2019) and no biases; attention scores are not scaled,
and have a learned bias for the relative position, which all layers of a stack share.
"""

import functools

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.activations import activation
from nmt_jax.models.layers.dense import Dense, activation_type, matmul
from nmt_jax.models.layers.encoder_stack import EncoderStack
from nmt_jax.models.layers.hyperparameters import check_choices, check_positive, shared_fields
from nmt_jax.models.layers.multi_head_attention import MultiHeadAttention
from nmt_jax.models.layers.relative_positions import RelativeBias

CHOICES = {"activation": ("relu", "gelu", "gelu_erf", "swiglu"), "dtype": ("float32", "bfloat16")}


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + epsilon) * scale (Zhang and Sennrich, 2019, eq. 4), in float32."""

    epsilon: float

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """x [..., D] -> [..., D] of the same type."""
        scale = self.param("scale", nn.initializers.ones, (x.shape[-1],))
        wide = x.astype(jnp.float32)
        normal = wide / jnp.sqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + self.epsilon)
        return (normal * jnp.broadcast_to(scale, x.shape)).astype(x.dtype)


class Layer(nn.Module):
    """Self-attention, with `crosses` attention to the encoder, and a feed-forward sublayer.

    gated: the feed-forward layer is (act(x W) * x V) W2 (Shazeer, 2020, eq. 6). last: the norm after the last layer
    belongs to it.
    """

    d_model: int
    d_kv: int
    d_ff: int
    num_heads: int
    activation: str
    gated: bool
    epsilon: float
    dtype: str
    last: bool = False
    crosses: bool = False

    def setup(self) -> None:
        dense = functools.partial(Dense, use_bias=False, dtype=self.dtype)
        attention = functools.partial(
            MultiHeadAttention, self.d_model, self.num_heads, self.d_kv, self.d_kv, 0.0, self.dtype, scaled=False
        )
        self.attention, self.attention_norm = attention(), RMSNorm(self.epsilon)
        if self.crosses:
            self.cross_attention, self.cross_attention_norm = attention(), RMSNorm(self.epsilon)
        if self.gated:
            self.ffn_gate, self.ffn_linear = dense(self.d_ff), dense(self.d_ff)
        else:
            self.ffn_hidden = dense(self.d_ff)
        self.ffn_output, self.ffn_norm = dense(self.d_model), RMSNorm(self.epsilon)
        if self.last:
            self.final_norm = RMSNorm(self.epsilon)

    def __call__(
        self, x: Array, mask: Array, bias: Array, source: tuple[Array, Array] | None = None
    ) -> tuple[Array, Array]:
        """x float[B, T, D], mask bool[B or 1, 1, T or 1, T], bias float[1, H, T, T] -> x, weights float[B, H, T, T].

        source: states float[B, S, D] of the encoder and their mask bool[B, 1, 1, S], for a layer that crosses.
        """
        y = self.attention_norm(x)
        y, weights = self.attention(y, self.attention.memory(y), mask, False, bias)
        x = x + y
        if source is not None:
            memory = self.cross_attention.memory(source[0])
            x = x + self.cross_attention(self.cross_attention_norm(x), memory, source[1], False)[0]
        y = self.ffn_norm(x)
        act = activation(self.activation, self.dtype)
        x = x + self.ffn_output(act(self.ffn_gate(y)) * self.ffn_linear(y) if self.gated else act(self.ffn_hidden(y)))
        return self.final_norm(x) if self.last else x, weights


class Embeddings(nn.Module):
    """A table of V vectors of width D."""

    vocab_size: int
    d_model: int
    dtype: str

    def setup(self) -> None:
        self.word = self.param("word", nn.initializers.normal(1.0), (self.vocab_size, self.d_model))

    def __call__(self, ids: Array) -> Array:
        """Ids int[...] -> [..., D] in the type of activations."""
        return self.word[ids].astype(activation_type(self.dtype))


class T5Encoder(EncoderStack):
    """The encoder of T5 and mT5; the defaults are T5 small. The last state is normalized.

    d_kv: width of a head. relative_buckets, largest_distance: of `RelativeBias`. max_positions: length of the texts
    that the model was trained with; it reads longer ones, too. gated: see `Layer`.
    """

    vocab_size: int = 32128
    num_layers: int = 6
    d_model: int = 512
    d_kv: int = 64
    d_ff: int = 2048
    num_heads: int = 8
    relative_buckets: int = 32
    largest_distance: int = 128
    max_positions: int = 512
    activation: str = "relu"
    gated: bool = False
    epsilon: float = 1e-6
    dtype: str = "float32"

    def __post_init__(self) -> None:
        check_choices(self, CHOICES)
        check_positive(self, "vocab_size", "num_layers", "d_model", "d_kv", "d_ff", "num_heads", "max_positions")
        if not 4 <= self.relative_buckets < 2 * self.largest_distance:
            raise ValueError(
                f"relative_buckets={self.relative_buckets} must be at least 4 and less than twice "
                f"largest_distance={self.largest_distance}"
            )
        super().__post_init__()

    @nn.nowrap
    def layer(self, number: int) -> Layer:
        return Layer(**shared_fields(self, Layer), last=number == self.num_layers - 1)

    def setup(self) -> None:
        self.embeddings = Embeddings(**shared_fields(self, Embeddings))
        self.relative_bias = RelativeBias(self.num_heads, self.relative_buckets, self.largest_distance)
        self.layers = [self.layer(number) for number in range(self.num_layers)]

    def begin(self, ids: Array, mask: Array) -> tuple[Array, tuple[Array, Array]]:
        return self.embeddings(ids), (mask[:, None, None, :], self.relative_bias(ids.shape[1], ids.shape[1]))


class T5(nn.Module):
    """The whole model; fields as for `T5Encoder`.

    tied: the output layer is the table of words. scales_output: the last states are divided by sqrt(D) before it. T5
    does both, its version 1.1 and mT5 neither.
    """

    vocab_size: int = 32128
    num_layers: int = 6
    num_decoder_layers: int = 6
    d_model: int = 512
    d_kv: int = 64
    d_ff: int = 2048
    num_heads: int = 8
    relative_buckets: int = 32
    largest_distance: int = 128
    max_positions: int = 512
    activation: str = "relu"
    gated: bool = False
    epsilon: float = 1e-6
    tied: bool = True
    scales_output: bool = True
    dtype: str = "float32"

    def __post_init__(self) -> None:
        check_positive(self, "num_decoder_layers")
        self._encoder()  # checks the other fields
        super().__post_init__()

    @nn.nowrap
    def _encoder(self) -> T5Encoder:
        return T5Encoder(**shared_fields(self, T5Encoder))

    def setup(self) -> None:
        self.encoder = self._encoder()
        self.decoder_bias = RelativeBias(self.num_heads, self.relative_buckets, self.largest_distance, False)
        last = self.num_decoder_layers - 1
        fields = shared_fields(self, Layer)
        self.decoder_layers = [Layer(**fields, last=n == last, crosses=True) for n in range(last + 1)]
        if not self.tied:
            init = nn.initializers.normal(1.0)
            self.output_table = self.param("output_table", init, (self.vocab_size, self.d_model))

    def encode(self, ids: Array, mask: Array) -> Array:
        """Ids int[B, S], mask bool[B, S] -> states float[B, S, D]."""
        return self.encoder.last(ids, mask)

    def decode(self, states: Array, mask: Array, previous: Array) -> Array:
        """States float[B, S, D], mask bool[B, S], previous int[B, T] -> logits float32[B, T, V] of the next tokens.

        previous: the target up to the token before, behind the start token.
        """
        length = previous.shape[1]
        x, bias = self.encoder.embeddings(previous), self.decoder_bias(length, length)
        causal = jnp.tril(jnp.ones((length, length), bool))[None, None]
        for layer in self.decoder_layers:
            x, _ = layer(x, causal, bias, (states, mask[:, None, None, :]))
        table = self.encoder.embeddings.word if self.tied else self.output_table
        return matmul(x * self.d_model**-0.5 if self.scales_output else x, table.T, self.dtype)

    def __call__(self, ids: Array, mask: Array, previous: Array) -> Array:
        """Ids int[B, S], mask bool[B, S], previous int[B, T] -> logits float32[B, T, V], as for `decode`."""
        return self.decode(self.encode(ids, mask), mask, previous)
