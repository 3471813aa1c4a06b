"""Sampling: text drawn from a model token by token, as one program over a step closure and a cache."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.decoding.beam_search import SearchRequest
from nmt_jax.decoding.method import StepModel
from nmt_jax.decoding.next_logits import IMPOSSIBLE, Step
from nmt_jax.decoding.stochastic_beam import stochastic_beam_search

BLOCK = 128  # pieces
COLDEST = 1e-6  # temperature; log-probabilities divided by less overflow in float32


@dataclasses.dataclass(frozen=True)
class Sampling:
    """Sampling (a `DecodingMethod`): pieces are drawn with probability proportional to p^(1 / temperature).

    temperature: 0 takes the most probable piece. top_k: if > 0, only the k most probable pieces are drawn (Fan et al.,
    2018). top_p: if < 1, only the smallest set of pieces with that much probability (Holtzman et al., 2020). epsilon:
    if > 0, only pieces of at least that probability, and the best one (Hewitt et al., 2022). Probabilities are those at
    the temperature. num_samples: texts per sentence or prompt. replacement: if False, the texts of a sentence are
    distinct, drawn from the model as it is by Gumbel top-k (Kool et al., 2019).

    Raises ValueError if an option is invalid.
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
            raise ValueError(f"num_samples={self.num_samples}: must be at least 1")
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature={self.temperature}: must be at least 0")
        if 0 < self.temperature < COLDEST:
            raise ValueError(f"temperature={self.temperature}: must be at least {COLDEST}, or 0 for the best piece")
        if self.top_k < 0:
            raise ValueError(f"top_k={self.top_k}: must be at least 1, or 0 for all pieces")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p={self.top_p}: must be above 0 and at most 1, which is all pieces")
        if not 0 <= self.epsilon < 1:
            raise ValueError(f"epsilon={self.epsilon}: must be at least 0 and below 1")
        if not self.replacement and (self.temperature, self.top_k, self.top_p, self.epsilon) != (1.0, 0, 1.0, 0.0):
            raise ValueError("sampling without replacement excludes temperature, top_k, top_p and epsilon")

    @property
    def width(self) -> int:
        return self.num_samples

    @property
    def num_results(self) -> int:
        return self.num_samples

    @property
    def min_limit(self) -> int:
        return 0

    @property
    def needs_attention(self) -> bool:
        return False

    def check_phrases(self) -> None:
        raise ValueError("constraints need a beam search; they are not supported by sampling")

    def run(self, model: StepModel, request: SearchRequest, seeds: Array) -> tuple[Array, Array]:
        """Draw `num_samples` texts for each of B sentences: tokens int32[B, n, T], log-probabilities float32[B, n].

        A sample depends on the seed of its sentence and on its number among the samples.
        """
        step, cache, max_length, bos, eos, *_ = model
        if not self.replacement:
            prefix, keys = self._prefix(request, max_length), self._keys(seeds)
            count = self.num_samples
            return stochastic_beam_search(
                step, cache, prefix, request.limits, keys, num_samples=count, start=bos, eos=eos
            )
        drawn = sample(step, cache, *self.expand(request, seeds, max_length), self, start=bos, eos=eos)
        return self.by_sentence(*drawn)

    def _prefix(self, request: SearchRequest, max_length: int) -> Array:
        return jnp.zeros((len(request.limits), max_length), jnp.int32) if request.prefix is None else request.prefix

    def _keys(self, seeds: Array) -> Array:
        return jax.vmap(jax.random.fold_in, in_axes=(None, 0))(jax.random.key(self.seed), seeds)

    def expand(self, request: SearchRequest, seeds: Array, max_length: int) -> tuple[Array, Array, Array]:
        """The prefix, limit and random key of each of the B * n texts, as `sample` takes them."""
        repeat = functools.partial(jnp.repeat, repeats=self.num_samples, axis=0)
        numbers = jnp.tile(jnp.arange(self.num_samples), len(seeds))
        keys = sample_keys(self.seed, repeat(seeds), numbers)
        return repeat(self._prefix(request, max_length)), repeat(request.limits), keys

    def by_sentence(self, tokens: Array, log_probs: Array) -> tuple[Array, Array]:
        """The texts of `sample` by sentence: tokens int32[B, n, T], log-probabilities float32[B, n]."""
        return tokens.reshape(-1, self.num_samples, tokens.shape[-1]), log_probs.reshape(-1, self.num_samples)

    def truncate(self, log_probs: Array) -> Array:
        """Return log_probs float[N, V] with IMPOSSIBLE for pieces that must not be drawn."""
        if not self.temperature or (self.top_k, self.top_p, self.epsilon) == (0, 1.0, 0.0):
            return log_probs
        at_temperature = jax.nn.log_softmax(log_probs / self.temperature)
        least = jnp.full((len(log_probs), 1), -jnp.inf)
        if self.top_k and self.top_k < log_probs.shape[-1]:
            least = jax.lax.top_k(at_temperature, self.top_k)[0][:, -1:]
        if self.epsilon:
            least = jnp.maximum(least, jnp.log(self.epsilon))
        allowed = at_temperature >= jnp.minimum(least, at_temperature.max(axis=-1, keepdims=True))
        if self.top_p < 1:  # probabilities: rounding by exp and log would decide about the last piece of the nucleus
            probabilities = jnp.exp(at_temperature)
            allowed &= probabilities >= _nucleus(probabilities, self.top_p)
        return jnp.where(allowed, log_probs, IMPOSSIBLE)


def sample_keys(seed: int, prompts: Any, numbers: Any) -> Array:
    """Return a random key per sample [N], from the number of its prompt and its number among the prompt's samples."""
    fold = jax.vmap(lambda prompt, k: jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), prompt), k))
    return fold(jnp.asarray(prompts), jnp.asarray(numbers))


def _nucleus(probabilities: Array, share: float) -> Array:
    """Return the largest threshold, float[N, 1], such that the pieces above it have a total probability of `share`.

    Found by bisection, to 2^-30 of the most probable piece, which is ten times as fast as sorting V pieces.
    """
    most = probabilities.max(axis=-1, keepdims=True)

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) / 2
        inside = jnp.where(probabilities >= middle, probabilities, 0.0).sum(axis=-1, keepdims=True)
        return jnp.where(inside >= share, middle, low), jnp.where(inside >= share, high, middle)

    return jax.lax.fori_loop(0, 30, halve, (jnp.zeros_like(most), most))[0]


def draw(log_probs: Array, keys: Array, temperature: float) -> Array:
    """Draw a piece per row, int32[N], with probability proportional to p^(1 / temperature).

    log_probs float[N, V], keys [N]. By inversion: the first piece at which the cumulative sum exceeds a uniform random
    number. Sums over blocks come first, so one random number and about 2 sqrt(V) sums per row are enough, while Gumbel
    noise needs V random numbers.
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
    # By rounding, the remainder may exceed the sum of the block; then take its most probable piece.
    place = jnp.where(reached.any(axis=-1), jnp.argmax(reached, axis=-1), jnp.argmax(inside, axis=-1))
    return (block * BLOCK + place).astype(jnp.int32)


class Drawn(NamedTuple):
    """The state of the sampler."""

    position: Array  # int32[]
    last: Array  # int32[B]: the last token
    tokens: Array  # int32[B, T]
    log_probs: Array  # float32[B]: of the tokens so far
    done: Array  # bool[B]
    cache: Any


def sample(
    step: Step, cache: Any, prefix: Array, limits: Array, keys: Array, sampling: Sampling, *, start: int, eos: int
) -> tuple[Array, Array]:
    """Draw one text per row: tokens int32[B, T] with 0 after `eos`, and log-probabilities float[B].

    `step` takes the last tokens int[B] (at first `start`) and the cache, and returns the next logits and the new cache.
    prefix int[B, T]: the beginning of each text, 0 from the first position that is drawn. limits int[B] <= T: the
    longest length of each row. keys [B]: a random key per row; a text depends only on its key, prefix and limit.

    The log-probabilities are those of the model, without temperature and truncation.
    """
    first = start_sample(cache, prefix, limits, start)
    final = continue_sample(step, first, prefix, limits, keys, sampling, eos=eos, until=prefix.shape[1])
    return final.tokens, final.log_probs


def start_sample(cache: Any, prefix: Array, limits: Array, start: int) -> Drawn:
    """The state of `sample` before the first step."""
    rows = len(prefix)
    last = jnp.full(rows, start, jnp.int32)
    return Drawn(jnp.int32(0), last, jnp.zeros_like(prefix), jnp.zeros(rows), limits <= 0, cache)


def continue_sample(
    step: Step,
    state: Drawn,
    prefix: Array,
    limits: Array,
    keys: Array,
    sampling: Sampling,
    *,
    eos: int,
    until: Array | int,
) -> Drawn:
    """Advance `sample` to the position `until`, or until all texts are finished."""

    def proceed(state: Drawn) -> Array:
        return (state.position < jnp.minimum(until, prefix.shape[1])) & ~jnp.all(state.done)

    def advance(state: Drawn) -> Drawn:
        following, cache = step(state.last, state.cache)
        log_probs = following.log_probs
        step_keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, state.position)
        drawn = draw(sampling.truncate(log_probs), step_keys, sampling.temperature)
        forced = prefix[:, state.position]
        chosen = jnp.where(state.done, 0, jnp.where(forced > 0, forced, drawn))
        more = jnp.where(state.done, 0.0, jnp.take_along_axis(log_probs, chosen[:, None], axis=1)[:, 0])
        return Drawn(
            state.position + 1,
            chosen,
            state.tokens.at[:, state.position].set(chosen),
            state.log_probs + more,
            state.done | (chosen == eos) | (state.position + 1 >= limits),
            cache,
        )

    return jax.lax.while_loop(proceed, advance, state)
