"""A dual encoder: two texts, or features and a text, become vectors of one space, to be compared by cosine.

Radford et al. (2021): two Transformer encoders that share nothing but the width of their output, and a temperature.
"""

import math
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.dense import Dense, activation_type
from nmt_jax.models.layers.dropout import Dropout
from nmt_jax.models.layers.embedding import Embedding, sinusoids
from nmt_jax.models.layers.features import Features, Mixed, Source, columns_of, grid_sinusoids, source_mask
from nmt_jax.models.layers.hyperparameters import check_choices, check_heads, check_positive, check_rates, shared_fields
from nmt_jax.models.layers.images import IMAGE_ENCODERS, ConvolutionalEncoder
from nmt_jax.models.layers.normalization import LayerNorm
from nmt_jax.models.layers.pooling import pool, unit_vectors
from nmt_jax.models.layers.transformer_layers import EncoderLayer

LARGEST_SCALE = 100.0  # of the cosines (Radford et al., 2021, section 2.5)


class Encoder(nn.Module):
    """A Transformer encoder; the mean of its states is projected to a vector of length 1.

    columns: of the grid that the rows of features are, which `image_encoder` reads; 0 = a sequence.
    """

    vocab_size: int
    columns: int
    num_layers: int
    d_model: int
    d_ff: int
    num_heads: int
    d_output: int
    dropout: float
    image_encoder: str
    convolution_width: int
    dtype: str

    def setup(self) -> None:
        width = self.d_model // self.num_heads
        attention = {"d_model": self.d_model, "num_heads": self.num_heads, "d_k": width, "d_v": width}
        layer: dict[str, Any] = {
            "attention": {**attention, "dropout": 0.0, "dtype": self.dtype},
            "feed_forward": {"d_ff": self.d_ff, "activation": "relu", "dropout": 0.0, "dtype": self.dtype},
        }
        self.embedding = Embedding(self.vocab_size, self.d_model, self.dtype)
        self.row_projection = Dense(self.d_model, dtype=self.dtype)  # of features
        self.convolutions = ConvolutionalEncoder(self.columns, self.convolution_width, self.d_model, self.dtype)
        self.layers = [EncoderLayer(**layer, norm="pre", dropout=self.dropout) for _ in range(self.num_layers)]
        self.norm = LayerNorm()
        self.projection = Dense(self.d_output, use_bias=False, dtype=self.dtype)
        self.drop = Dropout(self.dropout)

    def __call__(self, source: Source, train: bool) -> Array:
        """Tokens int[B, S] or features -> unit vectors float32[B, d_output]."""
        mask, length = source_mask(source), source.shape[1]
        if isinstance(source, Mixed):
            raise ValueError("a dual encoder compares one source with the target")
        grid = isinstance(source, Features) and self.columns
        if not isinstance(source, Features):
            x = self.embedding(source)
        elif grid and self.image_encoder == "convolution":
            x = self.convolutions(source.rows, mask)
        else:
            x = self.row_projection(source.rows)
        places = grid_sinusoids(length, self.columns, self.d_model) if grid else sinusoids(length, self.d_model)
        x = self.drop((x + jnp.asarray(places)[None]).astype(activation_type(self.dtype)), train)
        for layer in self.layers:
            x, _ = layer(x, mask[:, None, None, :], train)
        pooled = self.projection(pool(self.norm(x).astype(jnp.float32), mask, "mean"))
        return unit_vectors(pooled.astype(jnp.float32))


@jax.custom_vjp
def bounded(scale: Array) -> Array:
    """min(scale, LARGEST_SCALE), float32[].

    Above the bound, the gradient is that of `scale` if descent lowers it, and 0 if descent would raise it further. With
    the gradient of the minimum, a scale above the bound would stay there.
    """
    return jnp.minimum(scale, LARGEST_SCALE)


def _bounded_backward(scale: Array, gradient: Array) -> tuple[Array]:
    return (jnp.where((scale > LARGEST_SCALE) & (gradient < 0), 0.0, gradient),)


bounded.defvjp(lambda scale: (bounded(scale), scale), _bounded_backward)


class Model(nn.Module):
    """Encoders of the source and of the target, and the scale of their cosines, 1 / temperature.

    share_encoder: one encoder for both sides, such as paraphrases. temperature: the first one, or the only one unless
    `learn_temperature`; a learned one is at least 1 / 100.
    """

    source_vocab_size: int
    target_vocab_size: int
    source_columns: tuple[int, ...] = ()
    num_layers: int = 2
    d_model: int = 256
    d_ff: int = 1024
    num_heads: int = 4
    d_output: int = 256
    dropout: float = 0.1
    image_encoder: str = "patches"
    convolution_width: int = 32
    share_encoder: bool = False
    temperature: float = 0.07
    learn_temperature: bool = True
    dtype: str = "float32"

    def __post_init__(self) -> None:
        check_choices(self, {"dtype": ("float32", "bfloat16"), "image_encoder": IMAGE_ENCODERS})
        check_positive(self, "d_model", "d_ff", "num_heads", "d_output", "convolution_width")
        check_rates(self, "dropout")
        check_heads(self)
        if self.share_encoder and self.source_vocab_size != self.target_vocab_size:
            raise ValueError("share_encoder=True needs one joint vocabulary")
        super().__post_init__()

    def setup(self) -> None:
        sizes = shared_fields(self, Encoder)
        self.source_encoder = Encoder(self.source_vocab_size, columns_of(self.source_columns, 0), **sizes)
        if not self.share_encoder:
            self.target_encoder = Encoder(self.target_vocab_size, 0, **sizes)
        if self.learn_temperature:
            self.log_scale = self.param("log_scale", nn.initializers.constant(-math.log(self.temperature)), ())

    def encode_source(self, source: Source, train: bool = False) -> Array:
        """Source int[B, S] or features -> unit vectors float32[B, d_output]."""
        return self.source_encoder(source, train)

    def encode_target(self, target: Array, train: bool = False) -> Array:
        """Target int[B, T] -> unit vectors float32[B, d_output]."""
        return (self.source_encoder if self.share_encoder else self.target_encoder)(target, train)

    def scale(self) -> Array:
        """1 / temperature, float32."""
        if not self.learn_temperature:
            return jnp.float32(1 / self.temperature)
        return bounded(jnp.exp(self.log_scale))

    def __call__(self, source: Source, target: Array, train: bool = False) -> tuple[Array, Array, Array]:
        """Source int[B, S] or features, target int[B, T] -> unit vectors of both, and the scale of their cosines."""
        return self.encode_source(source, train), self.encode_target(target, train), self.scale()
