"""Forced decoding: log-probabilities of given texts, token by token."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from nmt_jax.decoding.next_logits import Step

Array = jax.Array


def token_log_probs(
    step: Step, cache: Any, given: Array, *, start: int, attention: Callable[[Any], Array] | None = None
) -> tuple[Array, Array]:
    """Return log p(y_t | y_1 .. y_{t-1}) of given int[B, T], float[B, T], and the attention weights float[B, T, S].

    Both are 0 where given is 0. step: maps the previous tokens, int[B] (`start` at first), and the cache to the next
    logits and a new cache. attention: extracts the weights float[B, S] of the step from the cache; S = 0 without it.
    """

    def advance(carry: tuple[Array, Any], tokens: Array) -> tuple[tuple[Array, Any], tuple[Array, Array]]:
        following, cache = step(*carry)
        own = jnp.take_along_axis(following.logits, tokens[:, None], axis=1)[:, 0] - following.log_normalizer
        weights = attention(cache) if attention else jnp.zeros((len(tokens), 0))
        return (tokens, cache), (jnp.where(tokens > 0, own, 0.0), weights)

    first = jnp.full(given.shape[0], start, given.dtype)
    log_probs, weights = jax.lax.scan(advance, (first, cache), given.T)[1]
    return log_probs.T, weights.swapaxes(0, 1)
