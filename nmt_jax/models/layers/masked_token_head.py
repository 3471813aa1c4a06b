"""The head of a masked language model (Devlin et al., 2019, section 3.1) at one position of each row."""

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.activations import activation
from nmt_jax.models.layers.dense import Dense, matmul
from nmt_jax.models.layers.normalization import LayerNorm


class MaskedTokenHead(nn.Module):
    """Logits norm(f(W h + b)) E^T + c, for the table E of word embeddings; the parameters are those of `models.bert`.

    The other fields are those of the encoder.
    """

    activation: str
    epsilon: float
    dtype: str = "float32"

    @nn.compact
    def __call__(self, states: Array, table: Array, positions: Array) -> Array:
        """States float[B, S, D] of the last layer, table float[V, E], positions int[B] -> logits float32[B, V]."""
        x = jnp.take_along_axis(states, positions[:, None, None], axis=1)[:, 0]
        x = Dense(table.shape[1], dtype=self.dtype, name="transform")(x)
        x = LayerNorm(self.epsilon, name="transform_norm")(activation(self.activation, self.dtype)(x))
        bias = self.param("output_bias", nn.initializers.zeros, (len(table),))
        return matmul(x, table.T, self.dtype) + bias[None]
