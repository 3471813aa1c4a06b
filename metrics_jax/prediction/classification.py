"""Classification: accuracy, precision, recall, F1 and Matthews correlation of predicted labels.

Labels are any hashable values, compared by equality. Values equal those of scikit-learn with `zero_division=0`.
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
    """Precision, recall and F1, their harmonic mean; each from 0 to 1."""

    precision: float
    recall: float
    f1: float


def confusion(hypotheses: Labels, references: Labels) -> tuple[tuple[Hashable, ...], np.ndarray]:
    """Confusion matrix int64[L, L] of N predicted and N true labels, true ones in rows, predicted ones in columns.

    Returns the L labels, in order of first occurrence, and the matrix. Raises ValueError for unequal lengths, no
    labels, or labels that are NaN, and TypeError for a string instead of a sequence of labels.
    """
    for name, labels in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(labels, str):
            raise TypeError(f"{name} must be a sequence of labels, not a single string")
    check_lengths(hypotheses, references)
    if not len(hypotheses):
        raise ValueError("nothing to compare: there are no labels")
    plain = [labels.tolist() if isinstance(labels, np.ndarray) else labels for labels in (hypotheses, references)]
    numbers = {label: number for number, label in enumerate(dict.fromkeys(itertools.chain(*plain)))}
    if any(label != label for label in numbers):
        raise ValueError("labels contain NaN, which equals no label")
    predicted, true = (np.fromiter(map(numbers.__getitem__, side), np.int64, len(side)) for side in plain)
    size = len(numbers)
    return tuple(numbers), np.bincount(true * size + predicted, minlength=size * size).reshape(size, size)


def accuracy(hypotheses: Labels, references: Labels) -> float:
    """Fraction of N predicted labels that equal the true ones, 0 to 1. Raises errors as `confusion`."""
    counts = confusion(hypotheses, references)[1]
    return float(counts.trace() / counts.sum())


def precision_recall_f1(
    hypotheses: Labels, references: Labels, average: str = "binary", positive: Hashable = 1
) -> PrecisionRecall:
    """Precision, recall and F1 of N predicted labels; 0 where a denominator is 0.

    average: "binary" scores the label `positive` and allows at most two labels; "macro" is the mean of each of the
    three over all labels that occur on either side; "micro" pools the counts, so that all three equal the accuracy.
    Raises ValueError for another average, for more than two labels with "binary", or if neither of two labels is
    `positive`; other errors as `confusion`.
    """
    if average not in AVERAGES:
        raise ValueError(f"average={average!r}: choose one of {', '.join(AVERAGES)}")
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
    """Matthews correlation, -1 to 1, for any number of labels (Gorodkin 2004).

    It is 0 where it is undefined, when all predictions or all true labels are equal. Raises errors as `confusion`.
    """
    counts = confusion(hypotheses, references)[1]
    predicted, true = counts.sum(axis=0), counts.sum(axis=1)
    total, hits = int(counts.sum()), int(counts.trace())
    spread = [total**2 - int(column @ column) for column in (predicted, true)]  # total^2 times the variance
    if not all(spread):
        return 0.0
    return (hits * total - int(predicted @ true)) / math.sqrt(spread[0] * spread[1])


def _mean(numerators: np.ndarray, denominators: np.ndarray) -> float:
    """Mean of ratios float[L], 0 for L = 0; numerators are 0 where denominators are 0."""
    return float((numerators / np.maximum(denominators, 1)).mean()) if len(numerators) else 0.0
