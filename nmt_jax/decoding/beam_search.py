"""Beam search, greedy search (a beam of one) included, as one program over a step closure and a cache."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from nmt_jax.decoding import constraints, rules
from nmt_jax.decoding.next_logits import IMPOSSIBLE, NextLogits, Step
from nmt_jax.decoding.search import Search, coverage
from nmt_jax.decoding.topk import top_k

Array = jax.Array


class SearchRequest(NamedTuple):
    """What is asked of each of B sentences."""

    limits: Array  # int32[B] <= T: the longest translation, EOS included
    prefix: Array | None = None  # int32[B, T]: what a translation begins with, 0 after it
    phrases: constraints.Phrases | None = None  # what it contains


class Beams(NamedTuple):
    """The state of the search: hypotheses still growing and the best of those that have ended, K of each a sentence."""

    position: Array  # int32[]
    tokens: Array  # int32[B, K]: chosen last
    live: Array  # int32[B, K, T]
    live_scores: Array  # float32[B, K]: log-probabilities
    ended: Array  # int32[B, K, T]
    ended_scores: Array  # float32[B, K]: as they are ranked
    done: Array  # bool[B]
    attended: Array  # float32[B, K, S]: the attention that each source piece got, S = 0 where none asks
    met: Array  # bool[B, K, C]: the pieces of the constraints that were said, C = 0 where there are none
    cache: Any


class Candidates(NamedTuple):
    """What may come next, N for each sentence."""

    scores: Array  # float32[B, N]: log-probabilities of the hypotheses
    order: Array  # float32[B, N]: by which it is decided which live on
    parents: Array  # int32[B, N]: the beam that each goes on with
    tokens: Array  # int32[B, N]


def reorder(cache: Any, parents: Array, batch_size: int) -> Any:
    """Let every beam go on with its parent's cache: parents int[B, K] index the K beams of the same sentence.

    Leaves that lead with B*K are gathered; all others (scalars, and what leads with B) belong to a whole sentence.
    """
    beam_size = parents.shape[1]
    if beam_size == 1:
        return cache
    rows = (jnp.arange(batch_size)[:, None] * beam_size + parents).reshape(-1)
    return jax.tree.map(lambda leaf: leaf[rows] if leaf.ndim and leaf.shape[0] == rows.size else leaf, cache)


def of_sentences(leaf: Array, sentences: Array, num_sentences: int) -> Array:
    """The rows of some sentences; a leaf has the same number of rows for each, or is a scalar of all."""
    if not leaf.ndim:
        return leaf
    each = leaf.shape[0] // num_sentences
    return leaf[(sentences[:, None] * each + jnp.arange(each)[None]).reshape(-1)]


def beam_search(
    step: Step,
    cache: Any,
    asked: SearchRequest,
    *,
    search: Search,
    max_length: int,
    bos: int,
    eos: int,
    attention: Callable[[Any], Array] | None = None,
    source_mask: Array | None = None,
    halve: bool = False,
) -> tuple[Array, Array]:
    """The n best translations a sentence, best first: tokens int32[B, n, T] with 0 after `eos`, scores float32[B, n].

    `step` takes the tokens chosen last, int[B*K], and the cache to what may come next and a new cache, in which
    `attention` finds the weights float[B*K, S] that a coverage penalty needs, beside source_mask bool[B, S]. A
    hypothesis that has not ended at its limit is returned whole, but only where fewer than n have ended. A prefix and
    constraints win over the rules of the search.

    By the rule "bound" a sentence stops when none of its live hypotheses can overtake its n-th ended one: log-
    probabilities only fall, the penalty is largest at the limit and coverage is at most 0, so live / penalty(limit)
    bounds all that a live one may become.

    The beams of a sentence's groups are searches of their own, which choose one after the other.

    halve: once no more than half of the sentences are left, these go on in a batch of half the size; for one device.
    """
    num_sentences, groups = asked.limits.shape[0], search.num_groups
    beam_size = search.beam_size // groups
    asked = jax.tree.map(lambda leaf: jnp.repeat(leaf, groups, axis=0), asked)
    num_kept = min(search.n_best, beam_size)  # of each group
    mask = jnp.zeros((num_sentences * groups, 1, 0), bool)
    if source_mask is not None:
        mask = jnp.repeat(source_mask, groups, axis=0)[:, None]

    def go_on(asked: SearchRequest, mask: Array, beams: Beams, enough_left: int) -> Beams:
        """Steps until so few sentences are left, or none may grow."""
        limits, prefix, phrases = asked
        batch_size = len(limits)
        num_sentences, shape = batch_size // groups, (batch_size, beam_size)
        rows = jnp.arange(batch_size)[:, None]

        def parents_of_all(parents: Array) -> Array:
            """Parents int[B * G, K / G] within their groups -> int[B, K] within their sentences."""
            first = jnp.tile(jnp.arange(groups) * beam_size, num_sentences)[:, None]
            return (parents + first).reshape(num_sentences, -1)

        def proceed(beams: Beams) -> Array:
            left = jnp.sum(~beams.done.reshape(num_sentences, groups).all(axis=1))
            return (beams.position < max_length) & (left > enough_left)

        def propose(beams: Beams, following: NextLogits) -> Candidates:
            """The 2K best next pieces (at most K of them end, so K live on), and those that would meet a constraint."""
            vocab_size = following.logits.shape[-1]
            if groups == 1 and prefix is None and phrases is None and not search.has_rules:
                offsets = beams.live_scores - following.log_normalizer.reshape(shape)
                best, indices = top_k(following.logits.reshape(*shape, vocab_size), offsets, 2 * beam_size)  # [B, 2K]
                return Candidates(best, best, indices // vocab_size, indices % vocab_size)
            raw = following.log_probs
            log_probs = rules.follow(search, raw, beams.live.reshape(-1, max_length), beams.position, eos)
            if prefix is not None:
                now = jnp.repeat(prefix[:, beams.position], beam_size)
                raw, log_probs = rules.force(raw, now), rules.force(log_probs, now)
            raw, log_probs = (array.reshape(*shape, vocab_size) for array in (raw, log_probs))
            if phrases is not None:
                unmet = constraints.num_unmet(phrases, beams.met) > 0
                log_probs = log_probs.at[:, :, eos].set(jnp.where(unmet, IMPOSSIBLE, log_probs[:, :, eos]))
            best, order, indices = _by_group(log_probs, beams.live_scores, groups, 2 * beam_size, search.diversity, eos)
            candidates = Candidates(best, order, indices // vocab_size, indices % vocab_size)
            if phrases is None:
                return candidates
            raw = raw.at[:, :, eos].set(log_probs[:, :, eos])
            scores = beams.live_scores[:, :, None] + log_probs
            return _with_constraints(candidates, phrases, beams, raw, scores, limits, eos)

        def advance(beams: Beams) -> Beams:
            following, cache = step(beams.tokens.reshape(-1), beams.cache)
            attended = beams.attended
            if attention:
                attended += attention(cache).reshape(attended.shape)
            best, order, parents, tokens = propose(beams, following)
            best = jnp.maximum(best, IMPOSSIBLE)
            is_end = tokens == eos
            # An end counts among the K best only, or a beam of one would not be greedy; or where a constraint asks.
            rank = jnp.arange(tokens.shape[1])
            counts = is_end & ((rank < beam_size) | (rank >= 2 * beam_size))[None] & (best > IMPOSSIBLE / 2)

            live_order = jnp.where(is_end, IMPOSSIBLE, order)
            met = beams.met
            if phrases is None:
                _, lives = jax.lax.top_k(live_order, beam_size)
            else:
                met = constraints.advance(phrases, met[rows, parents], tokens)
                lives = constraints.allocate(live_order, met.sum(axis=-1), beam_size)
                met = met[rows, lives]
            live_scores = jnp.take_along_axis(jnp.where(is_end, IMPOSSIBLE, best), lives, axis=1)
            live_parents = jnp.take_along_axis(parents, lives, axis=1)
            live_tokens = jnp.take_along_axis(tokens, lives, axis=1)
            live = beams.live[rows, live_parents].at[:, :, beams.position].set(live_tokens)

            # The same hypotheses that ended earlier stay, unless better ones end now.
            now = best / search.penalty(beams.position + 1)
            if attention:
                now += search.coverage_penalty * coverage(attended, mask)[rows, parents]
                attended = attended[rows, live_parents]
            now = jnp.where(counts, now, IMPOSSIBLE)
            ending = beams.live[rows, parents].at[:, :, beams.position].set(tokens)
            ended_scores, ends = jax.lax.top_k(jnp.concatenate([beams.ended_scores, now], axis=1), beam_size)
            ended = jnp.concatenate([beams.ended, ending], axis=1)[rows, ends]

            # A sentence that is done keeps what it has, so that its result does not depend on its neighbours.
            def keep(old: Array, new: Array) -> Array:
                return jnp.where(beams.done.reshape(-1, *[1] * (new.ndim - 1)), old, new)

            live_scores = keep(beams.live_scores, live_scores)
            ended_scores = keep(beams.ended_scores, ended_scores)
            bound = live_scores.max(axis=1) / search.penalty(limits)
            enough = {
                "bound": bound <= ended_scores[:, num_kept - 1],
                "beam": ended_scores[:, -1] > IMPOSSIBLE / 2,
                "limit": jnp.zeros(batch_size, bool),
            }
            return Beams(
                beams.position + 1,
                live_tokens,
                keep(beams.live, live),
                live_scores,
                keep(beams.ended, ended),
                ended_scores,
                beams.done | enough[search.stopping] | (beams.position + 1 >= limits),
                keep(beams.attended, attended),
                met,
                reorder(cache, parents_of_all(live_parents), num_sentences),
            )

        return jax.lax.while_loop(proceed, advance, beams)

    shape = (num_sentences * groups, beam_size)
    nothing = jnp.zeros((*shape, max_length), jnp.int32)
    first_only = jnp.where(jnp.arange(beam_size) == 0, 0.0, IMPOSSIBLE)  # or all beams would be the same
    start = Beams(
        jnp.int32(0),
        jnp.full(shape, bos, jnp.int32),
        nothing,
        jnp.broadcast_to(first_only, shape).astype(jnp.float32),
        nothing,
        jnp.full(shape, IMPOSSIBLE, jnp.float32),
        asked.limits <= 0,
        jnp.zeros((*shape, mask.shape[-1])),
        jnp.zeros((*shape, 0 if asked.phrases is None else asked.phrases.pieces.shape[-1]), bool),
        cache,
    )
    half = num_sentences // 2 if halve else 0
    final = go_on(asked, mask, start, half)
    if half:
        left = jnp.argsort(final.done.reshape(num_sentences, groups).all(axis=1), stable=True)[:half]
        few = functools.partial(of_sentences, sentences=left, num_sentences=num_sentences)
        rest = go_on(jax.tree.map(few, asked), few(mask), jax.tree.map(few, final), 0)
        own = (left[:, None] * groups + jnp.arange(groups)[None]).reshape(-1)
        back = ("live", "live_scores", "ended", "ended_scores", "attended")
        final = final._replace(**{name: getattr(final, name).at[own].set(getattr(rest, name)) for name in back})

    live_scores = final.live_scores / search.penalty(asked.limits)[:, None]
    live_scores += search.coverage_penalty * coverage(final.attended, mask)
    # The ended ones first; live ones fill up where too few of their group have ended, and are else cut short.
    real = final.ended_scores > IMPOSSIBLE / 2
    lacks = jnp.sum(real, axis=1, keepdims=True) < num_kept
    live_scores = jnp.where(lacks, live_scores, IMPOSSIBLE)
    preference = jnp.concatenate([jnp.where(real, 2, 0), jnp.ones(shape, jnp.int32)], axis=1)
    tokens = jnp.concatenate([final.ended, final.live], axis=1).reshape(num_sentences, -1, max_length)
    scores = jnp.concatenate([final.ended_scores, live_scores], axis=1).reshape(num_sentences, -1)
    sentences = jnp.arange(num_sentences)[:, None]
    order = jnp.lexsort((-scores, -preference.reshape(scores.shape)), axis=-1)
    if groups > 1:  # two groups may find the same: it counts once
        tokens, scores = tokens[sentences, order], scores[sentences, order]
        same = (tokens[:, :, None] == tokens[:, None]).all(axis=-1)
        again = (same & jnp.tril(jnp.ones(same.shape[1:], bool), -1)[None]).any(axis=-1)
        scores = jnp.where(again, IMPOSSIBLE, scores)
        order = jnp.argsort(again, axis=-1, stable=True)
    chosen = order[:, : search.n_best]
    return tokens[sentences, chosen], scores[sentences, chosen]


def _by_group(
    log_probs: Array, live_scores: Array, groups: int, count: int, diversity: float, eos: int
) -> tuple[Array, Array, Array]:
    """`top_k` of the groups of each sentence, one after the other: float[B * G, K / G, V], float[B * G, K / G].

    What earlier groups go on with, K / G pieces each, costs later ones `diversity` a time -> the scores of the best as
    they are, with that cost, and their indices.
    """
    vocab_size = log_probs.shape[-1]
    by_group = log_probs.reshape(-1, groups, *log_probs.shape[1:])
    offsets = live_scores.reshape(-1, groups, live_scores.shape[-1])
    sentences = jnp.arange(len(by_group))[:, None]
    times = jnp.zeros((len(by_group), vocab_size))
    found = []
    for group in range(groups):
        costed = by_group[:, group] - diversity * times[:, None] if group else by_group[:, group]
        order, indices = top_k(costed, offsets[:, group], count)
        pieces = indices % vocab_size
        best = order + diversity * times[sentences, pieces]
        found.append((best, order, indices))
        lives = jnp.argsort(pieces == eos, axis=1, stable=True)[:, : count // 2]
        times = times.at[sentences, jnp.take_along_axis(pieces, lives, axis=1)].add(1.0)
    best, order, indices = (jnp.stack(arrays, axis=1).reshape(-1, count) for arrays in zip(*found, strict=True))
    return best, order, indices


def _with_constraints(
    candidates: Candidates,
    phrases: constraints.Phrases,
    beams: Beams,
    log_probs: Array,
    scores: Array,
    limits: Array,
    eos: int,
) -> Candidates:
    """Candidates, and for sentences with constraints each beam's best piece and those that would meet a constraint.

    Without those from which the limit leaves no way to meet all. log_probs float[B, K, V] of the pieces, before the
    rules; scores float[B, K, V] of the hypotheses, under them.
    """
    batch_size, beam_size, vocab_size = scores.shape
    pieces = constraints.wanted(phrases, beams.met, eos)  # [B, K, C + 1]
    wanted = beams.live_scores[:, :, None] + jnp.take_along_axis(log_probs, pieces, axis=-1)
    best = jnp.argmax(scores, axis=-1)[:, :, None]
    constrained = (phrases.pieces > 0).any(axis=-1)[:, None]
    more = jnp.concatenate([pieces, best], axis=-1).reshape(batch_size, -1)
    values = jnp.concatenate([wanted, jnp.take_along_axis(scores, best, axis=-1)], axis=-1).reshape(batch_size, -1)
    parents = jnp.repeat(jnp.arange(beam_size), pieces.shape[-1] + 1)[None]
    parents = jnp.concatenate([candidates.parents, jnp.broadcast_to(parents, more.shape)], axis=1)
    tokens = jnp.concatenate([candidates.tokens, more], axis=1)
    values = jnp.concatenate([candidates.scores, jnp.where(constrained & (more > 0), values, IMPOSSIBLE)], axis=1)
    # Each once, as a constraint asks for it if one does: its score is the one before the rules, and its end counts.
    code = parents * vocab_size + tokens
    later = jnp.arange(code.shape[1])[None, :] > jnp.arange(code.shape[1])[:, None]
    better = (values[:, None] > values[:, :, None]) | ((values[:, None] == values[:, :, None]) & later[None])
    again = ((code[:, None] == code[:, :, None]) & better).any(axis=-1)
    rows = jnp.arange(batch_size)[:, None]
    unmet = constraints.num_unmet(phrases, constraints.advance(phrases, beams.met[rows, parents], tokens))
    left = (limits - beams.position - 1)[:, None]
    hopeless = constrained & jnp.where(tokens == eos, unmet > 0, left < unmet + 1)
    # What a constraint asks for, no cost of its group's makes worse.
    order = jnp.concatenate([candidates.order, values[:, candidates.order.shape[1] :]], axis=1)
    scores, order = (jnp.where(again | hopeless, IMPOSSIBLE, array) for array in (values, order))
    return Candidates(scores, order, parents, tokens)
