"""How well predicted labels agree with the true ones: accuracy, precision, recall, F1, Matthews correlation.

Labels are anything hashable, compared by equality; values are those of scikit-learn with `zero_division=0`.
"""

import dataclasses
import itertools
import math
from collections.abc import Hashable, Sequence

import numpy as np

from metrics_jax.api import check_lengths

AVERAGES = ("binary", "macro", "micro")

Labels = Sequence[Hashable] | np.ndarray


@dataclasses.dataclass(frozen=True)
class PrecisionRecall:
    """Precision, recall and their harmonic mean F1, each 0 to 1."""

    precision: float
    recall: float
    f1: float


def confusion(hypotheses: Labels, references: Labels) -> tuple[tuple[Hashable, ...], np.ndarray]:
    """N predicted, N true labels -> the L labels as they first appear, and int64[L, L], rows true, columns predicted.

    ValueError for unequal lengths or none at all, TypeError for a string where a sequence of labels is wanted.
    """
    for what, labels in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(labels, str):
            raise TypeError(f"{what} must be a sequence of labels, not a single string")
    check_lengths(hypotheses, references)
    if not len(hypotheses):
        raise ValueError("no labels: nothing to compare")
    plain = [labels.tolist() if isinstance(labels, np.ndarray) else labels for labels in (hypotheses, references)]
    numbers = {label: number for number, label in enumerate(dict.fromkeys(itertools.chain(*plain)))}
    predicted, true = (np.fromiter(map(numbers.__getitem__, side), np.int64, len(side)) for side in plain)
    size = len(numbers)
    return tuple(numbers), np.bincount(true * size + predicted, minlength=size * size).reshape(size, size)


def accuracy(hypotheses: Labels, references: Labels) -> float:
    """N predicted and N true labels -> the share that are equal, 0 to 1; errors as `confusion`."""
    counts = confusion(hypotheses, references)[1]
    return float(counts.trace() / counts.sum())


def precision_recall_f1(
    hypotheses: Labels, references: Labels, average: str = "binary", positive: Hashable = 1
) -> PrecisionRecall:
    """N predicted and N true labels -> precision, recall and F1; 0 where a denominator is 0.

    average: "binary", those of the label `positive`, where there are at most two; "macro", the plain mean of each of
    the three over all labels that occur on either side; "micro", over pooled counts, where all three are the accuracy.
    ValueError for another average, for more than two labels with "binary", or if neither of two is `positive`.
    """
    if average not in AVERAGES:
        raise ValueError(f"average={average!r} is none of {', '.join(AVERAGES)}")
    labels, counts = confusion(hypotheses, references)
    hits, predicted, true = counts.diagonal(), counts.sum(axis=0), counts.sum(axis=1)
    if average == "micro":
        hits, predicted, true = (column.sum(keepdims=True) for column in (hits, predicted, true))
    elif average == "binary":
        if len(labels) > 2:
            raise ValueError(f'{len(labels)} labels are not binary: use average="macro" or "micro"')
        if len(labels) == 2 and positive not in labels:
            raise ValueError(f"positive={positive!r} is neither of the labels {labels[0]!r} and {labels[1]!r}")
        chosen = np.array([label == positive for label in labels])
        hits, predicted, true = (column[chosen] for column in (hits, predicted, true))
    return PrecisionRecall(_mean(hits, predicted), _mean(hits, true), _mean(2 * hits, predicted + true))


def matthews(hypotheses: Labels, references: Labels) -> float:
    """N predicted and N true labels -> Matthews correlation, -1 to 1, for any number of labels (Gorodkin 2004).

    0 where it is undefined: all predictions equal, or all true labels equal. Errors as `confusion`.
    """
    counts = confusion(hypotheses, references)[1]
    predicted, true = counts.sum(axis=0), counts.sum(axis=1)
    total, hits = int(counts.sum()), int(counts.trace())
    spread = [total**2 - int(column @ column) for column in (predicted, true)]  # total^2 times each side's variance
    if not all(spread):
        return 0.0
    return (hits * total - int(predicted @ true)) / math.sqrt(spread[0] * spread[1])


def _mean(numerators: np.ndarray, denominators: np.ndarray) -> float:
    """The mean of ratios float[L], 0 for none; numerators are 0 where denominators are."""
    return float((numerators / np.maximum(denominators, 1)).mean()) if len(numerators) else 0.0
