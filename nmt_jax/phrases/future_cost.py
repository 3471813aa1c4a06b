"""The best score that the translation of each span can have, whatever surrounds it (Koehn, 2004, section 2.4)."""

import numpy as np


def best_scores(start: np.ndarray, end: np.ndarray, estimates: np.ndarray, length: int) -> np.ndarray:
    """Returns float64[length + 1, length + 1]: at [i, j] an upper estimate for the words i <= n < j.

    It is the best of all translation options for the span and of all divisions of the span into two.

    start, end: int[O], the spans of translation options. estimates: float[O], their scores.
    """
    best = np.full((length + 1, length + 1), -np.inf)
    np.maximum.at(best, (start, end), estimates)
    np.fill_diagonal(best, 0.0)
    for size in range(2, length + 1):
        first = np.arange(length - size + 1)
        for part in range(1, size):
            parts = best[first, first + part] + best[first + part, first + size]
            best[first, first + size] = np.maximum(best[first, first + size], parts)
    return best
