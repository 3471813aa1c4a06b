"""How two lists of numbers go together: Pearson's r, Spearman's rho and Kendall's tau, as SciPy computes them.

Here an undefined coefficient is NaN, as one with a constant side is; `regression` has a number in its place.
"""

from typing import Literal

import numpy as np
import scipy.stats

_TINY = 1e-13  # of the norm: what is left of a constant once its mean is subtracted


def pearson(scores: np.ndarray, human: np.ndarray) -> np.ndarray:
    """Float[..., N] each -> Pearson's r, -1 to 1, float[...]; NaN where one side is constant.

    ValueError for sides of different length, fewer than two numbers, or one that is not finite.
    """
    x, y = _sides(scores, human)
    (x, x_norm), (y, y_norm) = map(_centred, (x, y))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.clip((x * y).sum(axis=-1) / (x_norm * y_norm), -1.0, 1.0)


def spearman(scores: np.ndarray, human: np.ndarray) -> np.ndarray:
    """Pearson's r of the ranks, equal numbers sharing the mean of theirs; else as `pearson`."""
    x, y = _sides(scores, human)
    return pearson(scipy.stats.rankdata(x, axis=-1), scipy.stats.rankdata(y, axis=-1))


def kendall(scores: np.ndarray, human: np.ndarray, variant: Literal["a", "b", "c"] = "b") -> float:
    """Float[N] each -> Kendall's tau, -1 to 1, in O(N log N); NaN where one side is constant, but 0 for tau-a.

    With C concordant and D discordant of all P = N (N - 1) / 2 pairs, tau-a is (C - D) / P (Kendall, 1938); tau-b
    divides by sqrt(pairs not tied in one side, times those not tied in the other) instead (Kendall, 1945); tau-c by
    N^2 (m - 1) / 2m, where m is the smaller number of distinct values (Stuart, 1953). Errors as `pearson`.
    """
    x, y = _sides(scores, human)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError("Kendall's tau wants two lists of numbers")
    if variant != "a":
        return float(scipy.stats.kendalltau(x, y, variant=variant).statistic)
    pairs, untied = len(x) * (len(x) - 1) // 2, np.sqrt(float(_untied(x)) * float(_untied(y)))
    # C - D is a whole number: rounding it takes away what the root has added.
    return float(np.rint(scipy.stats.kendalltau(x, y).statistic * untied) / pairs) if untied else 0.0


def _untied(numbers: np.ndarray) -> int:
    """How many pairs of different numbers there are."""
    counts = np.unique(numbers, return_counts=True)[1].astype(np.int64)
    return int((len(numbers) ** 2 - (counts**2).sum()) // 2)


def _centred(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers [..., N] less their mean, and their norm [...]: NaN where it is but a rounding error."""
    centred = numbers - numbers.mean(axis=-1, keepdims=True)
    norm = np.linalg.norm(centred, axis=-1)
    return centred, np.where(norm > _TINY * np.linalg.norm(numbers, axis=-1), norm, np.nan)


def _sides(scores: np.ndarray, human: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both as float64; ValueError as `pearson`."""
    x, y = np.asarray(scores, np.float64), np.asarray(human, np.float64)
    if not x.ndim or not y.ndim or x.shape[-1] != y.shape[-1]:
        raise ValueError(f"scores {x.shape} but human judgements {y.shape}: one each, in the same order")
    if x.shape[-1] < 2:
        raise ValueError(f"{x.shape[-1]} judgements: a correlation needs two or more")
    for name, side in (("scores", x), ("human judgements", y)):
        if not np.isfinite(side).all():
            raise ValueError(f"{name} hold NaN or infinity: nothing correlates with that")
    return x, y
