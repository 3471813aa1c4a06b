"""Agreement of a metric with human judgements: a coefficient at the level of segments (grouped or not) or of systems.

    judged = Judgements(human, systems, items)
    agreement(judged, "acc_eq", "segment", "item").values(scores)

`comparison` computes confidence intervals and tests of the coefficients. `segment_agreement` has the coefficients of
segments; those of systems, and soft pairwise accuracy, are here.
"""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.random import Generator

from metrics_jax.judging import coefficient as coefficients
from metrics_jax.judging import pairs
from metrics_jax.judging.coefficient import BLOCK_SIZE, NAMES, Advance, Coefficient, Swaps, checked, no_progress
from metrics_jax.judging.judgements import Judgements
from metrics_jax.judging.segment_agreement import PairAgreement, VectorAgreement
from metrics_jax.significance import SEED, check_sampling

LEVELS = ("segment", "system")


def agreement(judgements: Judgements, coefficient: str, level: str = "segment", grouping: str = "none") -> Coefficient:
    """Make the coefficient of the given name, one of `coefficient.NAMES`, at a level.

    level="segment": texts are compared with one another: all texts (grouping "none"), texts of the same item ("item"),
    or texts of the same system ("system"), with the mean over groups; grouping "item" is the summary level of TAC.
    WMT's variants of Kendall's tau and darr always compare texts of the same item. level="system": means of systems are
    compared; "spa" (see `soft_accuracy`) exists only at this level. Raises ValueError for unknown names and for
    combinations that do not exist.
    """
    if level not in LEVELS or coefficient not in NAMES:
        wrong, known = (level, LEVELS) if level not in LEVELS else (coefficient, NAMES)
        raise ValueError(f"there is no {wrong!r}; choose one of {', '.join(known)}")
    pair = pairs.COEFFICIENTS.get(coefficient)
    if level == "system":
        if len(judgements.system_names) < 3:
            raise ValueError(f"{len(judgements.system_names)} systems: level system needs three or more")
        if pair is not None and (pair.pooled or pair.calibrated):
            instead = "acc" if pair.calibrated else "kendall"
            raise ValueError(f"{coefficient} compares segments: use {instead} for systems, or level segment")
        return SoftAgreement(judgements) if coefficient == "spa" else SystemAgreement(judgements, coefficient)
    if coefficient == "spa":
        raise ValueError("spa compares systems: use level system")
    if pair is not None:
        return PairAgreement(judgements, pair, "item" if pair.pooled else grouping)
    return VectorAgreement(judgements, coefficient, grouping)


class SystemAgreement(Coefficient):
    """A coefficient of the mean scores of systems."""

    of_systems = True

    def __init__(self, judgements: Judgements, coefficient: str) -> None:
        self.judgements = judgements
        self._name = coefficient

    def values(self, scores: np.ndarray) -> np.ndarray:
        means = self.judgements.system_means(checked(scores, self.judgements))
        return coefficients.vector_coefficient(self._name, means, self.judgements.system_scores())

    def resampled(self, scores: np.ndarray, draws: int, generator: Generator) -> np.ndarray:
        """Both systems and items are drawn (BOOT-BOTH of Deutsch et al., 2021)."""
        scores, judgements = checked(scores, self.judgements), self.judgements
        items = np.arange(scores.shape[1]) if judgements.items is None else judgements.labels("item")
        rows, mask = judgements.groups("system")
        with_human = np.concatenate([scores, judgements.human[None]])[:, rows].transpose(1, 2, 0)  # float[S, n, M + 1]
        result = np.full((len(scores), draws), np.nan)
        step = max(1, BLOCK_SIZE // rows.size)
        for start in range(0, draws, step):
            counts = coefficients.draw_counts(items.max() + 1, min(step, draws - start), generator)[:, items]
            weights = (counts[:, rows] * mask).transpose(1, 0, 2)  # float[S, T, n]
            totals = weights.sum(axis=-1)
            with np.errstate(invalid="ignore"):
                means = (weights @ with_human / totals[:, :, None]).transpose(1, 2, 0)  # float[T, M + 1, S]
            drawn = generator.integers(len(rows), size=(len(means), len(rows)))
            for draw, (systems, system_means, total) in enumerate(zip(drawn, means, totals.T, strict=True), start):
                systems = systems[total[systems] > 0]  # no text of the other systems was drawn
                human = system_means[-1] if judgements.system_human is None else judgements.system_scores()
                if len(np.unique(systems)) > 1:
                    means_drawn = system_means[:-1, systems]
                    result[:, draw] = coefficients.vector_coefficient(self._name, means_drawn, human[systems], systems)
        return result

    def swapped(self, scores: np.ndarray, trials: int, generator: Generator, advance: Advance = no_progress) -> Swaps:
        """Scores of segments are swapped, then averaged."""
        if self._name == "kendall_c":
            raise ValueError("kendall_c has no test: use kendall")
        scores, human = coefficients.standardised(checked(scores, self.judgements)), self.judgements.system_scores()
        rows, mask = self.judgements.groups("system")
        shares = scores[:, rows] * mask / mask.sum(axis=1, keepdims=True)  # float[M, S, n], terms of the mean
        means = shares.sum(axis=-1)
        step = max(1, BLOCK_SIZE // max(rows.size, len(rows) ** 2))
        for start in range(0, trials, step):
            flips = generator.integers(2, size=(min(step, trials - start), scores.shape[1]), dtype=np.uint8)
            chosen = flips[:, rows].transpose(1, 0, 2).astype(np.float64)  # [S, T, n]
            half = (chosen @ shares.transpose(1, 2, 0)).transpose(2, 1, 0)  # float[M, T, S]
            for a, b in itertools.combinations(range(len(scores)), 2):
                gained = half[b] - half[a]
                swapped = means[a] + gained, means[b] - gained
                first, second = (coefficients.vector_coefficient(self._name, each, human) for each in swapped)
                yield a, b, first - second
                advance(len(flips))


class SoftAgreement(Coefficient):
    """Soft pairwise accuracy of systems; the p-values of humans are those of their judgements of segments."""

    of_systems = True

    def __init__(self, judgements: Judgements) -> None:
        self.judgements = judgements

    def _p_values(self, scores: np.ndarray) -> np.ndarray:
        return p_values(self.judgements.table(scores))

    def values(self, scores: np.ndarray) -> np.ndarray:
        human = self._p_values(self.judgements.human)
        rows = map(self._p_values, checked(scores, self.judgements))
        return np.array([soft_accuracy(row, human) for row in rows])

    def resampled(self, scores: np.ndarray, draws: int, generator: Generator) -> np.ndarray:
        """Systems are drawn."""
        human = self._p_values(self.judgements.human)
        counts = coefficients.draw_counts(len(human), draws, generator)
        rows = map(self._p_values, checked(scores, self.judgements))
        return np.stack([soft_accuracy(row, human, counts) for row in rows])

    def swapped(self, scores: np.ndarray, trials: int, generator: Generator, advance: Advance = no_progress) -> Swaps:
        """All scores of a system are swapped together (PERM-SYS).

        The p-values of two systems are then known in advance for each case: none, one or both of them swapped.
        """
        human = self._p_values(self.judgements.human)
        tables = [self.judgements.table(row) for row in coefficients.standardised(checked(scores, self.judgements))]
        size = len(human)
        chosen = generator.integers(2, size=(trials, size), dtype=np.uint8).astype(bool)
        # Pairs of systems i < j, above the diagonal; the first of the two is the row.
        first, second = np.triu_indices(size, 1)
        known = ~np.isnan(human[first, second])
        first, second = first[known], second[known]
        p = p_values(np.concatenate(tables))  # between all systems as scored by all metrics
        distances = np.abs(p - np.tile(human, (len(scores), len(scores))))
        for a, b in itertools.combinations(range(len(scores)), 2):
            distance, other_distance = (
                distances[first + size * metrics[:, first], second + size * metrics[:, second]].sum(axis=1)
                for metrics in (np.where(chosen, b, a), np.where(chosen, a, b))
            )
            yield a, b, (other_distance - distance) / max(len(first), 1)
            advance(trials)


class MeanAgreement(Coefficient):
    """The mean of the coefficients of several sets; sets where the coefficient is undefined are left out.

    Scores float[M, N] are those of the texts of the first set, then of the second, and so on. Bootstrap samples and
    swaps are drawn within each set.
    """

    def __init__(self, parts: Sequence[Coefficient], sizes: Sequence[int]) -> None:
        """Take one coefficient per set, and the number of texts in each set."""
        self._parts, self._ends = list(parts), np.cumsum(sizes)
        self.of_systems = any(part.of_systems for part in parts)

    def values(self, scores: np.ndarray) -> np.ndarray:
        return self._mean(scores, lambda part, scores: part.values(scores))

    def resampled(self, scores: np.ndarray, draws: int, generator: Generator) -> np.ndarray:
        return self._mean(scores, lambda part, scores: part.resampled(scores, draws, generator))

    def swapped(self, scores: np.ndarray, trials: int, generator: Generator, advance: Advance = no_progress) -> Swaps:
        def differences(part: Coefficient, scores: np.ndarray) -> np.ndarray:
            """Differences float[pairs of metrics, T]."""
            blocks: dict[tuple[int, int], list[np.ndarray]] = {pair: [] for pair in metric_pairs}
            for a, b, some in part.swapped(scores, trials, generator, lambda done: advance(done / len(self._parts))):
                blocks[a, b].append(some)
            return np.array([np.concatenate(block) for block in blocks.values()])

        if metric_pairs := list(itertools.combinations(range(len(scores)), 2)):
            yield from ((*pair, row) for pair, row in zip(metric_pairs, self._mean(scores, differences), strict=True))

    def _mean(self, scores: np.ndarray, function: Callable[[Coefficient, np.ndarray], np.ndarray]) -> np.ndarray:
        by_set = np.split(scores, self._ends[:-1], axis=1)
        return pairs.nan_mean(np.stack([function(*pair) for pair in zip(self._parts, by_set, strict=True)], axis=-1))


def p_values(segments: np.ndarray, *, permutations: int = 1000, seed: int = SEED) -> np.ndarray:
    """P-values float[S, S] of system i over system j, from segment scores float[S, N], NaN if missing.

    Each is the fraction of `permutations` in which the segments of the two systems, swapped at random, give a
    difference of means at least as large as the observed one: near 0 if i is better, near 1 if it is worse. Two systems
    are compared on the segments that both have (NaN if there are none), and the same segments are swapped for every
    pair (Thompson et al., 2024, section 4). Raises ValueError unless the scores are two-dimensional, and for fewer than
    one permutation.
    """
    check_sampling(0.5, permutations=permutations)
    segments = np.asarray(segments, np.float64)
    if segments.ndim != 2:
        raise ValueError(f"segments must be float[systems, segments], not of shape {segments.shape}")
    known = ~np.isnan(segments)
    scores = np.where(known, segments, 0.0)
    flips = np.random.default_rng(seed).integers(2, size=(permutations, segments.shape[1])) * 2.0 - 1.0
    p = np.full((len(segments), len(segments)), np.nan)
    for system in range(len(scores)):
        both = known & known[system]
        differences = (scores[system] - scores) * both
        margin = 1e-9 * np.abs(differences).sum(axis=1)  # sums of the same numbers in another order differ by rounding
        share = (flips @ differences.T >= differences.sum(axis=1) - margin).mean(axis=0)
        p[system] = np.where(both.any(axis=1), share, np.nan)
    np.fill_diagonal(p, np.nan)
    return p


def soft_accuracy(metric: np.ndarray, human: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Soft pairwise accuracy float[...], 0 to 1, of p-values float[..., S, S] of a metric and of humans.

    This is agreement on how confidently one system is better than another (Thompson et al., 2024): 1 - mean |difference
    of p-values| over pairs of systems, NaN if none has segments in common. weights: float[..., S], how often each
    system counts.
    """
    first, second = np.triu_indices(metric.shape[-1], 1)
    distances = np.abs(metric - human)[..., first, second]
    counts = np.ones(len(first)) if weights is None else weights[..., first] * weights[..., second]
    counts = np.where(np.isnan(distances), 0.0, counts)
    total, lost = counts.sum(axis=-1), (np.nan_to_num(distances) * counts).sum(axis=-1)
    return 1.0 - np.divide(lost, total, out=np.full(np.shape(total), np.nan), where=total > 0)
