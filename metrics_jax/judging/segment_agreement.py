"""How scores of texts agree with people: all texts together, or those of an item or a system, and the mean of that."""

import itertools
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse
import scipy.stats

from metrics_jax.judging import pairs
from metrics_jax.judging.coefficient import (
    AT_ONCE,
    TINY,
    VECTORS,
    Advance,
    Coefficient,
    checked,
    counts_of_draws,
    ignored,
    standardised,
    vector_coefficient,
)
from metrics_jax.judging.judgements import Judgements
from metrics_jax.judging.pairs import PairCoefficient
from metrics_jax.prediction import correlation

_TAUS: dict[str, Literal["a", "b"]] = {"kendall": "b", "kendall_a": "a"}
_SPARSE = 16  # a sparse product pays where so many entries are 0 for one that is not
_LARGEST = 4096  # texts of a group of which all pairs are held in memory at once


class _Counts(NamedTuple):
    """What pairs count, int8[3, g, n, n]; sums of those of which a text is the first, the second, float32[3, g, n]."""

    matrices: np.ndarray
    of_first: np.ndarray
    of_second: np.ndarray

    @classmethod
    def of(cls, matrices: np.ndarray) -> "_Counts":
        floats, ones = matrices.astype(np.float32), np.ones(matrices.shape[-1], np.float32)
        return cls(matrices, floats @ ones, ones @ floats)


class PairAgreement(Coefficient):
    """A coefficient of pairs of texts, in groups."""

    def __init__(self, judgements: Judgements, coefficient: PairCoefficient, grouping: str) -> None:
        self.judgements = judgements
        self._coefficient, self._groups = coefficient, judgements.groups(grouping)

    def values(self, scores: np.ndarray) -> np.ndarray:
        """As `Coefficient.values`."""
        scores, human = checked(scores, self.judgements), self.judgements.human
        variant = _TAUS.get(self._coefficient.name)
        if variant and self._groups.rows.shape == (1, len(human)):  # without looking at every pair
            return np.array([correlation.kendall(row, human, variant) for row in scores])
        return np.array([self._coefficient.value(self._sums(row)) for row in scores])

    def thresholds(self, scores: np.ndarray) -> np.ndarray:
        """-> float[M], the threshold of ties of each metric, where the coefficient is calibrated; else 0."""
        human = self.judgements.human
        return np.array([self._coefficient.threshold(self._groups, row, human) for row in scores])

    def _sums(self, scores: np.ndarray) -> np.ndarray:
        return self._coefficient.sums(
            self._groups, scores, self.judgements.human, float(self.thresholds(scores[None])[0])
        )

    def resampled(self, scores: np.ndarray, draws: int, generator: np.random.Generator) -> np.ndarray:
        """As `Coefficient.resampled`: groups are drawn, or texts where there is one; thresholds stay."""
        scores = checked(scores, self.judgements)
        if len(self._groups.rows) > 1:
            sums = np.stack([self._sums(row) for row in scores], axis=1)  # float[3, M, G]
            if self._coefficient.pooled:
                counts = counts_of_draws(sums.shape[-1], draws, generator)
                return pairs.ratio(sums @ counts.T)
            return _drawn_means(pairs.ratio(sums), draws, generator)
        self._check_size()
        counts = counts_of_draws(len(self.judgements.human), draws, generator).astype(np.float32)
        result = np.empty((len(scores), draws))
        for metric, (row, threshold) in enumerate(zip(scores, self.thresholds(scores), strict=True)):
            # Two copies of one text are no pair: the diagonal counts nothing.
            counted = self._counts(slice(None), row, row, threshold).matrices[:, 0].astype(np.float32)
            forms = [np.einsum("ri,ri->r", counts @ one, counts) for one in counted]
            result[metric] = pairs.ratio(np.array(forms, np.float64))
        return result

    def swapped(
        self, scores: np.ndarray, trials: int, generator: np.random.Generator, advance: Advance = ignored
    ) -> Iterator[tuple[int, int, np.ndarray]]:
        """As `Coefficient.swapped`; a calibrated threshold stays, and is their mean between scores of two metrics."""
        self._check_size()
        scores = checked(scores, self.judgements)
        spread = np.maximum(scores.std(axis=1), TINY)
        thresholds, scores = self.thresholds(scores) / spread, standardised(scores)
        # A metric's own differences have been divided: what was a threshold exactly may now lie a little beside it.
        thresholds = thresholds * (1 + 1e-9)
        groups, both = self._groups, list(itertools.combinations(range(len(scores)), 2))
        step = max(1, 4 * AT_ONCE // (groups.rows.size + 6 * len(groups.rows) * max(len(both), 1)))
        for start in range(0, trials, step):
            flips = generator.integers(2, size=(min(step, trials - start), scores.shape[1]), dtype=np.uint8)
            sums = np.empty((len(both), 2, 3, len(flips), len(groups.rows)))
            blocks = groups.blocks()
            for some in blocks:
                # float[g, T, n]: 1 where the text's score is the other metric's
                chosen = (flips[:, groups.rows[some]] * groups.real[some]).transpose(1, 0, 2).astype(np.float32)
                own = [self._counts(some, *one) for one in zip(scores, scores, thresholds, strict=True)]
                for place, (a, b) in enumerate(both):
                    mixed = self._counts(some, scores[b], scores[a], (thresholds[a] + thresholds[b]) / 2)
                    sums[place, ..., some] = _swapped_sums(own[a], own[b], mixed, chosen)
                    advance(len(flips) / len(blocks))
            for (a, b), (one, two) in zip(both, sums, strict=True):
                yield a, b, self._coefficient.value(one) - self._coefficient.value(two)

    def _counts(self, some: slice, x: np.ndarray, y: np.ndarray, threshold: float) -> _Counts:
        """What the pairs of some groups count whose first text is scored by x, their second by y."""
        rows, real = (side[some] for side in self._groups)
        human = self.judgements.human[rows]
        apart = real[:, :, None] & real[:, None] & ~np.eye(rows.shape[1], dtype=bool)
        counted = self._coefficient.count(
            x[rows][:, :, None], y[rows][:, None], human[:, :, None], human[:, None], threshold
        )
        return _Counts.of(counted * apart)

    def _check_size(self) -> None:
        if (largest := self._groups.rows.shape[1]) > _LARGEST:
            raise ValueError(
                f"{self._coefficient.name} of {largest} texts at once has no intervals and tests (up to {_LARGEST}): "
                "group them by item, or take pearson"
            )


class VectorAgreement(Coefficient):
    """Pearson's, Spearman's, or Kendall's tau-c of scores, in groups."""

    def __init__(self, judgements: Judgements, coefficient: str, grouping: str) -> None:
        self.judgements = judgements
        self._name, self._groups = coefficient, judgements.groups(grouping)

    def values(self, scores: np.ndarray) -> np.ndarray:
        """As `Coefficient.values`."""
        return pairs.nan_mean(self._of_groups(checked(scores, self.judgements)))

    def _of_groups(self, scores: np.ndarray) -> np.ndarray:
        """Scores float[M, N] -> float[M, G]."""
        values = np.full((len(scores), len(self._groups.rows)), np.nan)
        sizes = self._groups.sizes
        for size in np.unique(sizes[sizes > 1]).tolist():
            groups = np.flatnonzero(sizes == size)
            rows = self._groups.rows[groups, :size]
            values[:, groups] = vector_coefficient(self._name, scores[:, rows], self.judgements.human[rows])
        return values

    def resampled(self, scores: np.ndarray, draws: int, generator: np.random.Generator) -> np.ndarray:
        """As `Coefficient.resampled`: groups are drawn, or texts where there is one."""
        scores = checked(scores, self.judgements)
        if len(self._groups.rows) > 1:
            return _drawn_means(self._of_groups(scores), draws, generator)
        size, human = scores.shape[1], self.judgements.human
        result = np.empty((len(scores), draws))
        step = max(1, AT_ONCE // size)
        for start in range(0, draws, step):
            some = slice(start, min(start + step, draws))
            if self._name == "pearson":
                result[:, some] = _weighted(scores, human, counts_of_draws(size, some.stop - start, generator))
                continue
            drawn = generator.integers(size, size=(some.stop - start, size))
            for metric, row in enumerate(scores):
                result[metric, some] = vector_coefficient(self._name, row[drawn], human[drawn])
        return result

    def swapped(
        self, scores: np.ndarray, trials: int, generator: np.random.Generator, advance: Advance = ignored
    ) -> Iterator[tuple[int, int, np.ndarray]]:
        """As `Coefficient.swapped`; for Spearman's ranks in groups are swapped."""
        if self._name not in VECTORS:
            raise ValueError(f"{self._name} has no test: take kendall")
        scores, human = standardised(checked(scores, self.judgements)), self.judgements.human
        rows, real = self._groups
        if self._name == "spearman":
            scores, human = (_ranks(side, self._groups) for side in (scores, human))
        sizes = self._groups.sizes
        people = np.where(real, human[rows], 0.0)
        people = (people - people.sum(axis=1, keepdims=True) / sizes[:, None]) * real
        spread = np.linalg.norm(people, axis=1)
        x = scores[:, rows] * real  # float[M, G, n]
        moments = np.stack([x, x * x, x * people], axis=-1)
        totals = moments.sum(axis=2)  # float[M, G, 3]
        step = max(1, AT_ONCE // (rows.size + 3 * len(rows) * len(scores)))
        both = list(itertools.combinations(range(len(scores)), 2))
        for start in range(0, trials, step):
            flips = generator.integers(2, size=(min(step, trials - start), scores.shape[1]), dtype=np.uint8)
            chosen = flips[:, rows].transpose(1, 0, 2).astype(np.float64)
            picked = chosen @ np.concatenate(list(moments), axis=-1)  # of each metric the chosen half: [G, T, 3 M]
            picked = picked.reshape(*picked.shape[:2], len(scores), 3)
            for a, b in both:
                gained = picked[:, :, b] - picked[:, :, a]
                sides = (totals[a][:, None] + gained, totals[b][:, None] - gained)
                one, two = (_correlated(side, sizes[:, None], spread[:, None]) for side in sides)
                yield a, b, pairs.nan_mean(one.T) - pairs.nan_mean(two.T)
                advance(len(flips))


def _swapped_sums(own: _Counts, other: _Counts, mixed: _Counts, chosen: np.ndarray) -> np.ndarray:
    """Sums over the pairs of each group, float[2, 3, T, g], of two metrics once chosen texts have swapped scores.

    own, other, mixed: of pairs that x scores, or y, or y the first and x the second; chosen float32[g, T, n]. With c
    what is chosen of a group, a sum over its pairs is a quadratic form of c, as of a pair none, one or both are chosen;
    the other metric's is the same of 1 - c.
    """
    sums = np.empty((2, 3, chosen.shape[1], len(chosen)))
    for kind in range(3):
        x, y, between = own.matrices[kind], other.matrices[kind], mixed.matrices[kind]
        curve = x + y - between - between.transpose(0, 2, 1)
        bent = _forms(chosen, curve) / 2
        gained = mixed.of_first[kind] - own.of_first[kind]
        lost = other.of_first[kind] - mixed.of_second[kind]
        linear = chosen @ np.stack([gained, lost], axis=-1)  # [g, T, 2]
        sums[0, kind] = own.of_first[kind].sum(axis=1) / 2 + bent + linear[..., 0].T
        sums[1, kind] = other.of_first[kind].sum(axis=1) / 2 + bent - linear[..., 1].T
    return sums


def _forms(chosen: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """c M c of every choice c, float32[g, T, n], and the matrix of its group, int8[g, n, n] -> float32[T, g]."""
    entries = np.count_nonzero(matrices)
    if not entries:  # people's ties do not depend on what is chosen
        return np.zeros(chosen.shape[1::-1], np.float32)
    if entries * _SPARSE < matrices.size and len(matrices) == 1:  # few ties of a metric
        product = (scipy.sparse.csr_array(matrices[0].T.astype(np.float32)) @ chosen[0].T).T[None]
    else:
        product = chosen @ matrices.astype(np.float32)
    return np.einsum("gti,gti->tg", product, chosen)


def _ranks(numbers: np.ndarray, groups: pairs.Groups) -> np.ndarray:
    """Float[..., N] -> ranks float[..., N], each in its group."""
    ranks = np.zeros(numbers.shape)
    for size in np.unique(groups.sizes).tolist():
        rows = groups.rows[groups.sizes == size, :size]
        ranks[..., rows] = scipy.stats.rankdata(numbers[..., rows], axis=-1)
    return ranks


def _drawn_means(values: np.ndarray, draws: int, generator: np.random.Generator) -> np.ndarray:
    """Values float[M, G] of groups, NaN where there is none -> float[M, draws], their means once groups are drawn."""
    counts = counts_of_draws(values.shape[1], draws, generator)
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return (np.where(known, values, 0.0) @ counts.T) / (known.astype(np.float64) @ counts.T)


def _weighted(scores: np.ndarray, human: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Scores float[M, N], human float[N] and how often each text counts, float[T, N] -> Pearson's r float[M, T]."""
    x, y = standardised(scores), standardised(human[None])[0]
    size = scores.shape[1]
    mean_x, mean_y = x @ counts.T / size, counts @ y / size
    variance, of_y = (x * x) @ counts.T / size - mean_x**2, counts @ (y * y) / size - mean_y**2
    norm = np.sqrt(np.maximum(variance, 0.0) * np.maximum(of_y, 0.0))
    product = (x * y) @ counts.T / size - mean_x * mean_y
    return np.divide(product, norm, out=np.full(norm.shape, np.nan), where=norm > 1e-9)


def _correlated(moments: np.ndarray, sizes: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Sums of x, x^2 and x times centred y, float[..., 3], and the norm of y -> Pearson's r, NaN for a constant."""
    total, square, product = np.moveaxis(moments, -1, 0)
    variance = square - total * total / sizes
    norm = np.sqrt(np.maximum(variance, 0.0)) * spread
    return np.divide(product, norm, out=np.full(norm.shape, np.nan), where=norm > 1e-9 * np.maximum(square, TINY))
