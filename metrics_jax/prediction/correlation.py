"""Correlation of two lists of numbers: Pearson's r, Spearman's rho and Kendall's tau, equal to SciPy's."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

Numbers = Sequence[float] | np.ndarray

_RELATIVE_ROUNDING = 1e-13  # a centred list whose norm is smaller than this share of its norm before is constant


def pearson(x: Numbers, y: Numbers, *, undefined: float = np.nan) -> np.ndarray:
    """Pearson's r along the last axis: float[..., N] and float[..., N] -> float[...], from -1 to 1.

    `undefined` is the result if x or y is constant. Raises ValueError for different lengths, fewer than two numbers, or
    a number that is not finite.
    """
    x, y = _check_lists(x, y)
    (x, x_norm), (y, y_norm) = map(_centre, (x, y))
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.clip(np.vecdot(x, y) / (x_norm * y_norm), -1.0, 1.0)
    return np.where(np.isnan(r), undefined, r)


def spearman(x: Numbers, y: Numbers, *, undefined: float = np.nan) -> np.ndarray:
    """Spearman's rho: Pearson's r of the ranks, with the mean rank for ties. Otherwise as `pearson`."""
    from scipy import stats  # late: it takes a second

    x, y = _check_lists(x, y)
    return pearson(stats.rankdata(x, axis=-1), stats.rankdata(y, axis=-1), undefined=undefined)


def kendall(x: Numbers, y: Numbers, variant: Literal["a", "b", "c"] = "b") -> float:
    """Kendall's tau of float[N] and float[N], from -1 to 1, in O(N log N).

    With C concordant and D discordant pairs among all P = N (N - 1) / 2, tau-a is (C - D) / P (Kendall, 1938). Tau-b
    divides by sqrt(pairs not tied in x times pairs not tied in y) instead (Kendall, 1945), tau-c by N^2 (m - 1) / 2m,
    where m is the smaller number of distinct values (Stuart, 1953). If x or y is constant, tau-a is 0, the others NaN.
    Raises ValueError as `pearson`, and for another variant.
    """
    from scipy import stats  # late: it takes a second

    if variant not in ("a", "b", "c"):
        raise ValueError(f"variant={variant!r}: choose a, b or c")
    x, y = _check_lists(x, y)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"Kendall's tau needs one-dimensional arrays, not {x.shape} and {y.shape}")
    if variant != "a":
        return float(stats.kendalltau(x, y, variant=variant).statistic)
    pairs, untied = len(x) * (len(x) - 1) // 2, np.sqrt(float(_num_untied(x)) * float(_num_untied(y)))
    # C - D is an integer: rounding removes the error of the square root.
    return float(np.rint(stats.kendalltau(x, y).statistic * untied) / pairs) if untied else 0.0


def _num_untied(numbers: np.ndarray) -> int:
    """Number of pairs of different numbers in float[N]."""
    counts = np.unique(numbers, return_counts=True)[1].astype(np.int64)
    return int((len(numbers) ** 2 - (counts**2).sum()) // 2)


def _centre(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scale numbers float[..., N] and subtract their mean. Returns also the norm float[...], NaN if it is rounding.

    The scale is a power of two, which is exact, so that no square is too large or too small.
    """
    numbers = np.ldexp(numbers, -np.frexp(np.abs(numbers).max(axis=-1, keepdims=True))[1])
    centred = numbers - numbers.mean(axis=-1, keepdims=True)
    norm = np.sqrt(np.vecdot(centred, centred))
    return centred, np.where(norm > _RELATIVE_ROUNDING * np.linalg.norm(numbers, axis=-1), norm, np.nan)


def _check_lists(x: Numbers, y: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """Returns both as float64; raises ValueError as `pearson`."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if not x.ndim or not y.ndim or x.shape[-1] != y.shape[-1]:
        raise ValueError(f"cannot correlate arrays of shape {x.shape} and {y.shape}: their lengths must be equal")
    if x.shape[-1] < 2:
        raise ValueError(f"{x.shape[-1]} numbers: a correlation needs two or more")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("cannot correlate numbers that are NaN or infinite")
    return x, y
