"""Ancestral sampling: text drawn from a model token by token, as one program over a step closure and a cache."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from nmt_jax.decoding.beam import Step

Array = jax.Array


class Drawn(NamedTuple):
    """The state of the sampler."""

    position: Array  # int32[]
    last: Array  # int32[B]: the token chosen last
    tokens: Array  # int32[B, T]
    done: Array  # bool[B]
    cache: Any


def sample(
    step: Step,
    cache: Any,
    given: Array,
    limits: Array,
    keys: Array,
    temperature: Array | float,
    *,
    start: int,
    eos: int,
) -> Array:
    """Draw one text a row, token by token -> int32[B, T] with 0 after `eos`.

    `step` takes the tokens chosen last, int[B] (`start` at first), and the cache to log-probabilities float[B, V] and a
    new cache. given int[B, T]: what a row begins with, 0 from where on it is drawn. limits int[B] <= T bounds a row's
    length. A token is drawn in proportion to p^(1 / temperature); temperature 0 takes the most probable one.

    keys [B] are random keys, one a row: what is drawn hangs on the row's own key, beginning and position alone. A draw
    is the largest of log p + temperature * noise, the noise standard Gumbel (Maddison et al., 2014).
    """

    def proceed(state: Drawn) -> Array:
        return (state.position < given.shape[1]) & ~jnp.all(state.done)

    def advance(state: Drawn) -> Drawn:
        log_probs, cache = step(state.last, state.cache)
        own = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, state.position)
        noise = jax.vmap(lambda key: jax.random.gumbel(key, log_probs.shape[1:]))(own)
        drawn = jnp.argmax(log_probs + temperature * noise, axis=-1).astype(jnp.int32)
        wanted = given[:, state.position]
        chosen = jnp.where(state.done, 0, jnp.where(wanted > 0, wanted, drawn))
        done = state.done | (chosen == eos) | (state.position + 1 >= limits)
        return Drawn(state.position + 1, chosen, state.tokens.at[:, state.position].set(chosen), done, cache)

    first = jnp.full(given.shape[0], start, jnp.int32)
    return jax.lax.while_loop(
        proceed, advance, Drawn(jnp.int32(0), first, jnp.zeros_like(given), limits <= 0, cache)
    ).tokens
