"""The interface of coefficients of agreement, and what they share: checks, standard scores, bootstrap draws."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.random import Generator

from metrics_jax.judging import pairs
from metrics_jax.judging.judgements import Judgements
from metrics_jax.prediction import correlation

VECTORS: dict[str, Any] = {"pearson": correlation.pearson, "spearman": correlation.spearman}
NAMES = (*VECTORS, *pairs.COEFFICIENTS, "kendall_c", "spa")
BLOCK_SIZE = 2**23  # numbers held in memory at a time
TINY = 1e-12
Advance = Callable[[float], None]  # called with the number of trials, each of two metrics, done since the last call
Swaps = Iterator[tuple[int, int, np.ndarray]]


def no_progress(done: float) -> None:
    """An `Advance` that does nothing."""


class Coefficient:
    """A coefficient of agreement with judgements, of M metrics with scores float[M, N] of N texts; higher is better."""

    of_systems = False  # whether the means of systems are compared

    def values(self, scores: np.ndarray) -> np.ndarray:
        """The coefficients float[M] of M metrics; NaN if undefined. Raises ValueError unless all scores are finite."""
        raise NotImplementedError

    def resampled(self, scores: np.ndarray, draws: int, generator: Generator) -> np.ndarray:
        """The coefficients float[M, draws] of bootstrap samples, which are the same for all metrics."""
        raise NotImplementedError

    def swapped(self, scores: np.ndarray, trials: int, generator: Generator, advance: Advance = no_progress) -> Swaps:
        """Swap random halves of the scores of each two metrics; yields both, and differences float[T] of coefficients.

        Scores are standardised first, so that they can be swapped (PERM-BOTH of Deutsch et al., 2021, section 4.2).
        Each pair of metrics is yielded several times, until the T add up to `trials`. `advance` reports progress.
        """
        raise NotImplementedError


def checked(scores: np.ndarray, judgements: Judgements) -> np.ndarray:
    """Convert scores to float64[M, N]. Raises ValueError for another shape, and for a score that is not finite."""
    scores = np.asarray(scores, np.float64)
    if scores.ndim != 2 or scores.shape[1] != len(judgements.human):
        raise ValueError(
            f"scores must be float[metrics, {len(judgements.human)}], one per judgement, not of shape {scores.shape}"
        )
    if not (finite := np.isfinite(scores)).all():
        metric, text = np.argwhere(~finite)[0]
        raise ValueError(f"the score of text {text} by metric {metric} is {scores[metric, text]}: it must be finite")
    return scores


def standardised(scores: np.ndarray) -> np.ndarray:
    """Scores float[M, N], shifted and scaled to mean 0 and standard deviation 1 for each metric."""
    return (scores - scores.mean(axis=1, keepdims=True)) / np.maximum(scores.std(axis=1, keepdims=True), TINY)


def vector_coefficient(
    name: str, scores: np.ndarray, human: np.ndarray, copies: np.ndarray | None = None
) -> np.ndarray:
    """Coefficient float[...] of scores float[..., n] with human judgements float[..., n].

    copies: int[n], the numbers of the texts in a bootstrap sample: two copies of a text do not form a pair.
    """
    if name in VECTORS:
        return np.asarray(VECTORS[name](scores, human))
    human = np.broadcast_to(human, scores.shape)
    if name == "kendall_c":
        flat = zip(scores.reshape(-1, scores.shape[-1]), human.reshape(-1, scores.shape[-1]), strict=True)
        return np.array([correlation.kendall(x, y, "c") for x, y in flat]).reshape(scores.shape[:-1])
    first, second = np.triu_indices(scores.shape[-1], 1)
    if copies is not None:
        different = copies[first] != copies[second]
        first, second = first[different], second[different]
    sides = scores[..., first], scores[..., second], human[..., first], human[..., second]
    return pairs.ratio(pairs.COEFFICIENTS[name].count(*sides).sum(axis=-1))


def draw_counts(size: int, draws: int, generator: Generator) -> np.ndarray:
    """Draw `size` items with replacement, `draws` times. Returns how often each is drawn, float64[draws, size]."""
    drawn = generator.integers(size, size=(draws, size)) + size * np.arange(draws)[:, None]
    return np.bincount(drawn.ravel(), minlength=drawn.size).reshape(draws, size).astype(np.float64)
