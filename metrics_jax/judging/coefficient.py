"""What a coefficient of agreement can do, at whatever level: be computed, on bootstrap samples too, and be tested."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from metrics_jax.judging import pairs
from metrics_jax.judging.judgements import Judgements
from metrics_jax.prediction import correlation

VECTORS: dict[str, Any] = {"pearson": correlation.pearson, "spearman": correlation.spearman}
NAMES = (*VECTORS, *pairs.COEFFICIENTS, "kendall_c", "spa")
AT_ONCE = 2**23  # numbers held in memory
TINY = 1e-12
Advance = Callable[[float], None]  # is told how many more trials have been done, of two metrics each


def ignored(done: float) -> None:
    """An `Advance` of nobody who watches."""


class Coefficient:
    """A coefficient of some judgements, or several sets of them; M metrics are judged at once.

    Scores are float[M, N], higher is better, of the N texts of the judgements. of_systems: their means are compared.
    """

    of_systems = False

    def values(self, scores: np.ndarray) -> np.ndarray:
        """-> float[M], the coefficient of each metric; NaN where it has none. ValueError for scores that are NaN."""
        raise NotImplementedError

    def resampled(self, scores: np.ndarray, draws: int, generator: np.random.Generator) -> np.ndarray:
        """-> float[M, draws], the coefficients of bootstrap samples, the same for all metrics."""
        raise NotImplementedError

    def swapped(
        self, scores: np.ndarray, trials: int, generator: np.random.Generator, advance: Advance = ignored
    ) -> Iterator[tuple[int, int, np.ndarray]]:
        """-> for each two metrics differences float[T] of their coefficients, once random halves are swapped.

        The scores are standardised first, so that they can be (Deutsch et al., 2021, section 4.2: PERM-BOTH). Two
        metrics come more than once, until T have summed to `trials`. What is done is told on the way.
        """
        raise NotImplementedError


def checked(scores: np.ndarray, judgements: Judgements) -> np.ndarray:
    """As float64[M, N]; ValueError for another shape, and for a score that is not finite, naming its text."""
    scores = np.asarray(scores, np.float64)
    if scores.ndim != 2 or scores.shape[1] != len(judgements.human):
        raise ValueError(f"scores must be float[metrics, {len(judgements.human)}], one a judgement, not {scores.shape}")
    if not (finite := np.isfinite(scores)).all():
        metric, text = np.argwhere(~finite)[0]
        raise ValueError(f"metric {metric} scores text {text} with {scores[metric, text]}: nothing agrees with that")
    return scores


def standardised(scores: np.ndarray) -> np.ndarray:
    """Scores float[M, N] -> each metric's with mean 0 and standard deviation 1."""
    return (scores - scores.mean(axis=1, keepdims=True)) / np.maximum(scores.std(axis=1, keepdims=True), TINY)


def vector_coefficient(
    name: str, scores: np.ndarray, human: np.ndarray, copies: np.ndarray | None = None
) -> np.ndarray:
    """Scores float[..., n] and human judgements float[..., n] -> float[...].

    copies: int[n], what was drawn: two of one number are no pair.
    """
    if name in VECTORS:
        return np.asarray(VECTORS[name](scores, human))
    human = np.broadcast_to(human, scores.shape)
    if name == "kendall_c":
        flat = zip(scores.reshape(-1, scores.shape[-1]), human.reshape(-1, scores.shape[-1]), strict=True)
        return np.array([correlation.kendall(x, y, "c") for x, y in flat]).reshape(scores.shape[:-1])
    one, other = np.triu_indices(scores.shape[-1], 1)
    if copies is not None:
        different = copies[one] != copies[other]
        one, other = one[different], other[different]
    counted = pairs.COEFFICIENTS[name].count(scores[..., one], scores[..., other], human[..., one], human[..., other])
    return pairs.ratio(counted.sum(axis=-1))


def counts_of_draws(size: int, draws: int, generator: np.random.Generator) -> np.ndarray:
    """How often each of `size` things is drawn, of `size` with replacement, float64[draws, size]."""
    drawn = generator.integers(size, size=(draws, size)) + size * np.arange(draws)[:, None]
    return np.bincount(drawn.ravel(), minlength=drawn.size).reshape(draws, size).astype(np.float64)
