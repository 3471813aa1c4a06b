"""The position-wise feed-forward layer of the Transformer (Vaswani et al., 2017, section 3.3)."""

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.activations import activation
from nmt_jax.models.layers.dense import Dense
from nmt_jax.models.layers.dropout import Dropout, dropped_relu


class FeedForward(nn.Module):
    """FFN(x) = act(x W1 + b1) W2 + b2 (Vaswani et al., 2017, eq. 2).

    The activation `swiglu` makes it (silu(x W1) * x V) W2 (Shazeer, 2020, eq. 6), with biases.
    """

    d_ff: int
    activation: str
    dropout: float
    dtype: str

    @nn.compact
    def __call__(self, x: Array, train: bool) -> Array:
        """x float[..., D] -> float[..., D]; dropout is applied to the F hidden units."""
        hidden = Dense(self.d_ff, dtype=self.dtype, name="hidden")(x)
        drop = Dropout(self.dropout)
        if self.activation == "relu" and hidden.dtype != jnp.float32 and (key := drop.key(train)) is not None:
            return Dense(x.shape[-1], dtype=self.dtype, name="output")(dropped_relu(hidden, self.dropout, key))
        hidden = activation(self.activation, self.dtype)(hidden)
        if self.activation == "swiglu":
            hidden = hidden * Dense(self.d_ff, dtype=self.dtype, name="gate")(x)
        return Dense(x.shape[-1], dtype=self.dtype, name="output")(drop(hidden, train))
