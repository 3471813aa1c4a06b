"""The texts with the highest scores."""

import numpy as np


def best(scores: np.ndarray, count: int) -> list[int]:
    """Returns the numbers of the `count` highest of N scores, best first; of equal scores, the first text's is higher.

    It does not sort all of them.
    """
    if 0 < count < len(scores):
        least = np.partition(scores, len(scores) - count)[len(scores) - count]
        numbers = np.flatnonzero(scores >= least)
    else:
        numbers = np.arange(len(scores))
    return [int(number) for number in numbers[np.argsort(-scores[numbers], kind="stable")][:count]]
