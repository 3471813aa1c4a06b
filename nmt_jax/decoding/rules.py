"""Rules that modify the log-probabilities of one step: repetition, repeated n-grams, minimum length, prefixes."""

import jax
import jax.numpy as jnp

from nmt_jax.decoding.next_logits import IMPOSSIBLE
from nmt_jax.decoding.search_options import SearchOptions

Array = jax.Array


def follow(search: SearchOptions, log_probs: Array, generated: Array, position: Array, eos: int) -> Array:
    """Apply the rules of `search` to log_probs float[N, V], given the first `position` pieces of generated int[N, T].

    repetition_penalty: Keskar et al. (2019), section 4.1; no_repeat_ngram_size: Paulus et al. (2018), section 2.5.
    """
    rows = jnp.arange(generated.shape[0])[:, None]
    if search.repetition_penalty > 1:
        old = jnp.zeros(log_probs.shape, bool).at[rows, generated].max(jnp.arange(generated.shape[1])[None] < position)
        log_probs = jnp.where(old, log_probs * search.repetition_penalty, log_probs)
    if search.no_repeat_ngram_size:
        log_probs = jnp.where(
            repeats(generated, position, search.no_repeat_ngram_size, log_probs.shape), IMPOSSIBLE, log_probs
        )
    if search.min_length:
        too_soon = (jnp.arange(log_probs.shape[1]) == eos) & (position < search.min_length)
        log_probs = jnp.where(too_soon[None], IMPOSSIBLE, log_probs)
    return log_probs


def repeats(generated: Array, position: Array, n: int, shape: tuple[int, ...]) -> Array:
    """Which pieces would repeat an n-gram of generated int[N, T] up to `position` -> bool[N, V]."""
    num_windows = generated.shape[1] - n + 1
    if num_windows <= 0:
        return jnp.zeros(shape, bool)
    last = jax.lax.dynamic_slice_in_dim(generated, jnp.maximum(position - n + 1, 0), max(n - 1, 1), axis=1)
    same = jnp.arange(num_windows)[None] + n - 1 < position  # n-grams that are complete
    for offset in range(n - 1):
        same = same & (generated[:, offset : offset + num_windows] == last[:, offset, None])
    rows = jnp.arange(generated.shape[0])[:, None]
    return jnp.zeros(shape, bool).at[rows, generated[:, n - 1 :]].max(jnp.broadcast_to(same, (len(rows), num_windows)))


def force(log_probs: Array, forced: Array) -> Array:
    """Rule out all pieces but the forced one: log_probs float[N, V], forced int[N], 0 where any piece is allowed."""
    others = jnp.arange(log_probs.shape[1])[None] != forced[:, None]
    return jnp.where((forced > 0)[:, None] & others, IMPOSSIBLE, log_probs)
