"""Coefficients of pairs of texts: Kendall's tau, WMT's variants of it, and pairwise accuracy.

For each pair, u is the sign of the difference of the metric's scores, and s that of the human judgements; 0 is a tie. A
coefficient is a sum of credits over pairs, divided by the square root of the product of two sums of weights.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

Signs = Callable[[np.ndarray, np.ndarray], np.ndarray]  # u and s, int8[...] -> credit or weight of each pair

_BLOCK_SIZE = 2**21  # pairs held in memory at a time
_MATRIX_SIZE = 2**20  # entries of matrices of pairs held in memory at a time
_CANDIDATES = 2**22  # number of differences that a threshold is chosen from
_EQUAL = 1e-12  # tolerance for equal accuracies: floating-point sums depend on their order
_DECIMALS = 9  # of differences of judgements: 75.1 - 50.1 is less than 25 in floating point


class Groups(NamedTuple):
    """Groups of texts that are compared with one another: rows int[G, n], and mask bool[G, n], False for padding."""

    rows: np.ndarray
    mask: np.ndarray

    @classmethod
    def of(cls, labels: np.ndarray) -> "Groups":
        """Group N texts by their labels int[N], numbered from 0 to G - 1."""
        sizes = np.bincount(labels)
        mask = np.arange(sizes.max())[None] < sizes[:, None]
        rows = np.zeros(mask.shape, int)
        rows[mask] = np.argsort(labels, kind="stable")
        return cls(rows, mask)

    @property
    def sizes(self) -> np.ndarray:
        """Number of texts of each group, int[G]."""
        return self.mask.sum(axis=1)

    @property
    def num_pairs(self) -> int:
        """Number of pairs in all groups."""
        return int((self.sizes * (self.sizes - 1) // 2).sum())

    def blocks(self) -> list[slice]:
        """Slices of groups whose matrices of pairs fit into memory together."""
        step = max(1, _MATRIX_SIZE // self.rows.shape[1] ** 2)
        return [slice(start, start + step) for start in range(0, len(self.rows), step)]

    def pairs(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield all pairs in blocks: groups int[g], and the rows int[g, P] of the first and of the second texts."""
        sizes = self.sizes
        for size in np.unique(sizes[sizes > 1]).tolist():
            groups = np.flatnonzero(sizes == size)
            height = max(1, _BLOCK_SIZE // size)  # rows of the triangle above the diagonal
            for start in range(0, size - 1, height):
                first, second = np.triu_indices(min(height, size - start), 1, size - start)
                step = max(1, _BLOCK_SIZE // max(len(first), 1))
                for begin in range(0, len(groups), step):
                    block = groups[begin : begin + step]
                    rows = self.rows[block, start:size]
                    yield block, rows[:, first], rows[:, second]


@dataclasses.dataclass(frozen=True)
class PairCoefficient:
    """A sum of credits, divided by sqrt(sum of `first` weights times sum of `second` weights), by name in `_SIGNS`.

    pooled: sum over the pairs of all groups, instead of averaging over groups. least: smallest difference of the human
    judgements of a pair; others are left out. calibrated: scores that differ by at most `calibrate`'s threshold tie.
    """

    name: str
    credit: str
    first: str
    second: str
    pooled: bool = False
    least: float = 0.0
    calibrated: bool = False

    def value(self, sums: np.ndarray) -> np.ndarray:
        """The coefficient float[...] of `sums` float[3, ..., G]; NaN if it is undefined for all groups."""
        if self.pooled:
            sums = sums.sum(axis=-1, keepdims=True)
        return nan_mean(ratio(sums))

    def sums(self, groups: Groups, scores: np.ndarray, human: np.ndarray, threshold: float = 0.0) -> np.ndarray:
        """Sums float[3, G] of credits and weights in each group, from scores and human judgements float[N]."""
        sums = np.zeros((3, len(groups.rows)))
        for block, first, second in groups.pairs():
            counted = self.count(scores[first], scores[second], human[first], human[second], threshold)
            sums[:, block] += counted.sum(axis=-1)
        return sums

    def count(
        self, x: np.ndarray, y: np.ndarray, human: np.ndarray, other_human: np.ndarray, threshold: float = 0.0
    ) -> np.ndarray:
        """Credit and weights float[3, ...] of pairs, from scores x, y and judgements float[...] of both texts."""
        u, s = signs(x - y, threshold), signs(human - other_human)
        kinds = self.credit, self.first, self.second
        counted = np.stack(np.broadcast_arrays(*(_SIGNS[kind](u, s) for kind in kinds)))
        return counted * (np.abs(human - other_human).round(_DECIMALS) >= self.least) if self.least else counted

    def threshold(self, groups: Groups, scores: np.ndarray, human: np.ndarray) -> float:
        """The tie threshold chosen by `calibrate`; 0 unless the coefficient is calibrated."""
        return calibrate(groups, scores, human) if self.calibrated else 0.0


def ratio(sums: np.ndarray) -> np.ndarray:
    """Sums float[3, ...] -> sum of credits divided by weight, float[...]; NaN where the weight is 0."""
    weight = np.sqrt(sums[1] * sums[2])
    return np.divide(sums[0], weight, out=np.full(weight.shape, np.nan), where=weight > 0)


def nan_mean(values: np.ndarray) -> np.ndarray:
    """Mean over the last axis of the values that are not NaN: float[..., G] -> float[...]; NaN if all are."""
    known = ~np.isnan(values)
    count, total = known.sum(axis=-1), np.where(known, values, 0.0).sum(axis=-1)
    return np.divide(total, count, out=np.full(np.shape(total), np.nan), where=count > 0)


def signs(differences: np.ndarray, threshold: float | np.ndarray = 0.0) -> np.ndarray:
    """Signs -1, 0, 1 of differences, as int8[...]; 0 for absolute differences up to the threshold."""
    return (differences > threshold).astype(np.int8) - (differences < -threshold).astype(np.int8)


def calibrate(groups: Groups, scores: np.ndarray, human: np.ndarray) -> float:
    """The tie threshold with the highest pairwise accuracy, averaged over groups.

    Candidates are 0 and all absolute differences of scores; the smallest of the best is returned (Deutsch et al., 2023,
    section 5). If there are more than four million differences, every k-th is tried.
    """
    stride = math.ceil(max(groups.num_pairs, 1) / _CANDIDATES)
    differences = [np.abs(scores[first] - scores[second]).ravel()[::stride] for _, first, second in groups.pairs()]
    candidates = np.unique(np.concatenate([[0.0], *differences]))
    sizes = groups.sizes
    gains = np.zeros(len(candidates) + 1)
    for group, first, second in groups.pairs():
        difference, s = scores[first] - scores[second], signs(human[first] - human[second])
        gain = (s == 0).astype(np.int8) - (signs(difference) == s)  # change of accuracy if the pair becomes a tie
        weights = gain / (sizes[group] * (sizes[group] - 1) / 2)[:, None]
        indices = np.searchsorted(candidates, np.abs(difference).ravel())
        gains += np.bincount(indices, weights.ravel(), len(gains))
    accuracy = np.cumsum(gains[:-1])
    return float(candidates[np.argmax(accuracy >= accuracy.max() - _EQUAL * len(sizes))])


_SIGNS: dict[str, Signs] = {
    "all": lambda u, s: np.ones(np.broadcast_shapes(u.shape, s.shape), np.int8),
    "agreement": lambda u, s: u * s,
    "score differs": lambda u, s: np.abs(u) + 0 * s,
    "human differs": lambda u, s: 0 * u + np.abs(s),
    "both differ": lambda u, s: np.abs(u * s),
    "strict": lambda u, s: np.abs(s) * (2 * (u == s).astype(np.int8) - 1),
    "same": lambda u, s: (u == s).astype(np.int8),
}
COEFFICIENTS = {
    coefficient.name: coefficient
    for coefficient in (
        # Kendall's tau-b and tau-a
        PairCoefficient("kendall", "agreement", "score differs", "human differs"),
        PairCoefficient("kendall_a", "agreement", "all", "all"),
        # WMT's variants drop human ties. Ties of scores are discordant (2012), dropped (2013), or neither (2014-2016).
        PairCoefficient("wmt_discordant", "strict", "human differs", "human differs", pooled=True),
        PairCoefficient("wmt_excluded", "agreement", "both differ", "both differ", pooled=True),
        PairCoefficient("wmt_neutral", "agreement", "human differs", "human differs", pooled=True),
        # daRR (2017-2020): pairs whose judgements differ by at least 25 of 100 points
        PairCoefficient("darr", "strict", "human differs", "human differs", pooled=True, least=25.0),
        # Pairwise accuracy (Kocmi et al., 2021), also with tie calibration, acc*_eq (Deutsch et al., 2023)
        PairCoefficient("acc", "same", "all", "all"),
        PairCoefficient("acc_eq", "same", "all", "all", calibrated=True),
    )
}
