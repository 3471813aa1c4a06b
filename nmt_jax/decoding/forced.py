"""Scoring: what a model thinks of given texts, token by token, over a step closure and a cache."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from nmt_jax.decoding.next_logits import Step

Array = jax.Array


def token_log_probs(
    step: Step, cache: Any, given: Array, *, start: int, attention: Callable[[Any], Array] | None = None
) -> tuple[Array, Array]:
    """Log-probabilities float[B, T] of given int[B, T], each after those before it, and what they looked at.

    0 where given is 0. `step` takes the tokens before, int[B] (`start` at first), and the cache to what may come next
    and a new cache, in which `attention` finds the weights float[B, S] of the step: float[B, T, S] in all,
    S = 0 without it.
    """

    def advance(carry: tuple[Array, Any], tokens: Array) -> tuple[tuple[Array, Any], tuple[Array, Array]]:
        following, cache = step(*carry)
        own = jnp.take_along_axis(following.logits, tokens[:, None], axis=1)[:, 0] - following.log_normalizer
        weights = attention(cache) if attention else jnp.zeros((len(tokens), 0))
        return (tokens, cache), (jnp.where(tokens > 0, own, 0.0), weights)

    first = jnp.full(given.shape[0], start, given.dtype)
    log_probs, weights = jax.lax.scan(advance, (first, cache), given.T)[1]
    return log_probs.T, weights.swapaxes(0, 1)
