"""The interface of coefficients of agreement: values, bootstrap samples and permutation tests."""

from collections.abc import Callable, Iterator

import numpy as np

from metrics_jax.judging import pairs
from metrics_jax.judging.score_vectors import VECTORS

NAMES = (*VECTORS, *pairs.COEFFICIENTS, "kendall_c", "spa")
Advance = Callable[[float], None]  # called with the number of trials, each of two metrics, done since the last call


def no_progress(done: float) -> None:
    """An `Advance` that does nothing."""


class Coefficient:
    """A coefficient of agreement with some judgements, computed for M metrics at once.

    Scores are float[M, N], higher is better, for the N judged texts. of_systems: whether the means of systems are
    compared.
    """

    of_systems = False

    def values(self, scores: np.ndarray) -> np.ndarray:
        """The coefficients float[M] of M metrics; NaN if undefined. Raises ValueError unless all scores are finite."""
        raise NotImplementedError

    def resampled(self, scores: np.ndarray, draws: int, generator: np.random.Generator) -> np.ndarray:
        """The coefficients float[M, draws] of bootstrap samples, which are the same for all metrics."""
        raise NotImplementedError

    def swapped(
        self, scores: np.ndarray, trials: int, generator: np.random.Generator, advance: Advance = no_progress
    ) -> Iterator[tuple[int, int, np.ndarray]]:
        """Swap random halves of the scores of each two metrics; yields both, and differences float[T] of coefficients.

        Scores are standardised first, so that they can be swapped (PERM-BOTH of Deutsch et al., 2021, section 4.2).
        Each pair of metrics is yielded several times, until the T add up to `trials`. `advance` reports progress.
        """
        raise NotImplementedError
