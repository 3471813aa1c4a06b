"""Word alignments: alignment error rate, precision and recall against links made by people (Och and Ney, 2003)."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from metrics_jax.api import check_lengths

Link = tuple[int, int]


class AlignmentScores(NamedTuple):
    """Alignment error rate, precision in the possible links, recall of the sure links; between 0 and 1."""

    error_rate: float
    precision: float
    recall: float


def alignment_statistics(
    hypotheses: Sequence[AbstractSet[Link]],
    sure: Sequence[AbstractSet[Link]],
    possible: Sequence[AbstractSet[Link]],
) -> np.ndarray:
    """int64[N, 4] of N sentence pairs: the links |A|, the sure links |S|, |A & S| and |A & P|.

    Sure links count as possible. Raises ValueError for unequal lengths.
    """
    check_lengths(hypotheses, sure)
    check_lengths(hypotheses, possible)
    rows = [
        (len(found), len(gold), len(found & gold), len(found & (gold | more)))
        for found, gold, more in zip(hypotheses, sure, possible, strict=True)
    ]
    return np.array(rows, np.int64).reshape(-1, 4)


def alignment_scores(statistics: ArrayLike) -> AlignmentScores:
    """Scores of int[N, 4], the statistics of N sentence pairs (Och and Ney, 2003, section 5).

    Precision is |A & P| / |A|, recall |A & S| / |S|, AER 1 - (|A & S| + |A & P|) / (|A| + |S|), of sums over all pairs.
    Where a denominator is 0, they are 0. Raises ValueError if there are no sentence pairs.
    """
    rows = np.asarray(statistics, np.int64).reshape(-1, 4)
    if not len(rows):
        raise ValueError("no sentence pairs: an empty corpus has no score")
    found, expected, hits, allowed = rows.sum(0).tolist()
    error_rate = 1 - (hits + allowed) / (found + expected) if found + expected else 0.0
    return AlignmentScores(error_rate, allowed / max(found, 1), hits / max(expected, 1))
