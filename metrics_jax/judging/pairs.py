"""Pairs of judged texts: does a metric order them as people do? Kendall's tau, WMT's variants of it, pairwise accuracy.

A pair has u, the sign of the difference of its scores, and s, that of people's; 0 is a tie. A coefficient is a sum of
credits over pairs, divided by the root of a product of two sums of weights.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

Signs = Callable[[np.ndarray, np.ndarray], np.ndarray]  # u and s, int8[...] -> what each pair counts

_AT_ONCE = 2**21  # pairs held in memory
_CELLS = 2**20  # of matrices of pairs, likewise
_CANDIDATES = 2**22  # differences that a threshold is chosen from
_EQUAL = 1e-12  # accuracies this close are equal: sums of floats depend on their order


class Groups(NamedTuple):
    """Which of N texts are compared with one another: rows int[G, n], and real bool[G, n], False in padding."""

    rows: np.ndarray
    real: np.ndarray

    @classmethod
    def of(cls, labels: np.ndarray) -> "Groups":
        """Labels int[N], 0 to G - 1 -> the groups of equal ones."""
        sizes = np.bincount(labels)
        real = np.arange(sizes.max())[None] < sizes[:, None]
        rows = np.zeros(real.shape, int)
        rows[real] = np.argsort(labels, kind="stable")
        return cls(rows, real)

    @property
    def sizes(self) -> np.ndarray:
        """int[G]."""
        return self.real.sum(axis=1)

    @property
    def num_pairs(self) -> int:
        """Of all groups."""
        return int((self.sizes * (self.sizes - 1) // 2).sum())

    def blocks(self) -> list[slice]:
        """The groups, as many at a time as have matrices of pairs that are not too large."""
        step = max(1, _CELLS // self.rows.shape[1] ** 2)
        return [slice(start, start + step) for start in range(0, len(self.rows), step)]

    def pairs(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """-> some groups int[g], and of each all or some pairs, as rows int[g, P] and int[g, P]; all in the end."""
        sizes = self.sizes
        for size in np.unique(sizes[sizes > 1]).tolist():
            groups = np.flatnonzero(sizes == size)
            height = max(1, _AT_ONCE // size)  # of a block of the triangle above the diagonal
            for start in range(0, size - 1, height):
                first, second = np.triu_indices(min(height, size - start), 1, size - start)
                step = max(1, _AT_ONCE // max(len(first), 1))
                for some in range(0, len(groups), step):
                    rows = self.rows[groups[some : some + step], start:size]
                    yield groups[some : some + step], rows[:, first], rows[:, second]


@dataclasses.dataclass(frozen=True)
class PairCoefficient:
    """The sum of credits, divided by sqrt(sum of `first` weights times sum of `second` weights).

    pooled: sums run over all groups, rather than a mean over groups being taken. least: pairs whose human judgements
    differ by less are left out. calibrated: scores that differ by no more than a threshold, the best one, are ties.
    """

    name: str
    credit: Signs
    first: Signs
    second: Signs
    pooled: bool = False
    least: float = 0.0
    calibrated: bool = False

    def value(self, sums: np.ndarray) -> np.ndarray:
        """Sums float[3, ..., G] of `sums` -> the coefficient float[...]; NaN where no group has one."""
        if self.pooled:
            sums = sums.sum(axis=-1, keepdims=True)
        return nan_mean(ratio(sums))

    def sums(self, groups: Groups, scores: np.ndarray, human: np.ndarray, threshold: float = 0.0) -> np.ndarray:
        """Scores and human judgements float[N] -> float[3, G]: credits, first and second weights of each group."""
        sums = np.zeros((3, len(groups.rows)))
        for some, one, other in groups.pairs():
            sums[:, some] += self.count(scores[one], scores[other], human[one], human[other], threshold).sum(axis=-1)
        return sums

    def count(
        self,
        score: np.ndarray,
        other_score: np.ndarray,
        human: np.ndarray,
        other_human: np.ndarray,
        threshold: float = 0.0,
    ) -> np.ndarray:
        """Scores and human judgements float[...] of the two texts of pairs -> float[3, ...], what they count."""
        u, s = signs(score - other_score, threshold), signs(human - other_human)
        counted = np.stack(np.broadcast_arrays(self.credit(u, s), self.first(u, s), self.second(u, s)))
        if self.least:
            counted = counted * (np.abs(human - other_human) >= self.least)
        return counted

    def threshold(self, groups: Groups, scores: np.ndarray, human: np.ndarray) -> float:
        """The least difference of scores that is no tie, as `calibrate`; 0 for a coefficient that has no such thing."""
        return calibrate(groups, scores, human) if self.calibrated else 0.0


def ratio(sums: np.ndarray) -> np.ndarray:
    """Sums float[3, ...] -> credits per weight float[...]; NaN where nothing has weight."""
    weight = np.sqrt(sums[1] * sums[2])
    return np.divide(sums[0], weight, out=np.full(weight.shape, np.nan), where=weight > 0)


def nan_mean(values: np.ndarray) -> np.ndarray:
    """Float[..., G] -> the mean of what is not NaN, float[...]; NaN where all is."""
    known = ~np.isnan(values)
    count = known.sum(axis=-1)
    total = np.where(known, values, 0.0).sum(axis=-1)
    return np.divide(total, count, out=np.full(np.shape(total), np.nan), where=count > 0)


def signs(differences: np.ndarray, threshold: float | np.ndarray = 0.0) -> np.ndarray:
    """-> int8[...]: -1, 0, 1; 0 for differences up to the threshold."""
    return (differences > threshold).astype(np.int8) - (differences < -threshold).astype(np.int8)


def calibrate(groups: Groups, scores: np.ndarray, human: np.ndarray) -> float:
    """The threshold at which most pairs are ordered, or tied, as people do, on the mean of the groups.

    Of all differences of scores, and 0, the smallest of the best (Deutsch et al., 2023, section 5); of more than four
    million differences every k-th is tried.
    """
    stride = math.ceil(max(groups.num_pairs, 1) / _CANDIDATES)
    some = [np.abs(scores[one] - scores[other]).ravel()[::stride] for _, one, other in groups.pairs()]
    candidates = np.unique(np.concatenate([[0.0], *some]))
    sizes = groups.sizes
    gains = np.zeros(len(candidates) + 1)
    for group, one, other in groups.pairs():
        difference, s = scores[one] - scores[other], signs(human[one] - human[other])
        gain = (s == 0).astype(np.int8) - (signs(difference) == s)  # of becoming a tie
        weights = gain / (sizes[group] * (sizes[group] - 1) / 2)[:, None]
        places = np.searchsorted(candidates, np.abs(difference).ravel())
        gains += np.bincount(places, weights.ravel(), len(gains))
    accuracy = np.cumsum(gains[:-1])
    return float(candidates[np.argmax(accuracy >= accuracy.max() - _EQUAL * len(sizes))])


def _all(u: np.ndarray, s: np.ndarray) -> np.ndarray:
    return np.ones(np.broadcast_shapes(u.shape, s.shape), np.int8)


def _agreement(u: np.ndarray, s: np.ndarray) -> np.ndarray:
    return u * s


def _score_differs(u: np.ndarray, s: np.ndarray) -> np.ndarray:
    return np.abs(u) + 0 * s


def _human_differs(u: np.ndarray, s: np.ndarray) -> np.ndarray:
    return 0 * u + np.abs(s)


def _both_differ(u: np.ndarray, s: np.ndarray) -> np.ndarray:
    return np.abs(u * s)


def _strict(u: np.ndarray, s: np.ndarray) -> np.ndarray:
    return np.abs(s) * (2 * (u == s).astype(np.int8) - 1)


def _same(u: np.ndarray, s: np.ndarray) -> np.ndarray:
    return (u == s).astype(np.int8)


COEFFICIENTS = {
    coefficient.name: coefficient
    for coefficient in (
        # Kendall's tau-b and tau-a
        PairCoefficient("kendall", _agreement, _score_differs, _human_differs),
        PairCoefficient("kendall_a", _agreement, _all, _all),
        # WMT's: human ties are dropped, and ties of scores are discordant (2012), dropped (2013), neither (2014-2016)
        PairCoefficient("wmt_discordant", _strict, _human_differs, _human_differs, pooled=True),
        PairCoefficient("wmt_excluded", _agreement, _both_differ, _both_differ, pooled=True),
        PairCoefficient("wmt_neutral", _agreement, _human_differs, _human_differs, pooled=True),
        # daRR (2017-2020): pairs 25 points of 100 apart
        PairCoefficient("darr", _strict, _human_differs, _human_differs, pooled=True, least=25.0),
        # Pairwise accuracy (Kocmi et al., 2021), and with tie calibration, acc*_eq (Deutsch et al., 2023)
        PairCoefficient("acc", _same, _all, _all),
        PairCoefficient("acc_eq", _same, _all, _all, calibrated=True),
    )
}
