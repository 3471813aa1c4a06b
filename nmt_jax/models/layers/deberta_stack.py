"""The encoder of DeBERTa, versions 2 and 3: disentangled attention to contents and positions (He et al., 2021)."""

import math

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
from jax import Array

from nmt_jax.models.layers import bert_stack
from nmt_jax.models.layers.activations import activation
from nmt_jax.models.layers.dense import Dense, activation_type
from nmt_jax.models.layers.encoder_stack import EncoderStack
from nmt_jax.models.layers.hyperparameters import check_choices, check_heads, check_positive, shared_fields
from nmt_jax.models.layers.normalization import LayerNorm
from nmt_jax.models.layers.scaled_attention import attend

CHOICES = {
    "activation": ("gelu_erf", "gelu", "relu"),
    "conv_activation": ("tanh", "gelu_erf", "gelu", "relu"),
    "dtype": ("float32", "bfloat16"),
}


def log_distances(distances: np.ndarray, buckets: int, largest: int) -> np.ndarray:
    """Distances int[...], of either sign -> buckets int[...] from 1 - buckets to buckets - 1.

    Half of them are exact; the others grow with the logarithm, up to that of `largest`. As in the program of the
    authors; the paper does not describe it.
    """
    middle = buckets // 2
    absolute = np.where(np.abs(distances) < middle, middle - 1, np.abs(distances))
    ratio = np.log(absolute.astype(np.float32) / np.float32(middle)) / np.float32(math.log((largest - 1) / middle))
    far = np.ceil(ratio * np.float32(middle - 1)).astype(int) + middle
    return np.where(absolute <= middle, distances, far * np.sign(distances))


class Layer(bert_stack.Layer):
    """BERT's layer with disentangled attention; its `bias` is the embeddings of relative positions, float[2 K, D].

    buckets, largest: of `log_distances`; 0 buckets means that each distance below `largest` has its own. to_positions:
    contents attend to positions; from_positions: positions to contents. shared_keys: positions have the projections of
    contents. conv_width: if not 0, a convolution of the input is added to the output, and their sum normalized.
    """

    buckets: int = 256
    largest: int = 512
    to_positions: bool = True
    from_positions: bool = True
    shared_keys: bool = True
    conv_width: int = 0
    conv_activation: str = "tanh"

    def setup(self) -> None:
        super().setup()
        if not self.shared_keys:
            if self.to_positions:
                self.position_key = Dense(self.d_model, dtype=self.dtype)
            if self.from_positions:
                self.position_query = Dense(self.d_model, dtype=self.dtype)
        if self.conv_width:
            sides = ((self.conv_width - 1) // 2,) * 2
            self.conv = nn.Conv(self.d_model, (self.conv_width,), padding=(sides,), dtype=activation_type(self.dtype))
            self.conv_norm = LayerNorm(self.epsilon)

    def __call__(self, x: Array, mask: Array, bias: Array | None = None, train: bool = False) -> tuple[Array, Array]:
        """As `bert_stack.Layer`; for a convolution, x must be 0 at padding."""
        y, weights = super().__call__(x, mask, bias, train)
        if not self.conv_width:
            return y, weights
        around = jnp.where(mask[:, 0, 0, :, None], self.conv(x), 0.0)
        named = self.conv_activation
        around = nn.tanh(around) if named == "tanh" else activation(named, self.dtype)(around)
        return self.conv_norm(y + around), weights

    def attend(
        self, query: Array, keys: Array, values: Array, mask: Array, bias: Array | None, key: Array | None
    ) -> tuple[Array, Array]:
        """softmax((Q_i K_j + Q_i K'_d(i,j) + K_j Q'_d(i,j)) / sqrt(3 d_k)) V, K' and Q' of positions (eq. 4).

        Without one of the terms, the scores are divided by sqrt(2 d_k). The third term of the paper has d(j, i); the
        program of the authors has the opposite distance, as here.
        """
        assert bias is not None
        scale = ((1 + self.to_positions + self.from_positions) * query.shape[-1]) ** -0.5
        length, span = query.shape[2], len(bias) // 2
        distances = np.arange(length)[:, None] - np.arange(length)[None, :]
        if self.buckets:
            distances = log_distances(distances, self.buckets, self.largest)
        places = np.clip(distances + span, 0, 2 * span - 1)[None, None]  # [1, 1, S, S]
        scores = jnp.zeros((1, 1, 1, 1), query.dtype)
        if self.to_positions:
            found = self._heads(self.key if self.shared_keys else self.position_key, bias)
            scores = scores + jnp.take_along_axis(jnp.einsum("bhid,hpd->bhip", query, found), places, axis=-1)
        if self.from_positions:
            found = self._heads(self.query if self.shared_keys else self.position_query, bias)
            products = jnp.einsum("bhjd,hpd->bhjp", keys, found)
            scores = scores + jnp.take_along_axis(products, places.swapaxes(2, 3), axis=-1).swapaxes(2, 3)
        return attend(query, keys, values, mask, self.attention_dropout, key, scores * scale, scale)

    def _heads(self, projection: Dense, positions: Array) -> Array:
        """Embeddings of positions float[2 K, D] -> their projection for each head, float[H, 2 K, Dk]."""
        return projection(positions[None])[0].reshape(len(positions), self.num_heads, -1).swapaxes(0, 1)


class Embeddings(nn.Module):
    """norm(word), and 0 at padding."""

    vocab_size: int
    d_model: int
    epsilon: float
    dtype: str

    def setup(self) -> None:
        self.word = self.param("word", nn.initializers.normal(0.02), (self.vocab_size, self.d_model))
        self.norm = LayerNorm(self.epsilon)

    def __call__(self, ids: Array, mask: Array) -> Array:
        """Ids int[B, S], mask bool[B, S] -> float[B, S, D]."""
        return jnp.where(mask[..., None], self.norm(self.word[ids]), 0.0).astype(activation_type(self.dtype))


class Deberta(EncoderStack):
    """DeBERTa, versions 2 and 3; the defaults are DeBERTa-v3 base. Most fields are those of `Layer`.

    max_positions: length of the texts that the model was trained with. largest: below 1 for max_positions.
    norm_positions: the embeddings of relative positions are normalized. conv_width: of the first layer.
    """

    vocab_size: int = 128100
    num_layers: int = 12
    d_model: int = 768
    d_ff: int = 3072
    num_heads: int = 12
    max_positions: int = 512
    activation: str = "gelu_erf"
    epsilon: float = 1e-7
    buckets: int = 256
    largest: int = -1
    to_positions: bool = True
    from_positions: bool = True
    shared_keys: bool = True
    norm_positions: bool = True
    conv_width: int = 0
    conv_activation: str = "tanh"
    dtype: str = "float32"

    def __post_init__(self) -> None:
        check_choices(self, CHOICES)
        check_positive(self, "vocab_size", "num_layers", "d_model", "d_ff", "num_heads", "max_positions")
        check_heads(self)
        if self.buckets > 0 and not 4 <= self.buckets < 2 * self.reach - 2:
            raise ValueError(f"buckets={self.buckets} must be 0, or from 4 to twice the largest distance, {self.reach}")
        if self.conv_width < 0 or (self.conv_width and self.conv_width % 2 == 0):
            raise ValueError(f"conv_width={self.conv_width} must be 0 or odd")
        super().__post_init__()

    @property
    def reach(self) -> int:
        """The largest relative position."""
        return self.largest if self.largest > 0 else self.max_positions

    @nn.nowrap
    def layer(self, number: int) -> Layer:
        none = {"dropout": 0.0, "attention_dropout": 0.0, "init_stddev": 0.02}
        own = {"buckets": max(self.buckets, 0), "largest": self.reach, "conv_width": 0 if number else self.conv_width}
        return Layer(**shared_fields(self, Layer) | none | own)

    def setup(self) -> None:
        self.embeddings = Embeddings(**shared_fields(self, Embeddings))
        span = self.buckets if self.buckets > 0 else self.reach
        self.positions = self.param("positions", nn.initializers.normal(0.02), (2 * span, self.d_model))
        if self.norm_positions:
            self.positions_norm = LayerNorm(self.epsilon)
        self.layers = [self.layer(number) for number in range(self.num_layers)]

    def begin(self, ids: Array, mask: Array) -> tuple[Array, tuple[Array, Array]]:
        positions = self.positions_norm(self.positions) if self.norm_positions else self.positions
        return self.embeddings(ids, mask), (mask[:, None, None, :], positions.astype(activation_type(self.dtype)))
