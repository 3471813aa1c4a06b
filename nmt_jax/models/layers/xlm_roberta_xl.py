"""The Transformer encoder of XLM-R XL and XXL (Goyal et al., 2021): norms before the sublayers and at the end."""

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.bart_stack import LastEncoderLayer, layer_fields
from nmt_jax.models.layers.dense import activation_type
from nmt_jax.models.layers.encoder_stack import EncoderStack
from nmt_jax.models.layers.hyperparameters import check_choices, check_heads, check_positive, shared_fields
from nmt_jax.models.layers.transformer_layers import EncoderLayer

CHOICES = {"activation": ("gelu_erf", "gelu", "relu"), "dtype": ("float32", "bfloat16")}


class Embeddings(nn.Module):
    """word + position + segment, without a norm; fields as for `Bert`."""

    vocab_size: int
    max_positions: int
    first_position: int
    num_segments: int
    d_model: int
    dtype: str

    def setup(self) -> None:
        init = nn.initializers.normal(0.02)
        self.word = self.param("word", init, (self.vocab_size, self.d_model))
        self.position = self.param("position", init, (self.first_position + self.max_positions, self.d_model))
        self.segment = self.param("segment", init, (self.num_segments, self.d_model))

    def __call__(self, ids: Array) -> Array:
        """Ids int[B, S] -> float[B, S, D]. Raises ValueError if S exceeds max_positions."""
        length = ids.shape[1]
        if length > self.max_positions:
            raise ValueError(f"a sequence has {length} tokens, but max_positions={self.max_positions}")
        places = self.position[self.first_position : self.first_position + length] + self.segment[:1]
        return jnp.asarray(self.word[ids] + places[None]).astype(activation_type(self.dtype))


class XlmRobertaXL(EncoderStack):
    """The encoder; the defaults are XLM-R XL. first_position: number of unused rows at the start of the table."""

    vocab_size: int = 250880
    num_layers: int = 36
    d_model: int = 2560
    d_ff: int = 10240
    num_heads: int = 32
    max_positions: int = 512
    first_position: int = 2
    num_segments: int = 1
    activation: str = "gelu_erf"
    epsilon: float = 1e-5
    dtype: str = "float32"

    def __post_init__(self) -> None:
        check_choices(self, CHOICES)
        sizes = "vocab_size", "num_layers", "d_model", "d_ff", "num_heads", "max_positions", "num_segments"
        check_positive(self, *sizes)
        check_heads(self)
        super().__post_init__()

    @nn.nowrap
    def layer(self, number: int) -> EncoderLayer:
        fields = layer_fields(self.d_model, self.d_ff, self.num_heads, "pre", self.activation, self.dtype)
        kind = LastEncoderLayer if number == self.num_layers - 1 else EncoderLayer
        return kind(**{**fields, "epsilon": self.epsilon})

    def setup(self) -> None:
        self.embeddings = Embeddings(**shared_fields(self, Embeddings))
        self.layers = [self.layer(number) for number in range(self.num_layers)]

    def begin(self, ids: Array, mask: Array) -> tuple[Array, tuple[Array]]:
        return self.embeddings(ids), (mask[:, None, None, :],)
