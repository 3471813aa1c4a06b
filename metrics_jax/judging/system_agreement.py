"""Agreement at the level of systems: coefficients of mean scores, and soft pairwise accuracy."""

import itertools
from collections.abc import Iterator

import numpy as np

from metrics_jax.judging import soft_accuracy
from metrics_jax.judging.coefficient import Advance, Coefficient, no_progress
from metrics_jax.judging.judgements import Judgements
from metrics_jax.judging.score_vectors import BLOCK_SIZE, checked, draw_counts, standardised, vector_coefficient


class SystemAgreement(Coefficient):
    """A coefficient of the mean scores of systems."""

    of_systems = True

    def __init__(self, judgements: Judgements, coefficient: str) -> None:
        self.judgements = judgements
        self._name = coefficient

    def values(self, scores: np.ndarray) -> np.ndarray:
        """See `Coefficient.values`."""
        means = self.judgements.system_means(checked(scores, self.judgements))
        return vector_coefficient(self._name, means, self.judgements.system_scores())

    def resampled(self, scores: np.ndarray, draws: int, generator: np.random.Generator) -> np.ndarray:
        """See `Coefficient.resampled`. Both systems and items are drawn (BOOT-BOTH of Deutsch et al., 2021)."""
        scores, judgements = checked(scores, self.judgements), self.judgements
        items = np.arange(scores.shape[1]) if judgements.items is None else judgements.labels("item")
        rows, mask = judgements.groups("system")
        with_human = np.concatenate([scores, judgements.human[None]])[:, rows].transpose(1, 2, 0)  # float[S, n, M + 1]
        result = np.full((len(scores), draws), np.nan)
        step = max(1, BLOCK_SIZE // rows.size)
        for start in range(0, draws, step):
            counts = draw_counts(items.max() + 1, min(step, draws - start), generator)[:, items]
            weights = (counts[:, rows] * mask).transpose(1, 0, 2)  # float[S, T, n]
            totals = weights.sum(axis=-1)
            with np.errstate(invalid="ignore"):
                means = (weights @ with_human / totals[:, :, None]).transpose(1, 2, 0)  # float[T, M + 1, S]
            drawn = generator.integers(len(rows), size=(len(means), len(rows)))
            for draw, (systems, system_means, total) in enumerate(zip(drawn, means, totals.T, strict=True), start):
                systems = systems[total[systems] > 0]  # no text of the other systems was drawn
                human = system_means[-1] if judgements.system_human is None else judgements.system_scores()
                if len(np.unique(systems)) > 1:
                    result[:, draw] = vector_coefficient(
                        self._name, system_means[:-1, systems], human[systems], systems
                    )
        return result

    def swapped(
        self, scores: np.ndarray, trials: int, generator: np.random.Generator, advance: Advance = no_progress
    ) -> Iterator[tuple[int, int, np.ndarray]]:
        """See `Coefficient.swapped`. Scores of segments are swapped, then averaged."""
        if self._name == "kendall_c":
            raise ValueError("kendall_c has no test: use kendall")
        scores, human = standardised(checked(scores, self.judgements)), self.judgements.system_scores()
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
                first, second = (
                    vector_coefficient(self._name, swapped, human) for swapped in (means[a] + gained, means[b] - gained)
                )
                yield a, b, first - second
                advance(len(flips))


class SoftAgreement(Coefficient):
    """Soft pairwise accuracy of systems; the p-values of humans are those of their judgements of segments."""

    of_systems = True

    def __init__(self, judgements: Judgements) -> None:
        self.judgements = judgements

    def _p_values(self, scores: np.ndarray) -> np.ndarray:
        return soft_accuracy.p_values(self.judgements.table(scores))

    def values(self, scores: np.ndarray) -> np.ndarray:
        """See `Coefficient.values`."""
        human = self._p_values(self.judgements.human)
        return np.array(
            [soft_accuracy.soft_accuracy(self._p_values(row), human) for row in checked(scores, self.judgements)]
        )

    def resampled(self, scores: np.ndarray, draws: int, generator: np.random.Generator) -> np.ndarray:
        """See `Coefficient.resampled`. Systems are drawn."""
        human = self._p_values(self.judgements.human)
        counts = draw_counts(len(human), draws, generator)
        return np.stack(
            [
                soft_accuracy.soft_accuracy(self._p_values(row), human, counts)
                for row in checked(scores, self.judgements)
            ]
        )

    def swapped(
        self, scores: np.ndarray, trials: int, generator: np.random.Generator, advance: Advance = no_progress
    ) -> Iterator[tuple[int, int, np.ndarray]]:
        """See `Coefficient.swapped`, but all scores of a system are swapped together (PERM-SYS).

        The p-values of two systems are then known in advance for each case: none, one or both of them swapped.
        """
        human = self._p_values(self.judgements.human)
        tables = [self.judgements.table(row) for row in standardised(checked(scores, self.judgements))]
        size = len(human)
        chosen = generator.integers(2, size=(trials, size), dtype=np.uint8).astype(bool)
        # Pairs of systems i < j, above the diagonal; the first of the two is the row.
        first, second = np.triu_indices(size, 1)
        known = ~np.isnan(human[first, second])
        first, second = first[known], second[known]
        p = soft_accuracy.p_values(np.concatenate(tables))  # between all systems as scored by all metrics
        distances = np.abs(p - np.tile(human, (len(scores), len(scores))))
        for a, b in itertools.combinations(range(len(scores)), 2):
            distance, other_distance = (
                distances[first + size * metrics[:, first], second + size * metrics[:, second]].sum(axis=1)
                for metrics in (np.where(chosen, b, a), np.where(chosen, a, b))
            )
            yield a, b, (other_distance - distance) / max(len(first), 1)
            advance(trials)
