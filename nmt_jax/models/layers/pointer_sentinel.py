"""The pointer sentinel mixture, an output layer that copies earlier words of its text (Merity et al., 2017)."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.dense import Dense
from nmt_jax.models.layers.scaled_attention import MASKED


class PointerSentinel(nn.Module):
    """p = g p_vocab + (1 - g) p_ptr, where the gate g is the attention weight of a sentinel vector.

    q_t = tanh(W h_t + b), z_i = q_t . h_i for the words i of the window, a = softmax([z; q_t . s]) with the learned
    sentinel s. g is the weight of the sentinel, and p_ptr(w) = sum over x_i = w of a_i / (1 - g) (Merity et al., 2017,
    sections 2.2 to 2.4, eq. 3 to 8). Unlike in the paper, the products are divided by sqrt(D): otherwise wide states
    point so sharply at wrong words that the gate closes before the pointer has learned.
    """

    d_hidden: int

    def setup(self) -> None:
        self.query = Dense(self.d_hidden)
        self.sentinel = self.param("sentinel", nn.initializers.zeros, (self.d_hidden,))

    def __call__(
        self, logits: Array, hidden: Array, states: Array, words: Array, visible: Array
    ) -> tuple[Array, dict[str, Array]]:
        """Return log p float32[B, T, V], and `gate` g float32[B, T] and `pointer` a float32[B, T, S], which sum to 1.

        logits float[B, T, V] of p_vocab and hidden float[B, T, D] are those of the predicting steps. The pointer
        selects among the states float[B, S, D] and words int[B, S] where visible bool[B, T, S] is True.
        """
        query = jnp.tanh(self.query(hidden)) * self.d_hidden**-0.5
        scores = jnp.where(visible, jnp.einsum("btd,bsd->bts", query, states), MASKED)
        log_weights = jax.nn.log_softmax(jnp.concatenate([scores, (query @ self.sentinel)[..., None]], axis=-1))
        pointer, log_gate = jnp.exp(log_weights[..., :-1]), log_weights[..., -1:]
        row, step = (jnp.arange(size) for size in pointer.shape[:2])
        pointed = jnp.zeros(logits.shape).at[row[:, None, None], step[None, :, None], words[:, None, :]].add(pointer)
        # In the log domain, so that a pointer with full weight on a wrong word does not stop the gradient of the
        # softmax.
        generated = log_gate + jax.nn.log_softmax(logits.astype(jnp.float32))
        both = jnp.logaddexp(generated, jnp.log(jnp.where(pointed > 0.0, pointed, 1.0)))
        log_p = jnp.where(pointed > 0.0, both, generated)
        return log_p, {"gate": jnp.exp(log_gate[..., 0]), "pointer": pointer}
