"""ELMo (Peters et al., 2018): a bidirectional LSTM language model over words that are read as characters.

Both directions share the character encoder and the softmax. A state of the forward network depends on no later word,
one of the backward network on no earlier word. Word vectors are computed from characters as in Kim et al. (2016) and
Jozefowicz et al. (2016).
"""

import functools
from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.data.vocabulary.word_types import NOTHING, NUM_CHARACTERS
from nmt_jax.models.layers.dense import Dense
from nmt_jax.models.layers.dropout import Dropout
from nmt_jax.models.layers.hyperparameters import check_choices, check_positive, check_rates
from nmt_jax.models.layers.recurrent import ProjectedLSTM

CARRY = -2.0  # initial bias of a highway's gate, so that it first passes its input on (Srivastava et al., 2015)


class Highway(nn.Module):
    """y = g relu(W x + b) + (1 - g) x with g = sigmoid(W_g x + b_g) (Srivastava et al., 2015, eq. 3)."""

    dtype: str = "float32"

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """x float[..., D] -> float[..., D]."""
        changed = nn.relu(Dense(x.shape[-1], dtype=self.dtype, name="change")(x))
        bias = self.param("gate_bias", nn.initializers.constant(CARRY), (x.shape[-1],))
        logits = Dense(x.shape[-1], use_bias=False, dtype=self.dtype, name="gate")(x)
        gate = jax.nn.sigmoid(logits + jnp.broadcast_to(bias, logits.shape))
        return gate * changed + (1.0 - gate) * x


class CharacterEncoder(nn.Module):
    """Word vectors from characters: convolutions, max-pooling over time, highway layers and a projection.

    Kim et al. (2016), eq. 1 to 3 and 5, with relu in place of tanh as in Jozefowicz et al. (2016). Padding characters
    are zero vectors at which no window starts, so that the result does not depend on the number of padding characters.
    widths, filters: each width of a convolution and its number of filters.
    """

    d_character: int
    widths: Sequence[int]
    filters: Sequence[int]
    num_highways: int
    d_word: int
    dtype: str = "float32"

    def setup(self) -> None:
        self.table = self.param("table", nn.initializers.normal(1.0), (NUM_CHARACTERS, self.d_character))
        self.convolutions = [Dense(number, dtype=self.dtype) for number in self.filters]
        self.highways = [Highway(self.dtype) for _ in range(self.num_highways)]
        self.projection = Dense(self.d_word, dtype=self.dtype)

    def __call__(self, characters: Array) -> Array:
        """Characters int[..., C] -> float[..., D]."""
        present = characters != NOTHING
        x = self.table[characters] * present[..., None]
        length = x.shape[-2]
        unpadded = [(0, 0)] * (x.ndim - 2)
        pooled = []
        for width, convolution in zip(self.widths, self.convolutions, strict=True):
            padded = jnp.pad(x, [*unpadded, (0, width - 1), (0, 0)])
            windows = jnp.concatenate([padded[..., k : k + length, :] for k in range(width)], axis=-1)
            responses = jnp.where(present[..., None], convolution(windows), -jnp.inf)
            pooled.append(nn.relu(jnp.max(responses, axis=-2)))  # 0 for a word without characters
        y = jnp.concatenate(pooled, axis=-1)
        for highway in self.highways:
            y = highway(y)
        return self.projection(y)


CHOICES = {"dtype": ("float32", "bfloat16")}


class Model(nn.Module):
    """The bidirectional language model of Peters et al. (2018), section 3.4; the default sizes are smaller.

    vocab_size: size of the softmax; the input is characters. widths, filters: each width of a convolution and its
    number of filters. d_projection: P, the width of word vectors and of the output of each layer and direction. Layers
    but the first have a residual connection. dropout: applied to the input of each layer and of the softmax.
    """

    vocab_size: int
    max_characters: int = 20
    d_character: int = 16
    widths: Sequence[int] = (1, 2, 3, 4, 5)
    filters: Sequence[int] = (32, 32, 64, 128, 128)
    num_highways: int = 2
    num_layers: int = 2
    d_hidden: int = 512
    d_projection: int = 128
    dropout: float = 0.1
    dtype: str = "float32"

    def __post_init__(self) -> None:
        check_choices(self, CHOICES)
        check_positive(self, "d_character", "num_layers", "d_hidden", "d_projection")
        check_rates(self, "dropout")
        if self.max_characters < 3:
            raise ValueError(f"max_characters={self.max_characters} must be at least 3: begin and end take two")
        if self.num_highways < 0:
            raise ValueError(f"num_highways={self.num_highways} must not be negative")
        if not self.widths or len(self.widths) != len(self.filters) or min(*self.widths, *self.filters) < 1:
            raise ValueError(
                f"widths={tuple(self.widths)} and filters={tuple(self.filters)} must have the same length, at least 1, "
                "and be positive"
            )
        super().__post_init__()

    def setup(self) -> None:
        self.characters = CharacterEncoder(
            self.d_character, self.widths, self.filters, self.num_highways, self.d_projection, self.dtype
        )
        lstm = functools.partial(ProjectedLSTM, self.d_hidden, self.d_projection, self.dtype)
        self.forward = [lstm() for _ in range(self.num_layers)]
        self.backward = [lstm() for _ in range(self.num_layers)]
        self.drop = Dropout(self.dropout)
        init = nn.initializers.normal(self.d_projection**-0.5)
        self.output_table = self.param("output_table", init, (self.vocab_size, self.d_projection))
        self.output_bias = self.param("output_bias", nn.initializers.zeros, (self.vocab_size,))

    def _run(self, x: Array, mask: Array, train: bool, reverse: bool) -> list[Array]:
        """The outputs of all layers of one direction, float[B, T, P] each."""
        outputs = []
        for number, layer in enumerate(self.backward if reverse else self.forward):
            y = layer(self.drop(x, train), mask, reverse)
            x = x + y if number else y
            outputs.append(x)
        return outputs

    def __call__(self, characters: Array, train: bool = False) -> tuple[Array, Array]:
        """Characters int[B, T, C] of T words -> the softmax inputs of both directions, float[B, T, P + 1] each.

        The forward one at t depends on the words up to t and predicts word t + 1; the backward one depends on the words
        from t on and predicts word t - 1. Component P + 1 is 1, so that the product with `output_kernel` includes the
        bias.
        """
        x, mask = self.characters(characters), jnp.ones(characters.shape[:2], bool)
        return self._top(self._run(x, mask, train, False), train), self._top(self._run(x, mask, train, True), train)

    def _top(self, outputs: list[Array], train: bool) -> Array:
        top = self.drop(outputs[-1], train)
        return jnp.concatenate([top, jnp.ones((*top.shape[:-1], 1))], axis=-1)

    def output_kernel(self) -> Array:
        """The softmax weights float[P + 1, V]; the last row is the bias."""
        return jnp.concatenate([self.output_table.T, self.output_bias[None]])

    def states(self, characters: Array, mask: Array) -> Array:
        """Characters int[B, T, C], mask bool[B, T] (False: padding) -> float[L + 1, B, T, 2 P], forward, then backward.

        Layer 0 is the word vector, twice (section 3.2).
        """
        x = self.characters(characters)
        both = zip(self._run(x, mask, False, False), self._run(x, mask, False, True), strict=True)
        return jnp.stack([jnp.concatenate(pair, axis=-1) for pair in ((x, x), *both)])
