"""Beam search over a step function and a cache, as one compiled program; greedy search is a beam of one.

Letters: B sentences, K beams a sentence, G groups, R = B * G rows of K / G beams each, T steps, S source length.
Without groups R = B. The groups of a sentence (Vijayakumar et al., 2016) are searches of their own, which choose one
after the other.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.decoding import constraints
from nmt_jax.decoding.next_logits import IMPOSSIBLE, NextLogits, Step
from nmt_jax.decoding.search_options import SearchOptions, coverage, follow_rules, force
from nmt_jax.decoding.topk import top_k


class SearchRequest(NamedTuple):
    """Requirements on the translations of B sentences."""

    limits: Array  # int32[B] <= T: maximum length, EOS included
    prefix: Array | None = None  # int32[B, T]: the first tokens of a translation, padded with 0
    phrases: constraints.Phrases | None = None  # phrases that a translation must contain


class Beams(NamedTuple):
    """The state of the search: for each row the live hypotheses, and the best of those that have ended."""

    position: Array  # int32[]
    tokens: Array  # int32[R, K/G]: chosen last
    live: Array  # int32[R, K/G, T]
    live_scores: Array  # float32[R, K/G]: log-probabilities
    ended: Array  # int32[R, K/G, T]
    ended_scores: Array  # float32[R, K/G]: ranking scores
    done: Array  # bool[R]
    attended: Array  # float32[R, K/G, S]: attention summed over steps; S = 0 without a coverage penalty
    met: Array  # bool[R, K/G, C]: pieces of the constraints that were generated; C = 0 without constraints
    cache: Any


class Candidates(NamedTuple):
    """Possible continuations, N for each row."""

    scores: Array  # float32[R, N]: log-probabilities of the hypotheses
    order: Array  # float32[R, N]: the scores by which live hypotheses are chosen
    parents: Array  # int32[R, N]: the beam that each continues
    tokens: Array  # int32[R, N]


def reorder(cache: Any, parents: Array, batch_size: int) -> Any:
    """Give each beam the cache of its parent; parents int[B, K] index the K beams of the same sentence.

    Leaves that lead with B*K are gathered. All others (scalars, and leaves that lead with B) belong to a sentence.
    """
    beam_size = parents.shape[1]
    if beam_size == 1:
        return cache
    rows = (jnp.arange(batch_size)[:, None] * beam_size + parents).reshape(-1)
    return jax.tree.map(lambda leaf: leaf[rows] if leaf.ndim and leaf.shape[0] == rows.size else leaf, cache)


def beam_search(
    step: Step,
    cache: Any,
    request: SearchRequest,
    *,
    search: SearchOptions,
    max_length: int,
    bos: int,
    eos: int,
    attention: Callable[[Any], Array] | None = None,
    source_mask: Array | None = None,
    halve: bool = False,
) -> tuple[Array, Array]:
    """Return the n best translations of each sentence, best first: tokens int32[B, n, T], scores float32[B, n].

    Tokens after `eos` are 0. A hypothesis that has not ended at its limit is returned only if fewer than n have ended.
    Prefixes and constraints take precedence over the rules of the search.

    step: maps the tokens chosen last, int[B*K], and the cache to the next logits and a new cache. attention: extracts
    the attention weights float[B*K, S] of the step from the new cache; needed, with source_mask bool[B, S], for a
    coverage penalty. halve: once at most half of the sentences are unfinished, continue with a batch of half the size;
    only on one device.
    """
    searcher = make_searcher(step, request, search, max_length, bos, eos, attention, source_mask)
    half = request.limits.shape[0] // 2 if halve else 0
    beams = searcher.run(searcher.start(cache), half)
    return searcher.finish(searcher.run_rest(beams, half) if half else beams)


def make_searcher(
    step: Step,
    request: SearchRequest,
    search: SearchOptions,
    max_length: int,
    bos: int,
    eos: int,
    attention: Callable[[Any], Array] | None = None,
    source_mask: Array | None = None,
) -> "Searcher":
    """Return the parts of `beam_search` for these options of it."""
    groups = search.num_groups
    mask = jnp.zeros((len(request.limits) * groups, 1, 0), bool)
    request = jax.tree.map(lambda leaf: jnp.repeat(leaf, groups, axis=0), request)
    if source_mask is not None:
        mask = jnp.repeat(source_mask, groups, axis=0)[:, None]
    return Searcher(request, mask, step, search, max_length, bos, eos, attention)


@dataclasses.dataclass(frozen=True, eq=False)
class Searcher:
    """The parts of `beam_search`, which have its options in common; request: with a row for each group."""

    request: SearchRequest
    mask: Array  # bool[R, 1, S]
    step: Step
    search: SearchOptions
    max_length: int
    bos: int
    eos: int
    attention: Callable[[Any], Array] | None

    @property
    def beam_size(self) -> int:
        """K / G, the beams of a row."""
        return self.search.beam_size // self.search.num_groups

    def start(self, cache: Any) -> Beams:
        """The state before the first step. Only the first beam of a row is possible, or all beams would be equal."""
        request, shape = self.request, (len(self.request.limits), self.beam_size)
        nothing = jnp.zeros((*shape, self.max_length), jnp.int32)
        first_only = jnp.where(jnp.arange(self.beam_size) == 0, 0.0, IMPOSSIBLE)
        num_pieces = 0 if request.phrases is None else request.phrases.pieces.shape[-1]
        return Beams(
            position=jnp.int32(0),
            tokens=jnp.full(shape, self.bos, jnp.int32),
            live=nothing,
            live_scores=jnp.broadcast_to(first_only, shape).astype(jnp.float32),
            ended=nothing,
            ended_scores=jnp.full(shape, IMPOSSIBLE, jnp.float32),
            done=request.limits <= 0,
            attended=jnp.zeros((*shape, self.mask.shape[-1])),
            met=jnp.zeros((*shape, num_pieces), bool),
            cache=cache,
        )

    def run(self, beams: Beams, num_left: int, until: Array | int | None = None) -> Beams:
        """Advance until at most `num_left` sentences are unfinished, or a position or the maximum length is reached."""
        end = self.max_length if until is None else jnp.minimum(until, self.max_length)

        def proceed(beams: Beams) -> Array:
            left = jnp.sum(~self.finished(beams))
            return (beams.position < end) & (left > num_left)

        return jax.lax.while_loop(proceed, self.advance, beams)

    def run_rest(self, beams: Beams, half: int) -> Beams:
        """Finish the sentences left by `run`, of which there are at most `half`, in a batch of that size."""
        groups, finished = self.search.num_groups, self.finished(beams)
        left = jnp.argsort(finished, stable=True)[:half]
        select = functools.partial(_select_sentences, sentences=left, num_sentences=len(finished))
        few = dataclasses.replace(self, request=jax.tree.map(select, self.request), mask=select(self.mask))
        rest = few.run(jax.tree.map(select, beams), 0)
        rows = (left[:, None] * groups + jnp.arange(groups)[None]).reshape(-1)
        results = ("live", "live_scores", "ended", "ended_scores", "attended")
        return beams._replace(**{name: getattr(beams, name).at[rows].set(getattr(rest, name)) for name in results})

    def advance(self, beams: Beams) -> Beams:
        """One step: every row gets new live hypotheses, and keeps the best of those that have ended."""
        rows, position = jnp.arange(len(beams.done))[:, None], beams.position
        following, cache = self.step(beams.tokens.reshape(-1), beams.cache)
        attended = beams.attended
        if self.attention:
            attended += self.attention(cache).reshape(attended.shape)
        candidates = self.propose(beams, following)
        candidates = candidates._replace(scores=jnp.maximum(candidates.scores, IMPOSSIBLE))
        chosen, live_scores, met = self.choose_live(beams, candidates)
        # Logits that are not finite cannot rank candidates; NaN scores report them.
        undefined = jnp.isnan(following.log_normalizer).reshape(live_scores.shape).any(axis=1, keepdims=True)
        live_scores = jnp.where(undefined, jnp.nan, live_scores)
        parents = jnp.take_along_axis(candidates.parents, chosen, axis=1)
        tokens = jnp.take_along_axis(candidates.tokens, chosen, axis=1)
        live = beams.live[rows, parents].at[:, :, position].set(tokens)
        ended, ended_scores = self.choose_ended(beams, candidates, attended)
        if self.attention:
            attended = attended[rows, parents]

        # A row that is done keeps its results, which therefore do not depend on other sentences.
        def keep(old: Array, new: Array) -> Array:
            return jnp.where(beams.done.reshape(-1, *[1] * (new.ndim - 1)), old, new)

        live_scores = keep(beams.live_scores, live_scores)
        ended_scores = keep(beams.ended_scores, ended_scores)
        enough = self.has_enough(live_scores, ended_scores)
        parents = self._parents_in_sentences(parents)
        return Beams(
            position=position + 1,
            tokens=tokens,
            live=keep(beams.live, live),
            live_scores=live_scores,
            ended=keep(beams.ended, ended),
            ended_scores=ended_scores,
            done=beams.done | enough | (position + 1 >= self.request.limits),
            attended=keep(beams.attended, attended),
            met=met,
            cache=reorder(cache, parents, len(parents)),
        )

    def propose(self, beams: Beams, following: NextLogits) -> Candidates:
        """The 2 K/G best continuations of each row, and those that would meet a constraint.

        At most K/G of the 2 K/G end, so that K/G live on.
        """
        shape, vocab_size = beams.tokens.shape, following.logits.shape[-1]
        limits, prefix, phrases = self.request
        count = 2 * self.beam_size
        if self.search.num_groups == 1 and prefix is None and phrases is None and not self.search.has_rules:
            offsets = beams.live_scores - following.log_normalizer.reshape(shape)
            best, indices = top_k(following.logits.reshape(*shape, vocab_size), offsets, count)
            return Candidates(best, best, indices // vocab_size, indices % vocab_size)
        raw = following.log_probs
        generated = beams.live.reshape(-1, self.max_length)
        log_probs = follow_rules(self.search, raw, generated, beams.position, self.eos)
        if prefix is not None:
            forced = jnp.repeat(prefix[:, beams.position], self.beam_size)
            raw = force(raw, forced)
            log_probs = jnp.where((forced > 0)[:, None], raw, log_probs)  # a prefix may break the rules
        raw, log_probs = (array.reshape(*shape, vocab_size) for array in (raw, log_probs))
        if phrases is not None:
            unmet = constraints.num_unmet(phrases, beams.met) > 0
            log_probs = log_probs.at[:, :, self.eos].set(jnp.where(unmet, IMPOSSIBLE, log_probs[:, :, self.eos]))
        best, order, indices = _by_group(log_probs, beams.live_scores, self.search, count, self.eos)
        candidates = Candidates(best, order, indices // vocab_size, indices % vocab_size)
        if phrases is None:
            return candidates
        raw = raw.at[:, :, self.eos].set(log_probs[:, :, self.eos])
        scores = beams.live_scores[:, :, None] + log_probs
        return _with_constraints(candidates, phrases, beams, raw, scores, limits, self.eos)

    def choose_live(self, beams: Beams, candidates: Candidates) -> tuple[Array, Array, Array]:
        """Return the candidates that live on, int[R, K/G], their log-probabilities, and the constraints they meet."""
        is_end = candidates.tokens == self.eos
        order = jnp.where(is_end, IMPOSSIBLE, candidates.order)
        if self.request.phrases is None:
            _, chosen = jax.lax.top_k(order, self.beam_size)
            met = beams.met
        else:
            rows = jnp.arange(len(order))[:, None]
            met = constraints.advance(self.request.phrases, beams.met[rows, candidates.parents], candidates.tokens)
            chosen = constraints.allocate(order, met.sum(axis=-1), self.beam_size)
            met = met[rows, chosen]
        scores = jnp.where(is_end, IMPOSSIBLE, candidates.scores)
        return chosen, jnp.take_along_axis(scores, chosen, axis=1), met

    def choose_ended(self, beams: Beams, candidates: Candidates, attended: Array) -> tuple[Array, Array]:
        """The best K/G hypotheses of each row that have ended, by now or in this step, and their ranking scores.

        log p(Y|X) / penalty(|Y|) + coverage_penalty * coverage (Wu et al., 2016, eq. 14).
        """
        rows, rank = jnp.arange(len(beams.done))[:, None], jnp.arange(candidates.tokens.shape[1])
        # An end counts only among the K/G best, or a beam of one would not be greedy; or if a constraint asks for it.
        counts = (candidates.tokens == self.eos) & ((rank < self.beam_size) | (rank >= 2 * self.beam_size))[None]
        counts &= candidates.scores > IMPOSSIBLE / 2
        scores = candidates.scores / self.search.penalty(beams.position + 1)
        if self.attention:
            scores += self.search.coverage_penalty * coverage(attended, self.mask)[rows, candidates.parents]
        scores = jnp.where(counts, scores, IMPOSSIBLE)
        ending = beams.live[rows, candidates.parents].at[:, :, beams.position].set(candidates.tokens)
        ended_scores, chosen = jax.lax.top_k(jnp.concatenate([beams.ended_scores, scores], axis=1), self.beam_size)
        return jnp.concatenate([beams.ended, ending], axis=1)[rows, chosen], ended_scores

    def has_enough(self, live_scores: Array, ended_scores: Array) -> Array:
        """Whether the search may stop, bool[R], by the rule `SearchOptions.stopping`.

        "bound": no live hypothesis can overtake the n-th that has ended (cf. Huang et al., 2017). Log-probabilities
        only fall, the penalty is largest at the limit, and coverage is at most 0: log p / penalty(limit) is an upper
        bound.
        """
        if self.search.stopping == "limit":
            return jnp.zeros(len(live_scores), bool)
        if self.search.stopping == "beam":
            return ended_scores[:, -1] > IMPOSSIBLE / 2
        bound = live_scores.max(axis=1) / self.search.penalty(self.request.limits)
        return bound <= ended_scores[:, min(self.search.n_best, self.beam_size) - 1]

    def finish(self, beams: Beams) -> tuple[Array, Array]:
        """The n best hypotheses of each sentence: tokens int32[B, n, T], scores float32[B, n].

        Ended hypotheses come first. Live ones, cut off at the limit, follow if a group has too few that have ended. All
        scores of a sentence are NaN if the logits of one step were not finite.
        """
        undefined = jnp.isnan(beams.live_scores).any(axis=1).reshape(-1, self.search.num_groups).any(axis=1)
        live_scores = beams.live_scores / self.search.penalty(self.request.limits)[:, None]
        live_scores += self.search.coverage_penalty * coverage(beams.attended, self.mask)
        has_ended = beams.ended_scores > IMPOSSIBLE / 2
        lacks = jnp.sum(has_ended, axis=1, keepdims=True) < min(self.search.n_best, self.beam_size)
        live_scores = jnp.where(lacks, live_scores, IMPOSSIBLE)
        preference = jnp.concatenate([jnp.where(has_ended, 2, 0), jnp.ones(live_scores.shape, jnp.int32)], axis=1)
        num_sentences = len(beams.done) // self.search.num_groups
        tokens = jnp.concatenate([beams.ended, beams.live], axis=1).reshape(num_sentences, -1, self.max_length)
        scores = jnp.concatenate([beams.ended_scores, live_scores], axis=1).reshape(num_sentences, -1)
        sentences = jnp.arange(num_sentences)[:, None]
        order = jnp.lexsort((-scores, -preference.reshape(scores.shape)), axis=-1)
        if self.search.num_groups > 1:  # two groups may find the same hypothesis
            tokens, scores = tokens[sentences, order], scores[sentences, order]
            same = (tokens[:, :, None] == tokens[:, None]).all(axis=-1)
            repeated = (same & jnp.tril(jnp.ones(same.shape[1:], bool), -1)[None]).any(axis=-1)
            scores = jnp.where(repeated, IMPOSSIBLE, scores)
            order = jnp.argsort(repeated, axis=-1, stable=True)
        chosen = order[:, : self.search.n_best]
        return tokens[sentences, chosen], jnp.where(undefined[:, None], jnp.nan, scores[sentences, chosen])

    def finished(self, beams: Beams) -> Array:
        """Whether all groups of a sentence are done, bool[B]."""
        return beams.done.reshape(-1, self.search.num_groups).all(axis=1)

    def _parents_in_sentences(self, parents: Array) -> Array:
        """Parents int[R, K/G] within their rows -> int[B, K] within their sentences."""
        groups = self.search.num_groups
        num_sentences = len(parents) // groups
        first = jnp.tile(jnp.arange(groups) * self.beam_size, num_sentences)[:, None]
        return (parents + first).reshape(num_sentences, -1)


def _select_sentences(leaf: Array, sentences: Array, num_sentences: int) -> Array:
    """The rows of some sentences; a leaf has the same number of rows for each sentence, or is a scalar of all."""
    if not leaf.ndim:
        return leaf
    each = leaf.shape[0] // num_sentences
    return leaf[(sentences[:, None] * each + jnp.arange(each)[None]).reshape(-1)]


def _by_group(
    log_probs: Array, live_scores: Array, search: SearchOptions, count: int, eos: int
) -> tuple[Array, Array, Array]:
    """`top_k` of each group of a sentence, one group after the other: log_probs float[R, K/G, V], scores [R, K/G].

    A piece costs a group `diversity` for each earlier group that continues with it (Vijayakumar et al., 2016, eq. 5,
    with Hamming diversity); the first K/G pieces that do not end count as continued. Returns the scores of the best
    without and with these costs, and their indices, [R, count] each.
    """
    vocab_size, groups, diversity = log_probs.shape[-1], search.num_groups, search.diversity
    by_group = log_probs.reshape(-1, groups, *log_probs.shape[1:])
    offsets = live_scores.reshape(-1, groups, live_scores.shape[-1])
    sentences = jnp.arange(len(by_group))[:, None]
    times = jnp.zeros((len(by_group), vocab_size))
    found = []
    for group in range(groups):
        with_costs = by_group[:, group] - diversity * times[:, None] if group else by_group[:, group]
        order, indices = top_k(with_costs, offsets[:, group], count)
        pieces = indices % vocab_size
        best = order + diversity * times[sentences, pieces]
        found.append((best, order, indices))
        continued = jnp.argsort(pieces == eos, axis=1, stable=True)[:, : count // 2]
        times = times.at[sentences, jnp.take_along_axis(pieces, continued, axis=1)].add(1.0)
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
    """Add to the candidates of constrained sentences the best piece of each beam, and those that meet a constraint.

    Candidates after which the limit is too close to meet all constraints are ruled out. log_probs float[R, K/G, V] of
    the pieces before the rules of the search; scores float[R, K/G, V] of the hypotheses under these rules.
    """
    batch_size, beam_size, vocab_size = scores.shape
    pieces = constraints.next_pieces(phrases, beams.met, eos)  # [R, K/G, C + 1]
    meeting = beams.live_scores[:, :, None] + jnp.take_along_axis(log_probs, pieces, axis=-1)
    best = jnp.argmax(scores, axis=-1)[:, :, None]
    constrained = (phrases.pieces > 0).any(axis=-1)[:, None]
    more = jnp.concatenate([pieces, best], axis=-1).reshape(batch_size, -1)
    values = jnp.concatenate([meeting, jnp.take_along_axis(scores, best, axis=-1)], axis=-1).reshape(batch_size, -1)
    parents = jnp.repeat(jnp.arange(beam_size), pieces.shape[-1] + 1)[None]
    parents = jnp.concatenate([candidates.parents, jnp.broadcast_to(parents, more.shape)], axis=1)
    tokens = jnp.concatenate([candidates.tokens, more], axis=1)
    values = jnp.concatenate([candidates.scores, jnp.where(constrained & (more > 0), values, IMPOSSIBLE)], axis=1)
    # Keep each candidate once, if possible with the score before the rules, by which it meets a constraint.
    code = parents * vocab_size + tokens
    later = jnp.arange(code.shape[1])[None, :] > jnp.arange(code.shape[1])[:, None]
    better = (values[:, None] > values[:, :, None]) | ((values[:, None] == values[:, :, None]) & later[None])
    repeated = ((code[:, None] == code[:, :, None]) & better).any(axis=-1)
    rows = jnp.arange(batch_size)[:, None]
    unmet = constraints.num_unmet(phrases, constraints.advance(phrases, beams.met[rows, parents], tokens))
    left = (limits - beams.position - 1)[:, None]
    hopeless = constrained & jnp.where(tokens == eos, unmet > 0, left < unmet + 1)
    # The costs of diversity do not apply to pieces that meet a constraint.
    order = jnp.concatenate([candidates.order, values[:, candidates.order.shape[1] :]], axis=1)
    scores, order = (jnp.where(repeated | hopeless, IMPOSSIBLE, array) for array in (values, order))
    return Candidates(scores, order, parents, tokens)
