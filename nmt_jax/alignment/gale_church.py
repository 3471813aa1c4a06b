"""Sentence alignment by length (Gale and Church, 1993, "A program for aligning sentences in bilingual corpora").

A document and its translation are divided into beads of zero to two sentences on each side. The cost of a bead with l1
and l2 characters is

    -log P(category) - log 2 (1 - Phi(|delta|)),    delta = (l2 - c l1) / sqrt(s^2 m),    m = (l1 + l2 / c) / 2,

where m is the mean of both lengths, as in the program of the appendix, so that an empty side is possible. Dynamic
programming finds the beads with the smallest total cost.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr

# Table 5 of the paper; as in its program, each order of a category has the probability of both.
PRIORS = {(1, 1): 0.89, (1, 0): 0.0099, (0, 1): 0.0099, (2, 1): 0.089, (1, 2): 0.089, (2, 2): 0.011}
CHARACTERS, VARIANCE = 1.0, 6.8  # c and s^2
HALF_WIDTH = 64  # of the first band that is searched, in sentences
_MOST = 2  # sentences on a side of a bead


class Bead(NamedTuple):
    """The sentences source[start:stop] and target[start:stop] that translate each other, and the cost in nats."""

    source: tuple[int, int]
    target: tuple[int, int]
    cost: float


def align(
    source: Sequence[int],
    target: Sequence[int],
    *,
    characters: float = CHARACTERS,
    variance: float = VARIANCE,
    half_width: int = HALF_WIDTH,
    progress: Callable[[range], Iterable[int]] = iter,
) -> list[Bead]:
    """The beads of a document with sentence lengths int[N] and its translation with lengths int[M], in order.

    Lengths are in characters, at least 1. characters: c, the expected target characters per source character. variance:
    s^2, of the target characters per source character. Only places near the straight line from the beginning to the end
    of both texts are searched, up to `half_width` source sentences away; if the best path is more than half as far
    away, twice the width is searched. progress: wraps the loops over all sentences of both sides.
    """
    search = _Search(np.asarray(source, np.int64), np.asarray(target, np.int64), characters, variance)
    while True:
        beads, distance = search.best(half_width, progress)
        if 2 * distance <= half_width or half_width >= max(len(source), len(target)):
            return beads
        half_width *= 2


def bead_cost(source: np.ndarray, target: np.ndarray, prior: np.ndarray, characters: float, variance: float) -> Any:
    """The cost float64[...] in nats of beads with int[...] characters on each side, not 0 on both."""
    mean = (source + target / characters) / 2
    delta = (target - characters * source) / np.sqrt(variance * mean)
    return -np.log(prior) - np.log(2) - log_ndtr(-np.abs(delta))


class _Search:
    """The dynamic program for two documents. Place (i, j) is after i source and j target sentences."""

    def __init__(self, source: np.ndarray, target: np.ndarray, characters: float, variance: float):
        self.num_source, self.num_target = len(source), len(target)
        self._options = characters, variance
        self._source, self._target = _lengths_before(source), _lengths_before(target)
        self._shapes, self._priors = np.array(list(PRIORS)), np.array(list(PRIORS.values()))

    def best(self, half_width: int, progress: Callable[[range], Iterable[int]]) -> tuple[list[Bead], int]:
        """The best beads within a band, and the largest distance of their ends from its middle, in source sentences.

        The places of a diagonal, with the same i + j, depend only on earlier diagonals: they are computed at once.
        """
        total = self.num_source + self.num_target
        costs = np.full((5, self.num_source + 1 + _MOST), np.inf)  # of the last five diagonals, at i + _MOST
        costs[0, _MOST] = 0.0
        starts, choices = [0], [np.zeros(1, np.int8)]
        for diagonal in progress(range(1, total + 1)):
            middle = self.num_source * diagonal // total
            start = max(0, diagonal - self.num_target, middle - half_width)
            stop = min(self.num_source, diagonal, middle + half_width) + 1
            found = self._steps(diagonal, start, stop)
            for row, (a, b) in zip(found, PRIORS, strict=True):
                row += costs[(diagonal - a - b) % 5, start - a + _MOST : stop - a + _MOST]
            best = found.argmin(axis=0)
            costs[diagonal % 5] = np.inf
            costs[diagonal % 5, start + _MOST : stop + _MOST] = found[best, np.arange(stop - start)]
            starts.append(start)
            choices.append(best.astype(np.int8))
        return self._path(starts, choices)

    def _steps(self, diagonal: int, start: int, stop: int) -> np.ndarray:
        """The costs float64[6, stop - start] of the beads that end at (i, diagonal - i), for start <= i < stop."""
        places = np.arange(start, stop)
        source = self._source[self._shapes[:, :1], places]
        target = self._target[self._shapes[:, 1:], diagonal - places]
        return bead_cost(source, target, self._priors[:, None], *self._options)

    def _path(self, starts: list[int], choices: list[np.ndarray]) -> tuple[list[Bead], int]:
        """Follow the best beads from the end to the beginning."""
        i, j = self.num_source, self.num_target
        beads, distance = [], 0
        while i + j:
            middle = self.num_source * (i + j) // (self.num_source + self.num_target)
            distance = max(distance, abs(i - middle))
            choice = choices[i + j][i - starts[i + j]]
            a, b = self._shapes[choice].tolist()
            cost = bead_cost(self._source[a, i], self._target[b, j], self._priors[choice], *self._options)
            beads.append(Bead((i - a, i), (j - b, j), float(cost)))
            i, j = i - a, j - b
        return beads[::-1], distance


def _lengths_before(lengths: np.ndarray) -> np.ndarray:
    """int64[3, N + 1]: how long the last 0, 1 and 2 sentences before each place are together; 1 if there are fewer."""
    before = np.ones((_MOST + 1, len(lengths) + 1), np.int64)
    before[0] = 0
    before[1, 1:] = lengths
    before[2, 2:] = lengths[:-1] + lengths[1:]
    return before
