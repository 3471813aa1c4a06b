"""Retrieval: the rank of the right candidate of each query, recall at k, and the median rank (Hodosh et al., 2013)."""

import numpy as np
from numpy.typing import ArrayLike


def ranks(similarities: ArrayLike, relevant: ArrayLike | None = None) -> np.ndarray:
    """The rank of the best right candidate of each of N queries, int64[N], from 1.

    similarities: float[N, M] of N queries to M candidates. relevant: bool[N, M], the right candidates, at least one in
    each row; by default candidate n is right for query n, and N = M. A wrong candidate that is as similar as the best
    right one comes before it. Raises ValueError for other shapes, NaN, and queries without a right candidate.
    """
    scores = np.asarray(similarities, np.float64)
    if scores.ndim != 2 or not scores.size:
        raise ValueError(f"similarities{list(scores.shape)}: a table of queries and candidates is needed")
    if relevant is None and scores.shape[0] != scores.shape[1]:
        raise ValueError(
            f"similarities{list(scores.shape)}: say which candidates are right, or give one for each query"
        )
    right = np.eye(len(scores), dtype=bool) if relevant is None else np.asarray(relevant, bool)
    if right.shape != scores.shape:
        raise ValueError(f"similarities{list(scores.shape)} but relevant{list(right.shape)}: shapes must be equal")
    if np.isnan(scores).any():
        raise ValueError("a similarity is NaN")
    if not right.any(axis=1).all():
        raise ValueError(f"query {int(np.argmin(right.any(axis=1)))} has no right candidate")
    best = np.where(right, scores, -np.inf).max(axis=1, keepdims=True)
    return 1 + np.sum((scores >= best) & ~right, axis=1)


def recall_at(ranks: ArrayLike, k: int) -> float:
    """Fraction, 0 to 1, of queries with a right candidate among the first k, given their ranks int[N].

    Raises ValueError if there are no queries or k is below 1.
    """
    found = _checked(ranks)
    if k < 1:
        raise ValueError(f"k={k}: must be at least 1")
    return float(np.mean(found <= k))


def median_rank(ranks: ArrayLike) -> float:
    """Median of the ranks int[N]; of an even number, the mean of the two in the middle. Raises ValueError for none."""
    return float(np.median(_checked(ranks)))


def _checked(ranks: ArrayLike) -> np.ndarray:
    found = np.asarray(ranks)
    if found.ndim != 1 or not found.size:
        raise ValueError(f"ranks{list(found.shape)}: a list of at least one rank is needed")
    return found
