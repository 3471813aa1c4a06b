"""Stack decoding (Koehn, 2004): a beam search over partial translations, with a stack per number of covered words.

All hypotheses of a stack are extended at once, as arrays. As in cube pruning (Huang and Chiang, 2007), the language
model scores only the extensions that look best by an estimate: here the score with the future cost, and with the
probability of the new phrase without its context. Sentences of a batch go through their stacks together.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nmt_jax.ngram.model import NgramModel
from nmt_jax.ngram.vocabulary import EOS
from nmt_jax.phrases import features
from nmt_jax.phrases.future_cost import best_scores
from nmt_jax.phrases.lattice import Arcs, Lattice
from nmt_jax.phrases.options import LN_10, Options, collect, follow
from nmt_jax.phrases.phrase_table import PhraseTable
from nmt_jax.phrases.reordering import DISCONTINUOUS, MONOTONE, SWAP


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits of the search; each makes it faster and less exact.

    stack_size: hypotheses of a sentence in a stack. extensions: how many new hypotheses of a sentence the language
    model scores for a stack. distortion_limit: most words that a jump may skip.
    """

    stack_size: int = 100
    extensions: int = 400
    distortion_limit: int = 6


class Stack(NamedTuple):
    """H hypotheses with as many covered words, by sentence.

    sentence, node: int64[H]; node: number in the lattice. score, future: float64[H], of what is translated, and the
    estimate for the rest. start, end: int64[H], the source phrase translated last. after: float64[H, 3], weighted
    scores of the orientations of what follows. follower: int64[H], equal where `after` is. state: int64[H, N - 1], of
    the language model. covered: bool[H, S].
    """

    sentence: np.ndarray
    node: np.ndarray
    score: np.ndarray
    future: np.ndarray
    start: np.ndarray
    end: np.ndarray
    after: np.ndarray
    follower: np.ndarray
    state: np.ndarray
    covered: np.ndarray


class Extensions(NamedTuple):
    """C extensions of hypotheses: hypothesis (row of the joined stacks), option, orientation, estimate, future."""

    hypothesis: np.ndarray
    option: np.ndarray
    orientation: np.ndarray
    estimate: np.ndarray
    future: np.ndarray


def decode(
    table: PhraseTable, model: NgramModel, sentences: Sequence[np.ndarray], weights: np.ndarray, limits: Limits
) -> Lattice:
    """Returns the search graph of sentences of at least one word, each int64[S], numbers of words or NONE."""
    return _Search(model, collect(table, model, sentences), [len(one) for one in sentences], weights, limits).run()


class _Search:
    """The search for a batch of sentences."""

    def __init__(
        self, model: NgramModel, options: Options, lengths: Sequence[int], weights: np.ndarray, limits: Limits
    ) -> None:
        self.model, self.options, self.lengths, self.limits = model, options, np.array(lengths), limits
        self.lm_weight, self.distortion = weights[features.LANGUAGE_MODEL], weights[features.DISTORTION]
        self.static = options.features @ weights[: len(features.OPTION)]  # of each option, without context
        self.guess = self.lm_weight * options.language_model
        reordering = options.orientations * weights[features.FIRST_REORDERING :].reshape(2, 3)
        self.before, self.after = reordering[:, 0], reordering[:, 1]
        self.follower = np.unique(options.orientations[:, 1], axis=0, return_inverse=True)[1].ravel()
        parts = [slice(*pair) for pair in zip(options.bounds[:-1], options.bounds[1:], strict=True)]
        self.expanders = [_Expander(self, part, length) for part, length in zip(parts, lengths, strict=True)]
        self.stacks: list[Stack] = []
        self.firsts: list[int] = []  # number of hypotheses before each stack
        self.arcs: list[Arcs] = []
        self.num_nodes = 0

    def run(self) -> Lattice:
        waiting: list[list[Extensions]] = [[] for _ in range(self.lengths.max() + 1)]
        self._push(self._start())
        for size in range(len(waiting)):
            if size:
                self._settle(Extensions(*map(np.concatenate, zip(*waiting[size], strict=True))), size)
                waiting[size] = []
            stack = self.stacks[-1]
            bounds = np.searchsorted(stack.sentence, np.arange(len(self.lengths) + 1))
            for sentence in np.flatnonzero(self.lengths > size):
                rows = slice(bounds[sentence], bounds[sentence + 1])
                for length, found in self.expanders[sentence].expand(Stack(*(one[rows] for one in stack))):
                    moved = found._replace(hypothesis=found.hypothesis + self.firsts[-1] + rows.start)
                    waiting[size + length].append(moved)
        return Lattice(
            self.options,
            Arcs(*map(np.concatenate, zip(*self.arcs, strict=True))),
            len(self.lengths),
            [self._goals(number, length) for number, length in enumerate(self.lengths)],
        )

    def _start(self) -> Stack:
        """Returns the empty hypotheses; nodes 0 to B - 1 are their roots."""
        count, longest = len(self.lengths), self.lengths.max()
        self.num_nodes = count
        zero, none = np.zeros(count, np.int64), np.full(count, -1)
        future = np.array([one.future[0, -1] for one in self.expanders])
        state = self.model.start(count)
        nothing = np.zeros((count, longest), bool)
        number, after = np.arange(count), np.zeros((count, 3))
        return Stack(number, number, np.zeros(count), future, none, zero, after, none, state, nothing)

    def _settle(self, found: Extensions, size: int) -> None:
        """Scores the best extensions exactly, joins those with the same future, and adds the best as a stack."""
        options = self.options
        found = _best(found, options.sentence[found.option], found.estimate, self.limits.extensions)
        oldest = max(size - int((options.end - options.start).max()), 0)
        joined = Stack(*map(np.concatenate, zip(*self.stacks[oldest:], strict=True)))
        option, before = found.option, found.hypothesis - self.firsts[oldest]
        sentence = options.sentence[option]
        log_p, state = follow(self.model, joined.state[before], options.words[option], options.lengths[option])
        ended = np.flatnonzero(self.lengths[sentence] == size)
        log_p[ended] += LN_10 * self.model.advance(state[ended], np.full(len(ended), EOS))[0]
        score = found.estimate - found.future - self.guess[option] + self.lm_weight * log_p
        covered = joined.covered[before]
        places = np.arange(covered.shape[1])
        covered |= (places >= options.start[option][:, None]) & (places < options.end[option][:, None])
        stack = Stack(
            sentence,
            np.zeros(len(option), np.int64),
            score,
            found.future,
            options.start[option],
            options.end[option],
            self.after[option],
            self.follower[option],
            state,
            covered,
        )
        group, order, winner = _recombined(stack)
        best = order[winner]  # the best of each group
        rank = np.lexsort((-(score + found.future)[best], sentence[best]))
        kept = rank[_ranks(sentence[best][rank]) < self.limits.stack_size]
        nodes = np.full(len(best), -1)
        nodes[kept] = self.num_nodes + np.arange(len(kept))
        self.num_nodes += len(kept)
        node = nodes[group]  # of each extension, in `order`
        arcs = Arcs(
            node, joined.node[before[order]], option[order], found.orientation[order], score[order], log_p[order]
        )
        arcs = Arcs(*(one[node >= 0] for one in arcs))
        self.arcs.append(arcs)
        self._push(Stack(*(one[best[kept]] for one in stack))._replace(node=nodes[kept]))

    def _push(self, stack: Stack) -> None:
        self.firsts.append(self.firsts[-1] + len(self.stacks[-1].node) if self.stacks else 0)
        self.stacks.append(stack)

    def _goals(self, sentence: int, length: int) -> np.ndarray:
        stack = self.stacks[length]
        return stack.node[stack.sentence == sentence]


class _Expander:
    """Extends the hypotheses of one sentence."""

    def __init__(self, search: _Search, part: slice, length: int) -> None:
        self.search, self.length, self.first = search, length, part.start
        options = search.options
        start, end = options.start[part], options.end[part]
        spans, self.span = np.unique(np.stack([end - start, start, end], axis=1), axis=0, return_inverse=True)
        self.span = self.span.ravel()
        self.start, self.end = spans[:, 1], spans[:, 2]
        estimate = search.static[part] + search.guess[part]
        self.future = best_scores(start, end, estimate, length)
        self.estimate = estimate[:, None] + search.before[part]  # [O, 3]
        sizes = end - start  # in ascending order
        self.groups = [(size, slice(*np.searchsorted(sizes, (size, size + 1)))) for size in np.unique(sizes).tolist()]

    def expand(self, stack: Stack) -> list[tuple[int, Extensions]]:
        """Returns the extensions that look best, by the number of words that they cover."""
        base, orientation, future = self._spans(stack)
        found = []
        for size, group in self.groups:
            spans = self.span[group]
            sides = orientation[:, spans]
            estimate = base[:, spans] + self.estimate[np.arange(group.start, group.stop), sides]
            flat = estimate.ravel()
            most = self.search.limits.extensions
            chosen = np.argpartition(-flat, most)[:most] if len(flat) > most else np.arange(len(flat))
            chosen = chosen[flat[chosen] > -np.inf]
            if len(chosen):
                row, column = np.divmod(chosen, len(spans))
                option = column + group.start + self.first
                extensions = row, option, sides[row, column], flat[chosen], future[row, spans[column]]
                found.append((size, Extensions(*extensions)))
        return found

    def _spans(self, stack: Stack) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns for each hypothesis and span the score with all that does not depend on the option, the orientation
        and the future score; the first is -inf if the span cannot be translated next. [H, P] each.
        """
        search, start, end = self.search, self.start, self.end
        covered, places = stack.covered[:, : self.length], np.arange(self.length)
        gap_end = np.minimum.accumulate(np.where(covered, places, self.length)[:, ::-1], axis=1)[:, ::-1][:, start]
        gap_start = np.maximum.accumulate(np.where(covered, places, -1), axis=1)[:, start] + 1
        jump = np.abs(start - stack.end[:, None])
        limit, first_gap = search.limits.distortion_limit, covered.argmin(1)[:, None]
        # From behind the phrase, the search must be able to jump back to the first gap.
        allowed = (gap_end >= end) & (jump <= limit) & ((start == first_gap) | (end - first_gap <= limit))
        rest = self.future[np.minimum(gap_start, start), start] + self.future[end, np.maximum(gap_end, end)]
        change = rest - self.future[np.minimum(gap_start, gap_end), gap_end]
        future = stack.future[:, None] + change
        orientation = np.where(
            start == stack.end[:, None], MONOTONE, np.where(end == stack.start[:, None], SWAP, DISCONTINUOUS)
        )
        after = np.take_along_axis(stack.after, orientation, axis=1)
        base = stack.score[:, None] + future + after - search.distortion * jump
        return np.where(allowed, base, -np.inf), orientation, future


def _ranks(sorted_groups: np.ndarray) -> np.ndarray:
    """Returns how many members of its group are before each one."""
    first = np.flatnonzero(np.diff(sorted_groups, prepend=-1))
    sizes = np.diff(np.append(first, len(sorted_groups)))
    return np.arange(len(sorted_groups)) - np.repeat(first, sizes)


def _best(found: Extensions, sentence: np.ndarray, estimate: np.ndarray, most: int) -> Extensions:
    """Returns the `most` extensions of each sentence with the highest estimates."""
    order = np.lexsort((-estimate, sentence))
    order = order[_ranks(sentence[order]) < most]
    return Extensions(*(one[order] for one in found))


def _recombined(stack: Stack) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Joins hypotheses that any continuation scores equally.

    Returns an order in which they are side by side, the best first; in this order the number of the group of each,
    and the place of the first of each group.
    """
    bits = np.packbits(stack.covered, axis=1)
    bits = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8))).view(np.uint64)
    columns = [*bits.T.astype(np.int64), *stack.state.T, stack.follower, stack.start, stack.end, stack.sentence]
    order = np.lexsort((-stack.score, *columns))
    new = np.zeros(len(order), bool)
    new[:1] = True
    for one in columns:
        one = one[order]
        new[1:] |= one[1:] != one[:-1]
    return np.cumsum(new) - 1, order, np.flatnonzero(new)
