"""How metrics agree with people on several sets of judgements: the mean of a coefficient of each."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from metrics_jax.judging.coefficient import Advance, Coefficient, ignored
from metrics_jax.judging.pairs import nan_mean


class MeanAgreement(Coefficient):
    """The mean of a coefficient of each set; sets where a metric has none are left out, and so are empty means.

    Scores float[M, N] are those of the first set's texts, then those of the second's. Samples and swaps are drawn in
    each set by itself.
    """

    def __init__(self, parts: Sequence[Coefficient], sizes: Sequence[int]) -> None:
        """parts: one a set; sizes: how many texts each has."""
        self._parts, self._ends = list(parts), np.cumsum(sizes)
        self.of_systems = any(part.of_systems for part in parts)

    def values(self, scores: np.ndarray) -> np.ndarray:
        """As `Coefficient.values`."""
        return self._mean(scores, lambda part, own: part.values(own))

    def resampled(self, scores: np.ndarray, draws: int, generator: np.random.Generator) -> np.ndarray:
        """As `Coefficient.resampled`."""
        return self._mean(scores, lambda part, own: part.resampled(own, draws, generator))

    def swapped(
        self, scores: np.ndarray, trials: int, generator: np.random.Generator, advance: Advance = ignored
    ) -> Iterator[tuple[int, int, np.ndarray]]:
        """As `Coefficient.swapped`."""

        def differences(part: Coefficient, scores: np.ndarray) -> np.ndarray:
            """-> float[pairs of metrics, T]."""
            rows: dict[tuple[int, int], list[np.ndarray]] = {}
            for a, b, some in part.swapped(scores, trials, generator, lambda done: advance(done / len(self._parts))):
                rows.setdefault((a, b), []).append(some)
            return np.array([np.concatenate(rows[pair]) for pair in pairs])

        pairs = [(a, b) for a in range(len(scores)) for b in range(a + 1, len(scores))]
        if pairs:
            yield from ((a, b, row) for (a, b), row in zip(pairs, self._mean(scores, differences), strict=True))

    def _mean(self, scores: np.ndarray, of: Callable[[Coefficient, np.ndarray], np.ndarray]) -> np.ndarray:
        """The mean of what a function makes of each set and its scores."""
        own = np.split(scores, self._ends[:-1], axis=1)
        return nan_mean(np.stack([of(*one) for one in zip(self._parts, own, strict=True)], axis=-1))
