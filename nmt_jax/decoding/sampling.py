"""Sampling: text drawn from a model token by token, as one program over a step closure and a cache."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from nmt_jax.decoding.next_logits import IMPOSSIBLE, Step

Array = jax.Array

BLOCK = 128  # pieces


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How texts are drawn: in proportion to p^(1 / temperature), temperature 0 being the most probable piece.

    Only among the pieces that are left by: top_k > 0, the most probable ones (Fan et al., 2018); top_p < 1, the fewest
    that have so much probability together (Holtzman et al., 2020); epsilon > 0, those of at least that probability and
    the best one (Hewitt et al., 2022). Probabilities are those at the temperature. num_samples texts each; without
    replacement they are different ones, drawn by Gumbel top-k (Kool et al., 2019) from the model as it is.
    ValueError for what cannot be.
    """

    num_samples: int = 1
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    epsilon: float = 0.0
    replacement: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if self.num_samples < 1:
            raise ValueError(f"num_samples={self.num_samples}: at least 1")
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature={self.temperature}: at least 0")
        if self.top_k < 0:
            raise ValueError(f"top_k={self.top_k}: at least 1, or 0 for all")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p={self.top_p}: above 0 and at most 1, which is all")
        if not 0 <= self.epsilon < 1:
            raise ValueError(f"epsilon={self.epsilon}: at least 0 and below 1")
        if not self.replacement and (self.temperature, self.top_k, self.top_p, self.epsilon) != (1.0, 0, 1.0, 0.0):
            raise ValueError("without replacement texts are drawn from the model as it is: no temperature, no top_k …")

    def truncate(self, log_probs: Array) -> Array:
        """log_probs float[N, V] -> the same, IMPOSSIBLE where a piece is left out."""
        if not self.temperature or (self.top_k, self.top_p, self.epsilon) == (0, 1.0, 0.0):
            return log_probs
        at_temperature = jax.nn.log_softmax(log_probs / self.temperature)
        least = jnp.full((len(log_probs), 1), -jnp.inf)
        if self.top_k and self.top_k < log_probs.shape[-1]:
            least = jax.lax.top_k(at_temperature, self.top_k)[0][:, -1:]
        if self.top_p < 1:
            least = jnp.maximum(least, jnp.log(_nucleus(jnp.exp(at_temperature), self.top_p)))
        if self.epsilon:
            least = jnp.maximum(least, jnp.log(self.epsilon))
        least = jnp.minimum(least, at_temperature.max(axis=-1, keepdims=True))
        return jnp.where(at_temperature >= least, log_probs, IMPOSSIBLE)


def _nucleus(probabilities: Array, share: float) -> Array:
    """The largest threshold above which the pieces of float[N, V] have `share` together, float[N, 1].

    By bisection, to 2^-30 of the most probable piece: ten times as fast as sorting V pieces.
    """
    most = probabilities.max(axis=-1, keepdims=True)

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) / 2
        inside = jnp.where(probabilities >= middle, probabilities, 0.0).sum(axis=-1, keepdims=True)
        return jnp.where(inside >= share, middle, low), jnp.where(inside >= share, high, middle)

    return jax.lax.fori_loop(0, 30, halve, (jnp.zeros_like(most), most))[0]


def draw(log_probs: Array, keys: Array, temperature: float) -> Array:
    """A piece a row, int32[N], in proportion to p^(1 / temperature): log_probs float[N, V], keys [N].

    By inversion: the first piece up to which there is more than a uniform share of all. Blocks come before pieces, so
    that one random number and about 2 sqrt(V) ordered sums do, where Gumbel noise takes V random numbers.
    """
    if not temperature:
        return jnp.argmax(log_probs, axis=-1).astype(jnp.int32)
    rows = jnp.arange(len(log_probs))
    weights = jnp.exp((log_probs - log_probs.max(axis=-1, keepdims=True)) / temperature)
    weights = jnp.pad(weights, ((0, 0), (0, -weights.shape[1] % BLOCK))).reshape(len(rows), -1, BLOCK)
    before = jnp.cumsum(weights.sum(axis=-1), axis=-1)
    share = jax.vmap(jax.random.uniform)(keys) * before[:, -1]
    block = jnp.argmax(before > share[:, None], axis=-1)
    inside = weights[rows, block]
    rest = share - jnp.where(block > 0, before[rows, block - 1], 0.0)
    reached = (jnp.cumsum(inside, axis=-1) > rest[:, None]) & (inside > 0)
    # Rounding may leave the share a hair beyond the block's own sum: then its likeliest piece.
    place = jnp.where(reached.any(axis=-1), jnp.argmax(reached, axis=-1), jnp.argmax(inside, axis=-1))
    return (block * BLOCK + place).astype(jnp.int32)


class Drawn(NamedTuple):
    """The state of the sampler."""

    position: Array  # int32[]
    last: Array  # int32[B]: the token chosen last
    tokens: Array  # int32[B, T]
    log_probs: Array  # float32[B]: of the tokens so far
    done: Array  # bool[B]
    cache: Any


def sample(
    step: Step,
    cache: Any,
    given: Array,
    limits: Array,
    keys: Array,
    sampling: Sampling,
    *,
    start: int,
    eos: int,
) -> tuple[Array, Array]:
    """Draw one text a row, token by token -> tokens int32[B, T] with 0 after `eos`, log-probabilities float[B].

    `step` takes the tokens chosen last, int[B] (`start` at first), and the cache to what may come next and a new
    cache. given int[B, T]: what a row begins with, 0 from where on it is drawn. limits int[B] <= T bounds a row's
    length.

    keys [B] are random keys, one a row: what is drawn hangs on the row's own key, beginning and position alone. The
    log-probability that comes back is the model's own, whatever is left out and whatever the temperature.
    """

    def proceed(state: Drawn) -> Array:
        return (state.position < given.shape[1]) & ~jnp.all(state.done)

    def advance(state: Drawn) -> Drawn:
        following, cache = step(state.last, state.cache)
        log_probs = following.log_probs
        own = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, state.position)
        drawn = draw(sampling.truncate(log_probs), own, sampling.temperature)
        wanted = given[:, state.position]
        chosen = jnp.where(state.done, 0, jnp.where(wanted > 0, wanted, drawn))
        more = jnp.where(state.done, 0.0, jnp.take_along_axis(log_probs, chosen[:, None], axis=1)[:, 0])
        return Drawn(
            state.position + 1,
            chosen,
            state.tokens.at[:, state.position].set(chosen),
            state.log_probs + more,
            state.done | (chosen == eos) | (state.position + 1 >= limits),
            cache,
        )

    rows = given.shape[0]
    first = Drawn(
        jnp.int32(0), jnp.full(rows, start, jnp.int32), jnp.zeros_like(given), jnp.zeros(rows), limits <= 0, cache
    )
    final = jax.lax.while_loop(proceed, advance, first)
    return final.tokens, final.log_probs
