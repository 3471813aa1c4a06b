"""Beam search, greedy search (a beam of one) included, as one program over a step closure and a cache."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from nmt_jax.decoding.topk import top_k

Array = jax.Array
Step = Callable[[Array, Any], tuple[Array, Any]]

IMPOSSIBLE = -1e9  # a log-probability below any real hypothesis's, finite so that differences stay numbers


class Beams(NamedTuple):
    """The state of the search: hypotheses still growing and the best of those that have ended, K of each a sentence."""

    position: Array  # int32[]
    tokens: Array  # int32[B, K]: chosen last
    live: Array  # int32[B, K, T]
    live_scores: Array  # float32[B, K]: log-probabilities
    ended: Array  # int32[B, K, T]
    ended_scores: Array  # float32[B, K]: normalised by length
    done: Array  # bool[B]
    cache: Any


def length_penalty(length: Array | float, alpha: Array | float) -> Array:
    """Lp(Y) = ((5 + |Y|) / 6)^alpha (Wu et al., 2016, eq. 14); alpha 0 leaves log-probabilities as they are."""
    return ((5.0 + jnp.asarray(length, jnp.float32)) / 6.0) ** alpha


def reorder(cache: Any, parents: Array, batch_size: int) -> Any:
    """Let every beam go on with its parent's cache: parents int[B, K] index the K beams of the same sentence.

    Leaves that lead with B*K are gathered; all others (scalars, and what leads with B) belong to a whole sentence.
    """
    beam_size = parents.shape[1]
    if beam_size == 1:
        return cache
    rows = (jnp.arange(batch_size)[:, None] * beam_size + parents).reshape(-1)
    return jax.tree.map(lambda leaf: leaf[rows] if leaf.ndim and leaf.shape[0] == rows.size else leaf, cache)


def beam_search(
    step: Step,
    cache: Any,
    *,
    beam_size: int,
    n_best: int,
    max_length: int,
    limits: Array,
    length_penalty_alpha: Array | float,
    bos: int,
    eos: int,
) -> tuple[Array, Array]:
    """The n best translations a sentence, best first: tokens int32[B, n, T] with 0 after `eos`, scores float32[B, n].

    `step` takes the tokens chosen last, int[B*K], and the cache to log-probabilities float[B*K, V] and a new cache.
    limits int[B] <= T bounds the length of each sentence's translation, `eos` included. A score is the log-probability
    over Wu's length penalty. A hypothesis that has not ended at its limit is returned whole, but only where fewer than
    n <= K have ended.

    A sentence stops when none of its live hypotheses can overtake its n-th ended one: log-probabilities only fall and
    the penalty is largest at the limit, so live / penalty(limit) bounds all that a live one may become (alpha >= 0).
    """
    batch_size = limits.shape[0]
    shape = (batch_size, beam_size)
    rows = jnp.arange(batch_size)[:, None]
    # Two candidates a beam: at most K of the best 2K end here, so K always live on.
    num_candidates = 2 * beam_size

    def proceed(beams: Beams) -> Array:
        return (beams.position < max_length) & ~jnp.all(beams.done)

    def advance(beams: Beams) -> Beams:
        log_probs, cache = step(beams.tokens.reshape(-1), beams.cache)
        vocab_size = log_probs.shape[-1]
        scores = beams.live_scores[:, :, None] + log_probs.reshape(*shape, vocab_size)
        best, indices = top_k(scores.reshape(batch_size, -1), num_candidates)  # [B, 2K]
        parents, tokens = indices // vocab_size, indices % vocab_size
        is_end = tokens == eos

        live_best = jnp.where(is_end, IMPOSSIBLE, best)
        live_scores, lives = jax.lax.top_k(live_best, beam_size)
        live_parents = jnp.take_along_axis(parents, lives, axis=1)
        live_tokens = jnp.take_along_axis(tokens, lives, axis=1)
        live = beams.live[rows, live_parents].at[:, :, beams.position].set(live_tokens)

        # The same hypotheses that ended earlier stay, unless better ones end now.
        now = jnp.where(is_end, best / length_penalty(beams.position + 1, length_penalty_alpha), IMPOSSIBLE)
        ending = beams.live[rows, parents].at[:, :, beams.position].set(tokens)
        ended_scores, ends = jax.lax.top_k(jnp.concatenate([beams.ended_scores, now], axis=1), beam_size)
        ended = jnp.concatenate([beams.ended, ending], axis=1)[rows, ends]

        # A sentence that is done keeps what it has, so that its result does not depend on its neighbours.
        def keep(old: Array, new: Array) -> Array:
            return jnp.where(beams.done.reshape(-1, *[1] * (new.ndim - 1)), old, new)

        live_scores = keep(beams.live_scores, live_scores)
        ended_scores = keep(beams.ended_scores, ended_scores)
        bound = live_scores[:, 0] / length_penalty(limits, length_penalty_alpha)
        done = beams.done | (bound <= ended_scores[:, n_best - 1]) | (beams.position + 1 >= limits)
        return Beams(
            beams.position + 1,
            live_tokens,
            keep(beams.live, live),
            live_scores,
            keep(beams.ended, ended),
            ended_scores,
            done,
            reorder(cache, live_parents, batch_size),
        )

    nothing = jnp.zeros((*shape, max_length), jnp.int32)
    first_only = jnp.where(jnp.arange(beam_size) == 0, 0.0, IMPOSSIBLE)  # or all beams would be the same
    start = Beams(
        jnp.int32(0),
        jnp.full(shape, bos, jnp.int32),
        nothing,
        jnp.broadcast_to(first_only, shape).astype(jnp.float32),
        nothing,
        jnp.full(shape, IMPOSSIBLE, jnp.float32),
        limits <= 0,
        cache,
    )
    final = jax.lax.while_loop(proceed, advance, start)
    # Both lists are sorted: the ended ones first, live ones fill up where too few have ended.
    rank = jnp.broadcast_to(jnp.arange(beam_size), shape)
    ended_rank = jnp.where(final.ended_scores > IMPOSSIBLE / 2, rank, 2 * beam_size)
    chosen = jnp.argsort(jnp.concatenate([ended_rank, rank + beam_size], axis=1), axis=1)[:, :n_best]
    tokens = jnp.concatenate([final.ended, final.live], axis=1)[rows, chosen]
    live_scores = final.live_scores / length_penalty(limits, length_penalty_alpha)[:, None]
    scores = jnp.concatenate([final.ended_scores, live_scores], axis=1)[rows, chosen]
    return tokens, scores
