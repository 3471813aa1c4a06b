"""The base class of heads for tasks on a pretrained encoder."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.dense import Dense
from nmt_jax.models.layers.dropout import Dropout
from nmt_jax.models.layers.hyperparameters import check_rates

HEAD_STDDEV = 0.02  # of the truncated normal initializer of heads, as in BERT


class FineTuned(nn.Module):
    """A pretrained encoder with an output layer.

    encoder: `Bert`, or another module with its method `states` and its fields num_layers and d_model.
    layers: the input of the head. "last" layer; "mixture", gamma sum_j s_j h_j over all layers and the embeddings, with
    learned gamma and s = softmax(w) (Peters et al., 2018, eq. 1); or a number n, the last n layers concatenated (Devlin
    et al., 2019, table 7). frozen: the encoder is not trained and has no dropout. dropout: applied to that input.
    """

    encoder: nn.Module
    num_outputs: int
    layers: str = "last"
    frozen: bool = False
    dropout: float = 0.1

    def __post_init__(self) -> None:
        check_rates(self, "dropout")
        most = self.encoder.num_layers + 1
        number = int(self.layers) if self.layers.isdecimal() else 0
        if self.layers not in ("last", "mixture") and not 1 <= number <= most:
            raise ValueError(f"layers={self.layers!r}: use last, mixture or a number from 1 to {most}")
        super().__post_init__()

    def setup(self) -> None:
        if self.layers == "mixture":
            self.mixture_weights = self.param("mixture_weights", nn.initializers.zeros, (self.encoder.num_layers + 1,))
            self.mixture_scale = self.param("mixture_scale", nn.initializers.ones, ())
        self.drop = Dropout(self.dropout)
        self.output = self.dense(self.num_outputs)

    def dense(self, features: int) -> Dense:
        """A dense layer of the head; always in float32, as it is small."""
        return Dense(features, kernel_init=nn.initializers.truncated_normal(HEAD_STDDEV))

    def states(self, ids: Array, mask: Array, segments: Array | None, train: bool) -> Array:
        """Ids int[B, S], mask bool[B, S], segments int[B, S] or None -> the input of the head, float[B, S, E]."""
        return self.head_input(self.hidden_states(ids, mask, segments, train))

    def hidden_states(self, ids: Array, mask: Array, segments: Array | None, train: bool) -> list[Array]:
        """The L + 1 hidden states of the encoder, float[B, S, D]; arguments as for `states`."""
        hidden, _ = self.encoder.states(ids, mask, segments, train and not self.frozen)
        return jax.lax.stop_gradient(hidden) if self.frozen else hidden

    def head_input(self, hidden: list[Array]) -> Array:
        """Hidden states -> the input of the head, float[B, S, E]."""
        if self.layers == "last":
            return hidden[-1]
        if self.layers == "mixture":
            weights = jax.nn.softmax(self.mixture_weights)
            return self.mixture_scale * jnp.einsum("l,lbsd->bsd", weights, jnp.stack(hidden))
        return jnp.concatenate(hidden[-int(self.layers) :], axis=-1)
