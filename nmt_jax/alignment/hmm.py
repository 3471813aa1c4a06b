"""The hidden Markov model of word alignment (Vogel et al., 1996), with NULL as in Och and Ney (2003, section 2.1.2).

The state of target position j is the source position i that generates the word, or NULL. A position follows another
with a probability that depends on the jump between them. NULL keeps the position, from which the next jump is made.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.alignment.ibm1 import Expectations, Lexical


class Jumps(NamedTuple):
    """Values for jumps of -(n - 1) to n - 1 positions, float32[2n - 1], and for the first position, float32[n]."""

    between: Array
    first: Array


class JumpStatistics(NamedTuple):
    """Expected number of each jump, and how often it was possible, divided by the sum over all possible jumps."""

    counts: Jumps
    exposure: Jumps


@dataclasses.dataclass(frozen=True)
class HMM:
    """p(i | i') = (1 - uniform) c(i - i') / sum over i'' of c(i'' - i') + uniform / S (Och and Ney, 2003, equation 8).

    null_probability: of NULL after any position. uniform: interpolation with a uniform distribution, which gives long
    jumps a probability. The parameters are the weights c of the jumps; the first position is like a jump.
    """

    null_probability: float = 0.08
    uniform: float = 0.2

    def initial(self, longest: int) -> Jumps:
        """Returns equal weights; longest: padded length of the longest sentence."""
        return Jumps(jnp.ones(2 * longest - 1), jnp.ones(longest))

    def expectations(self, parameters: Jumps, lexical: Lexical) -> Expectations:
        """Returns the posteriors of a batch, by the forward-backward algorithm with scaling (Rabiner, 1989)."""
        chain = _chain(parameters, lexical.source, self.uniform)
        words = (1.0 - self.null_probability) * jnp.moveaxis(lexical.words, 1, 0)  # [T, B, S]
        null = self.null_probability * jnp.moveaxis(lexical.null, 1, 0)[..., None]  # [T, B, 1]
        mask = jnp.moveaxis(lexical.target, 1, 0)[..., None]
        is_first = (jnp.arange(len(words)) == 0)[:, None, None]
        steps = (words, null, mask, is_first)

        def forward(state: Array, step: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
            words, null, mask, is_first = step
            real, kept = words * jnp.where(is_first, state, chain.move(state)), null * state
            scale = jnp.where(mask, (real + kept).sum(-1, keepdims=True), 1.0)
            real, kept = real / scale, kept / scale
            return jnp.where(mask, real + kept, state), (state, real, kept, scale)

        def backward(after: Array, step: tuple[Array, ...]) -> tuple[Array, Array]:
            words, null, mask, scale = step
            before = (chain.move_back(words * after) + null * after) / scale
            return jnp.where(mask, before, after), after

        _, (states, real, kept, scale) = jax.lax.scan(forward, chain.first, steps)
        _, after = jax.lax.scan(backward, jnp.ones_like(chain.first), (words, null, mask, scale), reverse=True)
        jumped = jnp.where(is_first, 0.0, words * after / scale)
        first = (real[0] + kept[0]) * after[0]
        return Expectations(
            jnp.moveaxis(real * after, 0, 1),
            jnp.moveaxis((kept * after).sum(-1), 0, 1),
            jnp.log(scale).sum(),
            _statistics(chain, parameters, states, jumped, first),
        )

    def update(self, parameters: Jumps, statistics: JumpStatistics) -> Jumps:
        """Returns the weights after a step that does not lower the likelihood (Hunter, 2004, equation 3)."""

        def ratio(counts: Array, exposure: Array) -> Array:
            weights = counts / jnp.maximum(exposure, 1e-30)
            weights = weights / jnp.maximum(weights.max(), 1e-30)
            return jnp.maximum(weights, 1e-9)  # a row of weights must not be all 0

        return jax.tree.map(ratio, statistics.counts, statistics.exposure)


class Chain(NamedTuple):
    """Transitions in a batch: weights float32[S, S] of a jump from row to column, and their sums float32[B, S].

    first: float32[B, S], the distribution of the first position. source: bool[B, S]. length: float32[B, 1].
    """

    weights: Array
    sums: Array
    first: Array
    first_sum: Array
    source: Array
    length: Array
    uniform: float

    def move(self, state: Array) -> Array:
        """Returns the distribution float32[B, S] of the next position; it is not 0 at padding."""
        jumped = (state / self.sums) @ self.weights
        return (1.0 - self.uniform) * jumped + self.uniform * state.sum(-1, keepdims=True) / self.length

    def move_back(self, future: Array) -> Array:
        """Returns the expectation of `future`, 0 at padding, over the next position."""
        jumped = (future @ self.weights.T) / self.sums
        return (1.0 - self.uniform) * jumped + self.uniform * future.sum(-1, keepdims=True) / self.length


def _chain(parameters: Jumps, source: Array, uniform: float) -> Chain:
    size, middle = source.shape[1], len(parameters.first) - 1
    positions = jnp.arange(size)
    weights = parameters.between[positions[None, :] - positions[:, None] + middle]
    length = jnp.maximum(source.sum(-1, keepdims=True), 1).astype(jnp.float32)
    first = jnp.where(source, parameters.first[None, :size], 0.0)
    # Rows without words have the sum 1, so that nothing is divided by 0.
    first_sum = jnp.where(source.any(-1, keepdims=True), first.sum(-1, keepdims=True), 1.0)
    sums = jnp.where(source, source.astype(jnp.float32) @ weights.T, 1.0)
    first = jnp.where(source, (1.0 - uniform) * first / first_sum + uniform / length, 0.0)
    return Chain(weights, sums, first, first_sum, source, length, uniform)


def _statistics(chain: Chain, parameters: Jumps, states: Array, jumped: Array, first: Array) -> JumpStatistics:
    """Returns the statistics of a batch.

    states: float32[T, B, S], distributions before each step. jumped: float32[T, B, S], by which the probability of a
    jump to a position is multiplied. first: float32[B, S], posterior of the first position. Only transitions that the
    uniform distribution does not explain are counted.
    """
    size = chain.source.shape[1]
    share = 1.0 - chain.uniform
    departures = states / chain.sums[None]
    counts = share * jnp.einsum("tbi,tbk->ik", departures, jumped) * chain.weights
    departed = (share * departures * (jumped @ chain.weights.T)).sum(0)  # [B, S]
    exposure = jnp.einsum("bi,bk->ik", departed / chain.sums, chain.source.astype(jnp.float32))
    jump = jnp.arange(size)[None, :] - jnp.arange(size)[:, None] + len(parameters.first) - 1
    empty = Jumps(jnp.zeros_like(parameters.between), jnp.zeros_like(parameters.first))
    weighted = jnp.where(chain.source, share * parameters.first[None, :size] / chain.first_sum, 0.0)
    starts = first * weighted / jnp.where(chain.first > 0, chain.first, 1.0)
    possible = jnp.where(chain.source, starts.sum(-1, keepdims=True) / chain.first_sum, 0.0)
    return JumpStatistics(
        Jumps(empty.between.at[jump].add(counts), empty.first.at[:size].add(starts.sum(0))),
        Jumps(empty.between.at[jump].add(exposure), empty.first.at[:size].add(possible.sum(0))),
    )
