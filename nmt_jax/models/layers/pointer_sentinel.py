"""The pointer sentinel mixture (Merity et al., 2017): a language model that may repeat a word it has just read."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from nmt_jax.models.layers.attention import MASKED
from nmt_jax.models.layers.dense import Dense

Array = jax.Array


class PointerSentinel(nn.Module):
    """p = g p_vocab + (1 - g) p_ptr, where the pointer itself decides how much it leaves to the softmax.

    The state h_t, which has read the words up to t, asks by q_t = tanh(W h_t + b), and the state h_i of every word of
    the window answers by z_i = q_t . h_i; so does a learned vector s, the sentinel. a = softmax([z; q_t . s]). What the
    sentinel gets is the gate g; the rest falls to the words that were read, p_ptr(w) = sum over x_i = w of
    a_i / (1 - g) (Merity et al., 2017, sections 2.2 to 2.4, eq. 3 to 8). Not as there: the products are divided by
    sqrt(D), or wide states point so sharply at wrong words that the gate shuts before the pointer has learned.
    """

    d_hidden: int

    def setup(self) -> None:
        """W and b of the query, and the sentinel."""
        self.query = Dense(self.d_hidden)
        self.sentinel = self.param("sentinel", nn.initializers.zeros, (self.d_hidden,))

    def __call__(
        self, logits: Array, hidden: Array, states: Array, words: Array, visible: Array
    ) -> tuple[Array, dict[str, Array]]:
        """-> log p float32[B, T, V]; `gate` g float32[B, T] and `pointer` a float32[B, T, S], together 1 at each step.

        logits float[B, T, V] of p_vocab and hidden float[B, T, D] belong to the steps that predict; states
        float[B, S, D] and words int[B, S] can be pointed at where visible bool[B, T, S].
        """
        query = jnp.tanh(self.query(hidden)) * self.d_hidden**-0.5
        scores = jnp.where(visible, jnp.einsum("btd,bsd->bts", query, states), MASKED)
        log_weights = jax.nn.log_softmax(jnp.concatenate([scores, (query @ self.sentinel)[..., None]], axis=-1))
        pointer, log_gate = jnp.exp(log_weights[..., :-1]), log_weights[..., -1:]
        row, step = (jnp.arange(size) for size in pointer.shape[:2])
        pointed = jnp.zeros(logits.shape).at[row[:, None, None], step[None, :, None], words[:, None, :]].add(pointer)
        # In logarithms, so that a pointer that is sure of a wrong word does not cut the softmax off from its gradient.
        spoken = log_gate + jax.nn.log_softmax(logits.astype(jnp.float32))
        both = jnp.logaddexp(spoken, jnp.log(jnp.where(pointed > 0.0, pointed, 1.0)))
        log_p = jnp.where(pointed > 0.0, both, spoken)
        return log_p, {"gate": jnp.exp(log_gate[..., 0]), "pointer": pointer}
