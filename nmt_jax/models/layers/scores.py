"""The score functions of attention: e = score(s, h) of a query (decoder state) s and a key (encoder state) h.

A score has two parts: `prepare` is applied to the keys once, and the call scores queries against the prepared keys.
Queries are float[B, Q, Dq], keys float[B, S, Dk], scores float[B, Q, S].
"""

import flax.linen as nn
import jax
import jax.numpy as jnp

from nmt_jax.models.layers.dense import Dense
from nmt_jax.models.layers.scaled_attention import MASKED

Array = jax.Array


class Dot(nn.Module):
    """e = s^T h (Luong et al., 2015, section 3.1, `dot`); query and key must have the same width."""

    def prepare(self, keys: Array) -> Array:
        """The keys themselves."""
        return keys

    def __call__(self, query: Array, prepared: Array) -> Array:
        if query.shape[-1] != prepared.shape[-1]:
            raise ValueError(
                f"score='dot' needs queries and keys of the same width, but queries have {query.shape[-1]} and keys "
                f"{prepared.shape[-1]}: use score='general'"
            )
        return jnp.einsum("bqd,bsd->bqs", query, prepared)


class ScaledDot(Dot):
    """e = s^T h / sqrt(D) (Vaswani et al., 2017, eq. 1)."""

    def __call__(self, query: Array, prepared: Array) -> Array:
        return super().__call__(query * query.shape[-1] ** -0.5, prepared)


class General(nn.Module):
    """e = s^T W h (Luong et al., 2015, section 3.1, `general`; multiplicative or bilinear attention)."""

    d_query: int
    dtype: str = "float32"

    def setup(self) -> None:
        self.weight = Dense(self.d_query, use_bias=False, dtype=self.dtype)

    def prepare(self, keys: Array) -> Array:
        """W h, float[B, S, Dq]."""
        return self.weight(keys)

    def __call__(self, query: Array, prepared: Array) -> Array:
        return jnp.einsum("bqd,bsd->bqs", query, prepared)


class ReducedRank(nn.Module):
    """e = (Q s)^T (R h), with Q and R of rank k: bilinear attention with fewer parameters."""

    rank: int
    dtype: str = "float32"

    def setup(self) -> None:
        self.query = Dense(self.rank, use_bias=False, dtype=self.dtype)
        self.key = Dense(self.rank, use_bias=False, dtype=self.dtype)

    def prepare(self, keys: Array) -> Array:
        """R h, float[B, S, k]."""
        return self.key(keys)

    def __call__(self, query: Array, prepared: Array) -> Array:
        return jnp.einsum("bqk,bsk->bqs", self.query(query), prepared)


class Additive(nn.Module):
    """e = v^T tanh(W s + U h) (Bahdanau et al., 2015, appendix A.1.2).

    With the coverage c, the sum of the attention of earlier steps: e = v^T tanh(W s + U h + w c) (See et al., 2017, eq.
    11). w is 0 at first.
    """

    d_attention: int
    dtype: str = "float32"
    use_bias: bool = False
    coverage: bool = False

    def setup(self) -> None:
        self.query = Dense(self.d_attention, use_bias=False, dtype=self.dtype)
        self.key = Dense(self.d_attention, use_bias=self.use_bias, dtype=self.dtype)
        self.vector = self.param("vector", nn.initializers.normal(self.d_attention**-0.5), (self.d_attention,))
        if self.coverage:
            self.coverage_vector = self.param("coverage_vector", nn.initializers.zeros, (self.d_attention,))

    def prepare(self, keys: Array) -> Array:
        """U h, float[B, S, A]."""
        return self.key(keys)

    def __call__(self, query: Array, prepared: Array, coverage: Array | None = None) -> Array:
        """Scores; coverage c float[B, Q, S] is given if the field is True."""
        hidden = self.query(query)[:, :, None, :] + prepared[:, None, :, :]
        if coverage is not None:
            hidden = hidden + coverage[..., None] * self.coverage_vector[None, None, None, :]
        return jnp.tanh(hidden) @ self.vector


class Concat(Additive):
    """e = w2^T tanh(W1 [s; h] + b) (Luong et al., 2015, section 3.1, `concat`: a multi-layer perceptron).

    W1 [s; h] is the sum of two products, of s and of h: additive attention with a bias.
    """

    use_bias: bool = True


class Location(nn.Module):
    """e = W s, a score per source position whatever its state h is (Luong et al., 2015, eq. 8, `location`).

    Positions after the first `positions` have the score of masked ones: words near the end of a long sentence are
    ignored, as in the paper.
    """

    positions: int
    dtype: str = "float32"

    def setup(self) -> None:
        self.weight = Dense(self.positions, use_bias=False, dtype=self.dtype)

    def prepare(self, keys: Array) -> Array:
        """The keys themselves, whose number is all that matters."""
        return keys

    def __call__(self, query: Array, prepared: Array) -> Array:
        length = prepared.shape[1]
        scores = self.weight(query)[..., :length]
        rest = ((0, 0), (0, 0), (0, length - scores.shape[-1]))
        return jnp.pad(scores, rest, constant_values=MASKED)


WITH_COVERAGE = ("additive", "concat")
SCORES = ("dot", "scaled_dot", "general", "reduced_rank", "additive", "concat", "location")


def make_score(name: str, d_query: int, d_attention: int, dtype: str = "float32", coverage: bool = False) -> nn.Module:
    """Return the score function of that name; d_attention: width of the hidden layer, rank, or number of positions.

    coverage: whether it reads a coverage, which only those in WITH_COVERAGE do.
    """
    if name == "dot":
        return Dot()
    if name == "scaled_dot":
        return ScaledDot()
    if name == "general":
        return General(d_query, dtype)
    if name == "reduced_rank":
        return ReducedRank(d_attention, dtype)
    if name == "additive":
        return Additive(d_attention, dtype, coverage=coverage)
    if name == "concat":
        return Concat(d_attention, dtype, coverage=coverage)
    if name == "location":
        return Location(d_attention, dtype)
    raise ValueError(f"score={name!r}: use one of {', '.join(SCORES)}")
