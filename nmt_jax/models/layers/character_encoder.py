"""Word vectors computed from the characters of a word (Kim et al., 2016; Jozefowicz et al., 2016)."""

from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.data.vocabulary.word_types import NOTHING, NUM_CHARACTERS
from nmt_jax.models.layers.basic import Dense

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
