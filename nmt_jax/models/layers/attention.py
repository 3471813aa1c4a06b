"""Multi-head attention, with a cache for decoding, and the global and local attention of recurrent decoders."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax import platforms
from nmt_jax.models.layers.basic import Dense, Dropout, activation_type
from nmt_jax.models.layers.scaled_attention import MASKED, attend
from nmt_jax.models.layers.scores import make_score

# The order in which the axes of keys [B, H, T * K, Dk] are cached, by `Platform.cached_keys`; its own inverse. A few
# queries multiply columns twice as fast on a CPU.
KEY_AXES = {"rows": (0, 1, 2, 3), "columns": (0, 1, 3, 2)}


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1 .. head_H) W_O (Vaswani et al., 2017, section 3.2.2).

    scaled: divide scores by sqrt(d_k); T5 does not.
    """

    d_model: int
    num_heads: int
    d_k: int
    d_v: int
    dropout: float
    dtype: str
    use_bias: bool = False  # as in the paper
    scaled: bool = True

    def setup(self) -> None:
        self.query = Dense(self.num_heads * self.d_k, self.use_bias, self.dtype)
        self.key = Dense(self.num_heads * self.d_k, self.use_bias, self.dtype)
        self.value = Dense(self.num_heads * self.d_v, self.use_bias, self.dtype)
        self.output = Dense(self.d_model, self.use_bias, self.dtype)
        self.weight_dropout = Dropout(self.dropout)

    def heads(self, x: Array) -> Array:
        """x float[B, T, H * Dk] -> float[B, H, T, Dk]."""
        return x.reshape(*x.shape[:2], self.num_heads, -1).swapaxes(1, 2)

    def memory(self, x: Array) -> tuple[Array, Array]:
        """x float[B, S, D] -> keys float[B, H, S, Dk], values float[B, H, S, Dv]."""
        return self.heads(self.key(x)), self.heads(self.value(x))

    def __call__(
        self, x: Array, memory: tuple[Array, Array], mask: Array, train: bool, bias: Array | None = None
    ) -> tuple[Array, Array]:
        """x float[B, T, D], mask bool[B or 1, 1, T or 1, S] -> float[B, T, D], weights float32[B, H, T, S].

        bias: added to the scores, float[1, H, T, S].
        """
        query, key = self.heads(self.query(x)), self.weight_dropout.key(train)
        scale = None if self.scaled else 1.0
        context, weights = attend(query, *memory, mask, self.dropout, key, bias, scale)
        return self.output(context.swapaxes(1, 2).reshape(*x.shape[:2], -1)), weights

    def init_memory(self, batch_size: int, beam_size: int, max_length: int) -> tuple[Array, Array]:
        """Return an empty cache of keys float[B, H, T * K, Dk], axes ordered by KEY_AXES, and values [B, H, T * K, Dv].

        Row t * K + k holds what beam slot k wrote at step t.
        """
        rows = max_length * beam_size
        shape = (batch_size, self.num_heads, rows, self.d_k)
        dtype = activation_type(self.dtype)
        keys = jnp.zeros(tuple(shape[axis] for axis in KEY_AXES[platforms.current().cached_keys]), dtype)
        return keys, jnp.zeros((batch_size, self.num_heads, rows, self.d_v), dtype)

    def extend(
        self, x: Array, memory: tuple[Array, Array], position: Array, mask: Array
    ) -> tuple[Array, tuple[Array, Array]]:
        """Write the keys and values of x float[B, K, D] at step `position`, and attend to all steps written so far.

        mask bool[B, 1, K, T * K]: the rows that belong to the history of a beam. Returns float[B, K, D] and the new
        memory.
        """
        row, axes = position * x.shape[1], KEY_AXES[platforms.current().cached_keys]
        keys, values = memory
        new_keys, new_values = self.memory(x)
        keys = jax.lax.dynamic_update_slice_in_dim(keys, new_keys.transpose(axes), row, axis=axes.index(2))
        values = jax.lax.dynamic_update_slice_in_dim(values, new_values, row, axis=2)
        return self(x, (keys.transpose(axes), values), mask, train=False)[0], (keys, values)


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
