"""Pooling of the states of a sequence into one vector."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from nmt_jax.models.layers.dense import Dense
from nmt_jax.models.layers.scores import make_score

Array = jax.Array

POOLING = ("mean", "first")


def pool(states: Array, mask: Array, pooling: str) -> Array:
    """States float[B, S, D], mask bool[B, S] -> their mean, or the first, float[B, D]; the mean of no states is 0."""
    if pooling == "first":
        return states[:, 0]
    total = jnp.einsum("bsd,bs->bd", states, mask.astype(jnp.float32))
    return total / jnp.maximum(jnp.sum(mask, axis=1), 1)[:, None]


def masked_softmax(scores: Array, mask: Array) -> Array:
    """exp(e_t) / sum_t' exp(e_t') over the positions of `mask`, in float32.

    scores float[..., T], mask bool[..., T] -> float32[..., T]: exactly 0 outside the mask, and everywhere if the mask
    is empty.
    """
    scores = jnp.where(mask, scores.astype(jnp.float32), -jnp.inf)
    top = jax.lax.stop_gradient(jnp.max(scores, axis=-1, keepdims=True))
    # An empty mask has the maximum -inf, which must not enter the derivative of exp.
    exponentials = jnp.where(mask, jnp.exp(jnp.where(mask, scores - jnp.where(mask, top, 0.0), 0.0)), 0.0)
    total = jnp.sum(exponentials, axis=-1, keepdims=True)
    return exponentials / jnp.where(total == 0.0, 1.0, total)


class AttentionPooling(nn.Module):
    """The weighted mean v of states h (Yang et al., 2016, eq. 5 to 7 and 8 to 10).

    u_t = tanh(W h_t + b), a_t = exp(u_t^T u) / sum_t' exp(u_t'^T u), v = sum_t a_t h_t, with learned W, b and context
    vector u.
    """

    d_attention: int
    dtype: str = "float32"

    def setup(self) -> None:
        """Create W, b and u."""
        self.hidden = Dense(self.d_attention, dtype=self.dtype)
        self.context = self.param("context", nn.initializers.normal(self.d_attention**-0.5), (self.d_attention,))
        self.score_function = make_score("dot", self.d_attention, self.d_attention)

    def __call__(self, states: Array, mask: Array) -> tuple[Array, Array]:
        """States float[B, T, D], mask bool[B, T] -> float[B, D], weights float32[B, T]; zeros for an empty row."""
        query = jnp.broadcast_to(self.context, (states.shape[0], 1, self.d_attention))
        scores = self.score_function(query, jnp.tanh(self.hidden(states)))[:, 0]
        weights = masked_softmax(scores, mask)
        return jnp.einsum("bt,btd->bd", weights, states), weights
