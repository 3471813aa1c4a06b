"""Sampling without replacement by stochastic beam search, the Gumbel top-k of all texts (Kool et al., 2019)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.decoding.beam_search import reorder
from nmt_jax.decoding.next_logits import IMPOSSIBLE, Step
from nmt_jax.decoding.search_options import force
from nmt_jax.decoding.topk import top_k


class Perturbed(NamedTuple):
    """The state of the search: the K prefixes of each sentence with the largest perturbed log-probabilities."""

    position: Array  # int32[]
    last: Array  # int32[B, K]
    tokens: Array  # int32[B, K, T]
    log_probs: Array  # float32[B, K]: phi
    scores: Array  # float32[B, K]: G, the maximum perturbed log-probability over all texts with this prefix
    ended: Array  # bool[B, K]
    cache: Any


def stochastic_beam_search(
    step: Step, cache: Any, given: Array, limits: Array, keys: Array, *, num_samples: int, start: int, eos: int
) -> tuple[Array, Array]:
    """Draw K different texts per sentence -> tokens int32[B, K, T] in the order drawn, log-probabilities float[B, K].

    The first is a sample from the model; each further one is a sample from the remaining texts. The arguments are those
    of `sample`, but given int[B, T], limits int[B] and keys [B] belong to sentences. If a sentence has fewer than K
    possible texts, the surplus ones have log-probabilities below -1e8.
    """
    batch_size, max_length = given.shape
    shape = (batch_size, num_samples)
    rows = jnp.arange(batch_size)[:, None]

    def proceed(state: Perturbed) -> Array:
        return (state.position < max_length) & ~jnp.all(state.ended)

    def advance(state: Perturbed) -> Perturbed:
        following, cache = step(state.last.reshape(-1), state.cache)
        log_probs = force(following.log_probs, jnp.repeat(given[:, state.position], num_samples))
        vocab_size = log_probs.shape[-1]
        # A text that has ended is continued by piece 0 with probability 1.
        unchanged = jnp.where(jnp.arange(vocab_size) == 0, 0.0, IMPOSSIBLE)[None, None]
        phi = state.log_probs[..., None] + jnp.where(state.ended[..., None], unchanged, log_probs.reshape(*shape, -1))
        own = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, state.position)
        perturbed = phi + jax.vmap(lambda key: jax.random.gumbel(key, phi.shape[1:]))(own)
        scores = _with_maximum(perturbed, state.scores[..., None])
        best, indices = top_k(scores, jnp.zeros(shape), num_samples)
        parents, chosen = indices // vocab_size, (indices % vocab_size).astype(jnp.int32)
        ended = state.ended[rows, parents] | (chosen == eos) | (state.position + 1 >= limits)[:, None]
        return Perturbed(
            state.position + 1,
            chosen,
            state.tokens[rows, parents].at[:, :, state.position].set(chosen),
            jnp.maximum(jnp.take_along_axis(phi.reshape(batch_size, -1), indices, axis=1), IMPOSSIBLE),
            jnp.maximum(best, IMPOSSIBLE),
            ended,
            reorder(cache, parents, batch_size),
        )

    first_only = jnp.broadcast_to(jnp.where(jnp.arange(num_samples) == 0, 0.0, IMPOSSIBLE), shape)
    first = Perturbed(
        jnp.int32(0),
        jnp.full(shape, start, jnp.int32),
        jnp.zeros((*shape, max_length), jnp.int32),
        first_only,
        first_only,
        jnp.broadcast_to((limits <= 0)[:, None], shape),
        cache,
    )
    final = jax.lax.while_loop(proceed, advance, first)
    return final.tokens, final.log_probs


def _with_maximum(perturbed: Array, maximum: Array) -> Array:
    """Condition Gumbel-perturbed values float[..., V] on their maximum, float[..., 1].

    The numerically stable form of equation 7 of Kool et al. (2019), appendix B.3.
    """
    largest = perturbed.max(axis=-1, keepdims=True)
    gap = jnp.minimum(perturbed - largest, 0.0)
    v = maximum - perturbed + jnp.log(-jnp.expm1(gap))  # -inf at the largest, which becomes the maximum
    return maximum - jnp.maximum(v, 0.0) - jnp.log1p(jnp.exp(-jnp.abs(v)))
