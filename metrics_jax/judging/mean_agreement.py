"""Agreement of metrics with several sets of judgements: the mean of the coefficients of the sets."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from metrics_jax.judging.coefficient import Advance, Coefficient, no_progress
from metrics_jax.judging.pairs import nan_mean


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
        """See `Coefficient.values`."""
        return self._mean(scores, lambda part, scores: part.values(scores))

    def resampled(self, scores: np.ndarray, draws: int, generator: np.random.Generator) -> np.ndarray:
        """See `Coefficient.resampled`."""
        return self._mean(scores, lambda part, scores: part.resampled(scores, draws, generator))

    def swapped(
        self, scores: np.ndarray, trials: int, generator: np.random.Generator, advance: Advance = no_progress
    ) -> Iterator[tuple[int, int, np.ndarray]]:
        """See `Coefficient.swapped`."""

        def differences(part: Coefficient, scores: np.ndarray) -> np.ndarray:
            """Differences float[pairs of metrics, T]."""
            rows: dict[tuple[int, int], list[np.ndarray]] = {}
            for a, b, some in part.swapped(scores, trials, generator, lambda done: advance(done / len(self._parts))):
                rows.setdefault((a, b), []).append(some)
            return np.array([np.concatenate(rows[pair]) for pair in pairs])

        pairs = [(a, b) for a in range(len(scores)) for b in range(a + 1, len(scores))]
        if pairs:
            yield from ((a, b, row) for (a, b), row in zip(pairs, self._mean(scores, differences), strict=True))

    def _mean(self, scores: np.ndarray, function: Callable[[Coefficient, np.ndarray], np.ndarray]) -> np.ndarray:
        """Mean of a function of each set and its scores."""
        by_set = np.split(scores, self._ends[:-1], axis=1)
        return nan_mean(np.stack([function(*pair) for pair in zip(self._parts, by_set, strict=True)], axis=-1))
