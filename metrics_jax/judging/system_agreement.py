"""How scores of systems agree with people: means of their texts, or how sure it is that one is better than another."""

import itertools
from collections.abc import Iterator

import numpy as np

from metrics_jax.judging import soft_accuracy
from metrics_jax.judging.coefficient import (
    AT_ONCE,
    Advance,
    Coefficient,
    checked,
    counts_of_draws,
    ignored,
    standardised,
    vector_coefficient,
)
from metrics_jax.judging.judgements import Judgements


class SystemAgreement(Coefficient):
    """A coefficient of the mean scores of systems."""

    of_systems = True

    def __init__(self, judgements: Judgements, coefficient: str) -> None:
        self.judgements = judgements
        self._name = coefficient

    def values(self, scores: np.ndarray) -> np.ndarray:
        """As `Coefficient.values`."""
        means = self.judgements.system_means(checked(scores, self.judgements))
        return vector_coefficient(self._name, means, self.judgements.system_scores())

    def resampled(self, scores: np.ndarray, draws: int, generator: np.random.Generator) -> np.ndarray:
        """As `Coefficient.resampled`: both systems and items are drawn (Deutsch et al., 2021: BOOT-BOTH)."""
        scores, judged = checked(scores, self.judgements), self.judgements
        items = np.arange(scores.shape[1]) if judged.items is None else judged.labels("item")
        rows, real = judged.groups("system")
        both = np.concatenate([scores, judged.human[None]])[:, rows].transpose(1, 2, 0)  # float[S, n, M + 1]
        result = np.full((len(scores), draws), np.nan)
        step = max(1, AT_ONCE // rows.size)
        for start in range(0, draws, step):
            counts = counts_of_draws(items.max() + 1, min(step, draws - start), generator)[:, items]
            weights = (counts[:, rows] * real).transpose(1, 0, 2)  # float[S, T, n]
            totals = weights.sum(axis=-1)
            with np.errstate(invalid="ignore"):
                means = (weights @ both / totals[:, :, None]).transpose(1, 2, 0)  # float[T, M + 1, S]
            drawn = generator.integers(len(rows), size=(len(means), len(rows)))
            for draw, (some, of_systems, total) in enumerate(zip(drawn, means, totals.T, strict=True), start):
                some = some[total[some] > 0]  # of a system all of whose texts were left out nothing is known
                human = of_systems[-1] if judged.system_human is None else judged.system_scores()
                if len(np.unique(some)) > 1:
                    result[:, draw] = vector_coefficient(self._name, of_systems[:-1, some], human[some], some)
        return result

    def swapped(
        self, scores: np.ndarray, trials: int, generator: np.random.Generator, advance: Advance = ignored
    ) -> Iterator[tuple[int, int, np.ndarray]]:
        """As `Coefficient.swapped`: segments' scores are swapped, then averaged."""
        if self._name == "kendall_c":
            raise ValueError("kendall_c has no test: take kendall")
        scores, human = standardised(checked(scores, self.judgements)), self.judgements.system_scores()
        rows, real = self.judgements.groups("system")
        shares = scores[:, rows] * real / real.sum(axis=1, keepdims=True)  # float[M, S, n], what a text adds
        means = shares.sum(axis=-1)
        step = max(1, AT_ONCE // max(rows.size, len(rows) ** 2))
        for start in range(0, trials, step):
            flips = generator.integers(2, size=(min(step, trials - start), scores.shape[1]), dtype=np.uint8)
            chosen = flips[:, rows].transpose(1, 0, 2).astype(np.float64)  # [S, T, n]
            picked = (chosen @ shares.transpose(1, 2, 0)).transpose(2, 1, 0)  # float[M, T, S]
            for a, b in itertools.combinations(range(len(scores)), 2):
                gained = picked[b] - picked[a]
                one, two = (
                    vector_coefficient(self._name, side, human) for side in (means[a] + gained, means[b] - gained)
                )
                yield a, b, one - two
                advance(len(flips))


class SoftAgreement(Coefficient):
    """Soft pairwise accuracy of systems, people's p-values being those of their judgements of segments."""

    of_systems = True

    def __init__(self, judgements: Judgements) -> None:
        self.judgements = judgements

    def _p_values(self, scores: np.ndarray) -> np.ndarray:
        return soft_accuracy.p_values(self.judgements.table(scores))

    def values(self, scores: np.ndarray) -> np.ndarray:
        """As `Coefficient.values`."""
        people = self._p_values(self.judgements.human)
        return np.array(
            [soft_accuracy.soft_accuracy(self._p_values(row), people) for row in checked(scores, self.judgements)]
        )

    def resampled(self, scores: np.ndarray, draws: int, generator: np.random.Generator) -> np.ndarray:
        """As `Coefficient.resampled`: systems are drawn."""
        people = self._p_values(self.judgements.human)
        counts = counts_of_draws(len(people), draws, generator)
        return np.stack(
            [
                soft_accuracy.soft_accuracy(self._p_values(row), people, counts)
                for row in checked(scores, self.judgements)
            ]
        )

    def swapped(
        self, scores: np.ndarray, trials: int, generator: np.random.Generator, advance: Advance = ignored
    ) -> Iterator[tuple[int, int, np.ndarray]]:
        """As `Coefficient.swapped`, but all scores of a system together (PERM-SYS).

        What the p-values of two systems are is then known beforehand, whether none, one or both are swapped.
        """
        people = self._p_values(self.judgements.human)
        tables = [self.judgements.table(row) for row in standardised(checked(scores, self.judgements))]
        size = len(people)
        chosen = generator.integers(2, size=(trials, size), dtype=np.uint8).astype(bool)
        # Above the diagonal i < j: the first of two systems is the row.
        first, second = np.triu_indices(size, 1)
        known = ~np.isnan(people[first, second])
        first, second = first[known], second[known]
        p = soft_accuracy.p_values(np.concatenate(tables))  # of any system by any metric over any by any
        lost = np.abs(p - np.tile(people, (len(scores), len(scores))))
        for a, b in itertools.combinations(range(len(scores)), 2):
            one, two = (
                lost[first + size * picks[:, first], second + size * picks[:, second]].sum(axis=1)
                for picks in (np.where(chosen, b, a), np.where(chosen, a, b))
            )
            yield a, b, (two - one) / max(len(first), 1)
            advance(trials)
