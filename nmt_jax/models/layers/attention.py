"""The attention of recurrent decoders: global, local and hard."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.dense import Dense
from nmt_jax.models.layers.scaled_attention import MASKED
from nmt_jax.models.layers.scores import make_score


class Attention(nn.Module):
    """a_t = softmax(score(s_t, h)), c_t = sum_j a_tj h_j over the source states h.

    kind: "global" attends to all positions (Bahdanau et al., 2015); "local-m" to the window p_t - D .. p_t + D around
    p_t = t; "local-p" to the window around p_t = S sigmoid(v^T tanh(W s_t)), with weights multiplied by a Gaussian of
    standard deviation D / 2 (Luong et al., 2015, section 3.2, eq. 9 and 10). p_t stays within the sentence, so that a
    window is never empty. "hard" reads one position, c_t = h_j (Xu et al., 2015, section 4.1): the one with the largest
    weight; in training, when there are random streams `positions` and `averaging`, one that is drawn from a_t, but in
    half of the rows c_t is the sum as above. The weights of such a step are those that `losses.hard_attention` reads:
    a_tj at the position drawn, 1 at one position of a row that averages, and 0 elsewhere.
    """

    score: str
    kind: str
    d_query: int
    d_attention: int
    window: int
    dtype: str = "float32"
    coverage: bool = False

    def setup(self) -> None:
        self.score_function = make_score(self.score, self.d_query, self.d_attention, self.dtype, self.coverage)
        if self.kind == "local-p":
            self.position_hidden = Dense(self.d_attention, use_bias=False, dtype=self.dtype)
            self.position_vector = Dense(1, use_bias=False)

    def memory(self, states: Array, mask: Array) -> dict[str, Array]:
        """States float[B, S, D] and mask bool[B, S] -> the memory that all steps attend to."""
        return {"keys": self.score_function.prepare(states), "values": states, "mask": mask}

    def __call__(
        self, query: Array, memory: dict[str, Array], position: Array, coverage: Array | None = None
    ) -> tuple[Array, Array]:
        """Queries float[B, Q, Dq] of steps `position` int[Q] -> context float[B, Q, D], weights float32[B, Q, S].

        coverage: the sum of the weights of earlier steps, float32[B, Q, S], if the field of that name is True.
        """
        covered = [] if coverage is None else [coverage]
        scores = self.score_function(query, memory["keys"], *covered).astype(jnp.float32)
        mask = memory["mask"][:, None, :]
        if self.kind.startswith("local"):
            distance = jnp.arange(scores.shape[-1], dtype=jnp.float32)[None, None] - self._centre(query, mask, position)
            mask = mask & (jnp.abs(distance) <= self.window)
        weights = jax.nn.softmax(jnp.where(jnp.broadcast_to(mask, scores.shape), scores, MASKED))
        if self.kind == "local-p":
            weights = weights * jnp.exp(-2.0 * (distance / self.window) ** 2)  # exp(-d^2 / 2 sigma^2), sigma = D / 2
        used, weights = self._choose(weights) if self.kind == "hard" else (weights, weights)
        return jnp.einsum("bqs,bsd->bqd", used, memory["values"]), weights

    def _choose(self, weights: Array) -> tuple[Array, Array]:
        """Weights a float32[B, Q, S] of hard attention -> those of the sum c, and those to return, see the class."""
        best = jax.nn.one_hot(jnp.argmax(weights, axis=-1), weights.shape[-1])
        if not self.has_rng("positions"):
            return best, weights
        position = jax.random.categorical(self.make_rng("positions"), jnp.log(jax.lax.stop_gradient(weights)))
        drawn = jax.nn.one_hot(position, weights.shape[-1])
        averages = jax.random.bernoulli(self.make_rng("averaging"), shape=(len(weights), 1, 1))
        return jnp.where(averages, weights, drawn), jnp.where(averages, best, drawn * weights)

    def _centre(self, query: Array, mask: Array, position: Array) -> Array:
        """The window centres p_t, float32[B, Q, 1]."""
        length = mask.sum(axis=-1, keepdims=True).astype(jnp.float32)
        if self.kind == "local-m":
            return jnp.minimum(position.astype(jnp.float32)[None, :, None], length - 1)
        return length * jax.nn.sigmoid(self.position_vector(jnp.tanh(self.position_hidden(query))))
