"""Sampling without replacement: stochastic beam search, Gumbel top-k over all texts (Kool et al., 2019)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from nmt_jax.decoding.beam_search import reorder
from nmt_jax.decoding.next_logits import IMPOSSIBLE, Step
from nmt_jax.decoding.rules import force
from nmt_jax.decoding.topk import top_k

Array = jax.Array


class Perturbed(NamedTuple):
    """The state of the search: K different beginnings a sentence, ended or not, with the largest perturbed scores."""

    position: Array  # int32[]
    last: Array  # int32[B, K]
    tokens: Array  # int32[B, K, T]
    log_probs: Array  # float32[B, K]: phi
    scores: Array  # float32[B, K]: G, the largest perturbed log-probability of all texts that begin so
    ended: Array  # bool[B, K]
    cache: Any


def stochastic_beam_search(
    step: Step, cache: Any, given: Array, limits: Array, keys: Array, *, num_samples: int, start: int, eos: int
) -> tuple[Array, Array]:
    """Draw K different texts a sentence -> tokens int32[B, K, T], in the order drawn, log-probabilities float[B, K].

    The first is a sample of the model; each next one is a sample of what is left. Arguments as those of `sample`, but
    given int[B, T], limits int[B] and keys [B] are a sentence's. A sentence that has fewer than K texts gives some of
    log-probability below -1e8.
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
        # What has ended goes on as itself, by piece 0.
        itself = jnp.where(jnp.arange(vocab_size) == 0, 0.0, IMPOSSIBLE)[None, None]
        phi = state.log_probs[..., None] + jnp.where(state.ended[..., None], itself, log_probs.reshape(*shape, -1))
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
    """perturbed float[..., V] -> the same given that their maximum is `maximum` float[..., 1].

    Kool et al. (2019), appendix B.3: without the loss of digits of its equation 7.
    """
    largest = perturbed.max(axis=-1, keepdims=True)
    gap = jnp.minimum(perturbed - largest, 0.0)
    v = maximum - perturbed + jnp.log(-jnp.expm1(gap))  # -inf at the largest, which becomes the maximum
    return maximum - jnp.maximum(v, 0.0) - jnp.log1p(jnp.exp(-jnp.abs(v)))
