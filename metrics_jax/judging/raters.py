"""Agreement of raters beyond chance: Cohen's and Fleiss' kappa, Krippendorff's alpha.

All are 1 - observed disagreement / disagreement expected by chance: 1 is perfect agreement, 0 is chance, negative is
worse than chance. They are undefined, NaN, if no disagreement is expected, because all ratings are equal.
"""

import itertools
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

Weights = Literal["none", "linear", "quadratic"]
Labels = Sequence[Any] | np.ndarray
Level = Literal["nominal", "ordinal", "interval", "ratio"]

WEIGHTS: tuple[Weights, ...] = ("none", "linear", "quadratic")
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval", "ratio")


def cohen_kappa(first: Labels, second: Labels, weights: Weights = "none") -> float:
    """Cohen's kappa of two raters, who gave one label each to the same N texts; from -1 to 1.

    With p_ij the fraction of texts that got label i from the first and j from the second rater, kappa = 1 - sum w_ij
    p_ij / sum w_ij p_i. p_.j, where w_ij is [i != j] (Cohen, 1960), |i - j| or (i - j)^2 (Cohen, 1968); i and j are
    ranks among the labels that either used. NaN if both gave all texts the same label. Raises ValueError for different
    lengths, no texts, labels that are NaN or partly strings and partly not, and unknown weights; TypeError for a string
    instead of a sequence of labels.
    """
    if isinstance(first, str) or isinstance(second, str):
        raise TypeError("the labels of a rater must be a sequence, not a single string")
    if weights not in WEIGHTS:
        raise ValueError(f"there are no weights {weights!r}; choose one of {', '.join(WEIGHTS)}")
    if len(first) != len(second) or not len(first):
        raise ValueError(f"{len(first)} and {len(second)} labels: both raters must have labelled the same texts")
    if any(label != label for label in (*first, *second)):
        raise ValueError("labels contain NaN: leave such texts out")
    if len({isinstance(label, str) for label in (*first, *second)}) > 1:
        raise ValueError("labels must be all strings or all numbers: they are ranked")
    labels, ranks = np.unique(np.concatenate([first, second]), return_inverse=True)
    joint = np.zeros((len(labels), len(labels)))
    np.add.at(joint, (ranks[: len(first)], ranks[len(first) :]), 1 / len(first))
    distances = np.abs(np.subtract.outer(np.arange(len(labels)), np.arange(len(labels)))).astype(np.float64)
    penalties = {"none": np.sign(distances), "linear": distances, "quadratic": distances**2}[weights]
    expected = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return _beyond_chance(float((penalties * joint).sum()), float((penalties * expected).sum()))


def fleiss_kappa(ratings: np.ndarray) -> float:
    """Fleiss' kappa of ratings float[R, N] of N texts, R each, by raters who may differ from text to text.

    kappa = (P - P_e) / (1 - P_e), where P is the mean fraction of agreeing pairs of ratings of a text, and P_e the sum
    of the squared frequencies of the values (Fleiss, 1971). NaN if all ratings are equal. Raises ValueError for fewer
    than two ratings of a text, and for missing ones (NaN).
    """
    ratings = _check_table(ratings)
    if np.isnan(ratings).any():
        raise ValueError("Fleiss' kappa needs the same number of ratings of every text: use Krippendorff's alpha")
    size = len(ratings)
    values, codes = np.unique(ratings, return_inverse=True)
    counts = np.stack([(codes.reshape(ratings.shape) == code).sum(axis=0) for code in range(len(values))])
    agreeing = (counts * (counts - 1)).sum() / (size * (size - 1) * ratings.shape[1])
    chance = ((counts.sum(axis=1) / ratings.size) ** 2).sum()
    return _beyond_chance(1 - float(agreeing), 1 - float(chance))


def krippendorff_alpha(ratings: np.ndarray, level: Level = "interval") -> float:
    """Krippendorff's alpha of ratings float[R, N] of N texts by R raters; NaN where there is none.

    alpha = 1 - D_o / D_e: the mean difference of two ratings of the same text, and of any two ratings (Krippendorff,
    2011). A text with m ratings counts m times; one with a single rating does not count. The difference of c and k
    depends on the level of measurement: nominal [c != k], interval (c - k)^2, ratio ((c - k) / (c + k))^2; ordinal is
    the squared number of ratings between them, half of those equal to c or k included. NaN if no two ratings differ.
    Raises ValueError for an unknown level, for a table without a text that has two ratings, and for negative ratings at
    the level ratio.
    """
    if level not in LEVELS:
        raise ValueError(f"there is no level {level!r}; choose one of {', '.join(LEVELS)}")
    ratings = _check_table(ratings)
    sizes = (~np.isnan(ratings)).sum(axis=0)
    ratings, sizes = ratings[:, sizes > 1], sizes[sizes > 1]
    if level == "ratio" and np.nanmin(ratings) < 0:
        raise ValueError("the level ratio needs ratings that are not negative")
    values, codes, counts = np.unique(ratings[~np.isnan(ratings)], return_inverse=True, return_counts=True)
    if len(values) == 1:
        return float("nan")
    if level == "ordinal":  # the ratings up to the middle of each value: their differences are those between values
        values = np.cumsum(counts) - counts / 2
        ratings = ratings.copy()
        ratings[~np.isnan(ratings)] = values[codes]
    observed = 0.0
    for one, other in itertools.combinations(ratings, 2):
        both = ~np.isnan(one + other)
        observed += float((_differences(one[both], other[both], level) * 2 / (sizes[both] - 1)).sum())
    total = float(counts.sum())
    expected = _all_differences(values, counts.astype(np.float64), level)
    return _beyond_chance(observed / total, expected / (total * (total - 1)))


def _all_differences(values: np.ndarray, counts: np.ndarray, level: Level) -> float:
    """Sum of the differences of all ordered pairs of ratings, from their values float[V] and counts float[V]."""
    total = counts.sum()
    if level == "nominal":
        return float(total**2 - counts @ counts)
    if level == "ratio":
        pairs = zip(values, counts, strict=True)
        return float(sum(count * (counts @ _differences(value, values, level)) for value, count in pairs))
    return float(2 * total * (counts @ (values - counts @ values / total) ** 2))


def _differences(one: np.ndarray | float, others: np.ndarray, level: Level) -> np.ndarray:
    if level == "nominal":
        return np.not_equal(one, others).astype(np.float64)
    differences = (one - others) ** 2
    if level != "ratio":
        return differences
    sums = (one + others) ** 2
    return np.divide(differences, sums, out=np.zeros_like(differences), where=sums > 0)  # 0 and 0 do not differ


def _check_table(ratings: np.ndarray) -> np.ndarray:
    ratings = np.asarray(ratings, np.float64)
    if ratings.ndim != 2 or not ratings.size:
        raise ValueError(f"ratings must be a table of raters and their texts, not {ratings.shape}")
    if ((~np.isnan(ratings)).sum(axis=0) < 2).all():
        raise ValueError("no text has two ratings: agreement needs texts that were rated more than once")
    if np.isinf(ratings).any():
        raise ValueError("ratings contain infinity")
    return ratings


def _beyond_chance(observed: float, expected: float) -> float:
    return 1 - observed / expected if expected > 0 else float("nan")
