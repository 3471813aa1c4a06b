"""Agreement at the level of segments: over all texts, or the mean over groups of texts with the same item or system."""

import itertools
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from metrics_jax.judging import pairs
from metrics_jax.judging.coefficient import (
    BLOCK_SIZE,
    TINY,
    VECTORS,
    Advance,
    Coefficient,
    Swaps,
    checked,
    draw_counts,
    no_progress,
    standardised,
    vector_coefficient,
)
from metrics_jax.judging.judgements import Judgements
from metrics_jax.prediction import correlation

_TAUS: dict[str, Literal["a", "b"]] = {"kendall": "b", "kendall_a": "a"}
_SPARSE = 16  # use a sparse product if fewer than one in this many entries are nonzero
_LARGEST = 4096  # largest group of texts of which all pairs are held in memory at once


class _Counts(NamedTuple):
    """Credits and weights of pairs, int8[3, g, n, n], and their sums float32[3, g, n] by first and by second text."""

    matrices: np.ndarray
    sum_by_first: np.ndarray
    sum_by_second: np.ndarray

    @classmethod
    def of(cls, matrices: np.ndarray) -> "_Counts":
        floats, ones = matrices.astype(np.float32), np.ones(matrices.shape[-1], np.float32)
        return cls(matrices, floats @ ones, ones @ floats)


class PairAgreement(Coefficient):
    """A coefficient of pairs of texts within groups."""

    def __init__(self, judgements: Judgements, coefficient: pairs.PairCoefficient, grouping: str) -> None:
        self.judgements = judgements
        self._coefficient, self._groups = coefficient, judgements.groups(grouping)

    def values(self, scores: np.ndarray) -> np.ndarray:
        scores, human = checked(scores, self.judgements), self.judgements.human
        variant = _TAUS.get(self._coefficient.name)
        if variant and self._groups.rows.shape == (1, len(human)):  # O(N log N) instead of all pairs
            return np.array([correlation.kendall(row, human, variant) for row in scores])
        return np.array([self._coefficient.value(self._sums(row)) for row in scores])

    def thresholds(self, scores: np.ndarray) -> np.ndarray:
        """Tie thresholds float[M] of the metrics; 0 unless the coefficient is calibrated."""
        human = self.judgements.human
        return np.array([self._coefficient.threshold(self._groups, row, human) for row in scores])

    def _sums(self, scores: np.ndarray) -> np.ndarray:
        threshold = float(self.thresholds(scores[None])[0])
        return self._coefficient.sums(self._groups, scores, self.judgements.human, threshold)

    def resampled(self, scores: np.ndarray, draws: int, generator: Generator) -> np.ndarray:
        """Groups are drawn, or texts if there is one group; thresholds are kept."""
        scores = checked(scores, self.judgements)
        if len(self._groups.rows) > 1:
            sums = np.stack([self._sums(row) for row in scores], axis=1)  # float[3, M, G]
            if self._coefficient.pooled:
                return pairs.ratio(sums @ draw_counts(sums.shape[-1], draws, generator).T)
            return _resampled_means(pairs.ratio(sums), draws, generator)
        self._check_size()
        counts = draw_counts(len(self.judgements.human), draws, generator).astype(np.float32)
        result = np.empty((len(scores), draws))
        for metric, (row, threshold) in enumerate(zip(scores, self.thresholds(scores), strict=True)):
            # Two copies of one text do not form a pair: the diagonal is 0.
            matrices = self._counts(slice(None), row, row, threshold).matrices[:, 0].astype(np.float32)
            totals = [np.einsum("ri,ri->r", counts @ matrix, counts) for matrix in matrices]
            result[metric] = pairs.ratio(np.array(totals, np.float64))
        return result

    def swapped(self, scores: np.ndarray, trials: int, generator: Generator, advance: Advance = no_progress) -> Swaps:
        """Thresholds are kept; between scores of two metrics, their mean is used."""
        self._check_size()
        scores = checked(scores, self.judgements)
        spread = np.maximum(scores.std(axis=1), TINY)
        # Differences equal to the threshold must stay ties although scores and thresholds are scaled separately.
        thresholds, scores = self.thresholds(scores) / spread * (1 + 1e-9), standardised(scores)
        groups, metric_pairs = self._groups, list(itertools.combinations(range(len(scores)), 2))
        step = max(1, 4 * BLOCK_SIZE // (groups.rows.size + 6 * len(groups.rows) * max(len(metric_pairs), 1)))
        for start in range(0, trials, step):
            flips = generator.integers(2, size=(min(step, trials - start), scores.shape[1]), dtype=np.uint8)
            sums = np.empty((len(metric_pairs), 2, 3, len(flips), len(groups.rows)))
            for block in (blocks := groups.blocks()):
                # float[g, T, n]: 1 where the scores of a text are swapped
                chosen = (flips[:, groups.rows[block]] * groups.mask[block]).transpose(1, 0, 2).astype(np.float32)
                own = [self._counts(block, *metric) for metric in zip(scores, scores, thresholds, strict=True)]
                for number, (a, b) in enumerate(metric_pairs):
                    mixed = self._counts(block, scores[b], scores[a], (thresholds[a] + thresholds[b]) / 2)
                    sums[number, ..., block] = _swapped_sums(own[a], own[b], mixed, chosen)
                    advance(len(flips) / len(blocks))
            for (a, b), (first, second) in zip(metric_pairs, sums, strict=True):
                yield a, b, self._coefficient.value(first) - self._coefficient.value(second)

    def _counts(self, block: slice, x: np.ndarray, y: np.ndarray, threshold: float) -> _Counts:
        """Count the pairs of a block of groups, with scores x for the first text and y for the second."""
        rows, mask = (side[block] for side in self._groups)
        human = self.judgements.human[rows]
        distinct = mask[:, :, None] & mask[:, None] & ~np.eye(rows.shape[1], dtype=bool)
        sides = x[rows][:, :, None], y[rows][:, None], human[:, :, None], human[:, None]
        return _Counts.of(self._coefficient.count(*sides, threshold) * distinct)

    def _check_size(self) -> None:
        if (largest := self._groups.rows.shape[1]) > _LARGEST:
            raise ValueError(
                f"{self._coefficient.name} of {largest} texts has no intervals and tests, only up to {_LARGEST}: "
                "group them by item, or use pearson"
            )


class VectorAgreement(Coefficient):
    """Pearson's r, Spearman's rho, or Kendall's tau-c of scores within groups."""

    def __init__(self, judgements: Judgements, coefficient: str, grouping: str) -> None:
        self.judgements = judgements
        self._name, self._groups = coefficient, judgements.groups(grouping)

    def values(self, scores: np.ndarray) -> np.ndarray:
        return pairs.nan_mean(self._of_groups(checked(scores, self.judgements)))

    def _of_groups(self, scores: np.ndarray) -> np.ndarray:
        """Coefficients float[M, G] of the groups, from scores float[M, N]."""
        values = np.full((len(scores), len(self._groups.rows)), np.nan)
        sizes = self._groups.sizes
        for size in np.unique(sizes[sizes > 1]).tolist():
            groups = np.flatnonzero(sizes == size)
            rows = self._groups.rows[groups, :size]
            values[:, groups] = vector_coefficient(self._name, scores[:, rows], self.judgements.human[rows])
        return values

    def resampled(self, scores: np.ndarray, draws: int, generator: Generator) -> np.ndarray:
        """Groups are drawn, or texts if there is one group."""
        scores = checked(scores, self.judgements)
        if len(self._groups.rows) > 1:
            return _resampled_means(self._of_groups(scores), draws, generator)
        size, human = scores.shape[1], self.judgements.human
        result = np.empty((len(scores), draws))
        step = max(1, BLOCK_SIZE // size)
        for start in range(0, draws, step):
            block = slice(start, min(start + step, draws))
            if self._name == "pearson":
                result[:, block] = _weighted_pearson(scores, human, draw_counts(size, block.stop - start, generator))
                continue
            drawn = generator.integers(size, size=(block.stop - start, size))
            for metric, row in enumerate(scores):
                result[metric, block] = vector_coefficient(self._name, row[drawn], human[drawn])
        return result

    def swapped(self, scores: np.ndarray, trials: int, generator: Generator, advance: Advance = no_progress) -> Swaps:
        """For Spearman's rho, ranks within groups are swapped."""
        if self._name not in VECTORS:
            raise ValueError(f"{self._name} has no test: use kendall")
        scores, human = standardised(checked(scores, self.judgements)), self.judgements.human
        rows, mask = self._groups
        if self._name == "spearman":
            scores, human = (_ranks(side, self._groups) for side in (scores, human))
        sizes = self._groups.sizes
        centred = np.where(mask, human[rows], 0.0)
        centred = (centred - centred.sum(axis=1, keepdims=True) / sizes[:, None]) * mask
        norm = np.linalg.norm(centred, axis=1)
        x = scores[:, rows] * mask  # float[M, G, n]
        moments = np.stack([x, x * x, x * centred], axis=-1)
        totals = moments.sum(axis=2)  # float[M, G, 3]
        step = max(1, BLOCK_SIZE // (rows.size + 3 * len(rows) * len(scores)))
        metric_pairs = list(itertools.combinations(range(len(scores)), 2))
        for start in range(0, trials, step):
            flips = generator.integers(2, size=(min(step, trials - start), scores.shape[1]), dtype=np.uint8)
            chosen = flips[:, rows].transpose(1, 0, 2).astype(np.float64)
            half = chosen @ np.concatenate(list(moments), axis=-1)  # moments of each metric's chosen half, [G, T, 3 M]
            half = half.reshape(*half.shape[:2], len(scores), 3)
            for a, b in metric_pairs:
                gained = half[:, :, b] - half[:, :, a]
                sums = (totals[a][:, None] + gained, totals[b][:, None] - gained)
                first, second = (_pearson_of_moments(each, sizes[:, None], norm[:, None]) for each in sums)
                yield a, b, pairs.nan_mean(first.T) - pairs.nan_mean(second.T)
                advance(len(flips))


def _swapped_sums(own: _Counts, other: _Counts, mixed: _Counts, chosen: np.ndarray) -> np.ndarray:
    """Sums float[2, 3, T, g] over the pairs of each group, for two metrics whose scores of chosen texts are swapped.

    own, other, mixed: counts of pairs with scores x, with scores y, and with y for the first and x for the second text;
    chosen float32[g, T, n]. Since none, one or both texts of a pair may be chosen, the sum over the pairs of a group is
    a quadratic form of c, its row of `chosen`; the sum for the other metric is the same form of 1 - c.
    """
    sums = np.empty((2, 3, chosen.shape[1], len(chosen)))
    for kind in range(3):
        x, y, between = own.matrices[kind], other.matrices[kind], mixed.matrices[kind]
        quadratic = _quadratic_forms(chosen, x + y - between - between.transpose(0, 2, 1)) / 2
        gained = mixed.sum_by_first[kind] - own.sum_by_first[kind]
        lost = other.sum_by_first[kind] - mixed.sum_by_second[kind]
        linear = chosen @ np.stack([gained, lost], axis=-1)  # [g, T, 2]
        sums[0, kind] = own.sum_by_first[kind].sum(axis=1) / 2 + quadratic + linear[..., 0].T
        sums[1, kind] = other.sum_by_first[kind].sum(axis=1) / 2 + quadratic - linear[..., 1].T
    return sums


def _quadratic_forms(chosen: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Quadratic forms c M c, float32[T, g], of the rows c of `chosen` float32[g, T, n] and matrices M int8[g, n, n]."""
    entries = np.count_nonzero(matrices)
    if not entries:  # counts of human ties do not depend on the choice
        return np.zeros(chosen.shape[1::-1], np.float32)
    if entries * _SPARSE < matrices.size and len(matrices) == 1:  # a metric with few ties
        from scipy import sparse  # late: it takes as long as all other imports

        product = (sparse.csr_array(matrices[0].T.astype(np.float32)) @ chosen[0].T).T[None]
    else:
        product = chosen @ matrices.astype(np.float32)
    return np.einsum("gti,gti->tg", product, chosen)


def _ranks(numbers: np.ndarray, groups: pairs.Groups) -> np.ndarray:
    """Ranks float[..., N] within groups of numbers float[..., N]."""
    from scipy import stats  # late: it takes a second

    ranks = np.zeros(numbers.shape)
    for size in np.unique(groups.sizes).tolist():
        rows = groups.rows[groups.sizes == size, :size]
        ranks[..., rows] = stats.rankdata(numbers[..., rows], axis=-1)
    return ranks


def _resampled_means(values: np.ndarray, draws: int, generator: Generator) -> np.ndarray:
    """Means float[M, draws] over drawn groups of values float[M, G]; NaN values are left out."""
    counts = draw_counts(values.shape[1], draws, generator)
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return (np.where(known, values, 0.0) @ counts.T) / (known.astype(np.float64) @ counts.T)


def _weighted_pearson(scores: np.ndarray, human: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Pearson's r float[M, T] of scores float[M, N] and human float[N] with counts float[T, N] of the texts."""
    x, y = standardised(scores), standardised(human[None])[0]
    size = scores.shape[1]
    mean_x, mean_y = x @ counts.T / size, counts @ y / size
    variance, of_y = (x * x) @ counts.T / size - mean_x**2, counts @ (y * y) / size - mean_y**2
    norm = np.sqrt(np.maximum(variance, 0.0) * np.maximum(of_y, 0.0))
    product = (x * y) @ counts.T / size - mean_x * mean_y
    return np.divide(product, norm, out=np.full(norm.shape, np.nan), where=norm > 1e-9)


def _pearson_of_moments(moments: np.ndarray, sizes: np.ndarray, norm_y: np.ndarray) -> np.ndarray:
    """Pearson's r float[...] from sums of x, x^2, x * centred y, float[..., 3], and y's norm; NaN for constant x."""
    total, square, product = np.moveaxis(moments, -1, 0)
    variance = square - total * total / sizes
    norm = np.sqrt(np.maximum(variance, 0.0)) * norm_y
    return np.divide(product, norm, out=np.full(norm.shape, np.nan), where=norm > 1e-9 * np.maximum(square, TINY))
