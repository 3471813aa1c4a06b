"""What a hypothesis may not say next, whatever the model thinks: rules on the log-probabilities of one step."""

import jax
import jax.numpy as jnp

from nmt_jax.decoding.next_logits import IMPOSSIBLE
from nmt_jax.decoding.search_options import SearchOptions

Array = jax.Array


def follow(search: SearchOptions, log_probs: Array, said: Array, position: Array, eos: int) -> Array:
    """log_probs float[N, V] of what follows `position` pieces of said int[N, T] -> the same under the rules."""
    rows = jnp.arange(said.shape[0])[:, None]
    if search.repetition_penalty > 1:
        old = jnp.zeros(log_probs.shape, bool).at[rows, said].max(jnp.arange(said.shape[1])[None] < position)
        log_probs = jnp.where(old, log_probs * search.repetition_penalty, log_probs)
    if search.no_repeat_ngram_size:
        log_probs = jnp.where(
            repeats(said, position, search.no_repeat_ngram_size, log_probs.shape), IMPOSSIBLE, log_probs
        )
    if search.min_length:
        too_soon = (jnp.arange(log_probs.shape[1]) == eos) & (position < search.min_length)
        log_probs = jnp.where(too_soon[None], IMPOSSIBLE, log_probs)
    return log_probs


def repeats(said: Array, position: Array, n: int, shape: tuple[int, ...]) -> Array:
    """Which pieces would end n pieces that were said before: said int[N, T] up to `position` -> bool[N, V]."""
    num_windows = said.shape[1] - n + 1
    if num_windows <= 0:
        return jnp.zeros(shape, bool)
    last = jax.lax.dynamic_slice_in_dim(said, jnp.maximum(position - n + 1, 0), max(n - 1, 1), axis=1)
    same = jnp.arange(num_windows)[None] + n - 1 < position  # windows that were said whole
    for place in range(n - 1):
        same = same & (said[:, place : place + num_windows] == last[:, place, None])
    rows = jnp.arange(said.shape[0])[:, None]
    return jnp.zeros(shape, bool).at[rows, said[:, n - 1 :]].max(jnp.broadcast_to(same, (len(rows), num_windows)))


def force(log_probs: Array, wanted: Array) -> Array:
    """Only the wanted piece may come where one is: log_probs float[N, V], wanted int[N], 0 for any."""
    others = jnp.arange(log_probs.shape[1])[None] != wanted[:, None]
    return jnp.where((wanted > 0)[:, None] & others, IMPOSSIBLE, log_probs)
