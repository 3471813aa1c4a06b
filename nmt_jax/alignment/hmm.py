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

        def forward(state: Array, step: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
            words, null, mask, is_first = step
            real = words * jnp.where(is_first, state, chain.move(state))
            following = real + null * state
            inverse = 1.0 / jnp.where(mask, following.sum(-1, keepdims=True), 1.0)
            return jnp.where(mask, following * inverse, state), (state, real * inverse, null * inverse, inverse)

        def backward(sums: Sums, step: tuple[Array, ...]) -> tuple[Sums, tuple[Array, Array]]:
            words, mask, is_first, state, real, kept, inverse = step
            # By this the probability of a jump to a position is multiplied.
            jumped = words * sums.after * inverse
            back = jumped @ chain.weights.T
            uniform = chain.anywhere * jumped.sum(-1, keepdims=True)
            before = back / chain.sums + uniform + kept * sums.after
            departures = jnp.where(is_first, 0.0, state / chain.sums)
            links, null = real * sums.after, kept * state * sums.after
            return Sums(
                jnp.where(mask, before, sums.after),
                links + null,
                sums.jumps + departures.T @ jumped,
                sums.departed + departures * back,
            ), (links, null.sum(-1))

        _, (states, real, kept, inverse) = jax.lax.scan(forward, chain.first, (words, null, mask, is_first))
        empty = jnp.zeros_like(chain.first)
        start = Sums(jnp.ones_like(chain.first), empty, jnp.zeros_like(chain.weights), empty)
        steps = (words, mask, is_first, states, real, kept, inverse)
        sums, (links, to_null) = jax.lax.scan(backward, start, steps, reverse=True)
        return Expectations(
            jnp.moveaxis(links, 0, 1),
            jnp.moveaxis(to_null, 0, 1),
            -jnp.log(inverse).sum(),
            _statistics(chain, parameters, sums),
        )

    def update(self, parameters: Jumps, statistics: JumpStatistics) -> Jumps:
        """Returns the weights after a step that does not lower the likelihood (Hunter, 2004, equation 3)."""

        def ratio(counts: Array, exposure: Array) -> Array:
            weights = counts / jnp.maximum(exposure, 1e-30)
            weights = weights / jnp.maximum(weights.max(), 1e-30)
            return jnp.maximum(weights, 1e-9)  # a row of weights must not be all 0

        return jax.tree.map(ratio, statistics.counts, statistics.exposure)


class Sums(NamedTuple):
    """What the backward pass carries.

    after: float32[B, S], probability of the words after a position given its state, over that of these words.
    posterior: float32[B, S], of the state of the position. jumps: float32[S, S], expected numbers of jumps from row to
    column that the uniform distribution does not explain, over their weights. departed: float32[B, S], how many of
    these begin at each word.
    """

    after: Array
    posterior: Array
    jumps: Array
    departed: Array


class Chain(NamedTuple):
    """Transitions in a batch: weights float32[S, S] of a jump from row to column, and their sums float32[B, S].

    The weights are multiplied by the share of transitions that are not uniform; anywhere: float32[B, 1], probability of
    a uniform transition to a position. first: float32[B, S], the distribution of the first position, and first_weights,
    the part of it that is not uniform. source: bool[B, S].
    """

    weights: Array
    sums: Array
    anywhere: Array
    first: Array
    first_weights: Array
    first_sum: Array
    source: Array

    def move(self, state: Array) -> Array:
        """Returns the distribution float32[B, S] of the next position; it is not 0 at padding."""
        return (state / self.sums) @ self.weights + self.anywhere * state.sum(-1, keepdims=True)


def _chain(parameters: Jumps, source: Array, uniform: float) -> Chain:
    size, middle = source.shape[1], len(parameters.first) - 1
    positions = jnp.arange(size)
    weights = parameters.between[positions[None, :] - positions[:, None] + middle]
    length = jnp.maximum(source.sum(-1, keepdims=True), 1).astype(jnp.float32)
    anywhere = uniform / length
    first = jnp.where(source, parameters.first[None, :size], 0.0)
    # Rows without words have the sum 1, so that nothing is divided by 0.
    first_sum = jnp.where(source.any(-1, keepdims=True), first.sum(-1, keepdims=True), 1.0)
    sums = jnp.where(source, source.astype(jnp.float32) @ weights.T, 1.0)
    first_weights = (1.0 - uniform) * first / first_sum
    first = jnp.where(source, first_weights + anywhere, 0.0)
    return Chain((1.0 - uniform) * weights, sums, anywhere, first, first_weights, first_sum, source)


def _statistics(chain: Chain, parameters: Jumps, sums: Sums) -> JumpStatistics:
    """Returns the statistics of a batch, of transitions that the uniform distribution does not explain."""
    size = chain.source.shape[1]
    counts = sums.jumps * chain.weights
    exposure = jnp.einsum("bi,bk->ik", sums.departed / chain.sums, chain.source.astype(jnp.float32))
    jump = jnp.arange(size)[None, :] - jnp.arange(size)[:, None] + len(parameters.first) - 1
    empty = Jumps(jnp.zeros_like(parameters.between), jnp.zeros_like(parameters.first))
    starts = sums.posterior * chain.first_weights / jnp.where(chain.first > 0, chain.first, 1.0)
    possible = jnp.where(chain.source, starts.sum(-1, keepdims=True) / chain.first_sum, 0.0)
    return JumpStatistics(
        Jumps(empty.between.at[jump].add(counts), empty.first.at[:size].add(starts.sum(0))),
        Jumps(empty.between.at[jump].add(exposure), empty.first.at[:size].add(possible.sum(0))),
    )
