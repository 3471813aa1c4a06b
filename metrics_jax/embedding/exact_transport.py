"""Optimal transport between weighted points, on the host in float64: exact plans, lower bounds and one-to-one pairings.

A problem has weights a float[..., n] and b float[..., m] and costs float[..., n, m], where `cost[i, j]` is the cost of
moving weight 1 from i to j. Each side's weights are scaled to sum to 1. Points of weight 0 are padding, and their costs
are ignored. If one side has no weight at all, plan and cost are 0.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

_MAX_ITER = 10_000_000  # pivots; a problem of 500 x 500 points takes some ten thousand
_SPAN = 64  # problems that a thread solves at a time

Problem = tuple[np.ndarray, np.ndarray, np.ndarray]


class Solution(NamedTuple):
    """Plans float[..., n, m] with row sums a and column sums b.

    value float[...]: the cost of the plan. lower float[...]: a lower bound on the cost of any plan.
    """

    plan: Any  # np.ndarray or jax.Array
    value: Any
    lower: Any

    @property
    def gap(self) -> Any:
        """The largest amount by which the value may exceed the optimal cost, float[...]."""
        return self.value - self.lower


def exact(a: np.ndarray, b: np.ndarray, cost: np.ndarray, *, threads: int | None = None) -> Solution:
    """Optimal plans by POT's network simplex (Bonneel et al., 2011); threads: one per processor by default.

    Raises ValueError if shapes do not match, or if weights are negative or numbers not finite.
    """
    a, b, cost = _checked(a, b, cost)
    plan = np.zeros(cost.shape)
    numbers = list(np.ndindex(cost.shape[:-2]))

    def solve_span(start: int) -> None:
        for k in numbers[start : start + _SPAN]:
            _solve(a[k], b[k], cost[k], plan[k])

    if len(numbers) > _SPAN:
        with ThreadPoolExecutor(threads or os.cpu_count()) as pool:  # the solver releases the GIL
            list(pool.map(solve_span, range(0, len(numbers), _SPAN)))
    else:
        solve_span(0)
    value = (plan * cost).sum(axis=(-2, -1))
    return Solution(plan, value, value)


def relaxed(a: np.ndarray, b: np.ndarray, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two lower bounds float[...] of the optimal cost: each point of a, or of b, moves to where it is cheapest.

    The first drops the constraint on column sums, the second that on row sums. The larger one is the relaxed distance
    of Kusner et al. (2015, section 4). Raises as `exact`.
    """
    a, b, cost = _checked(a, b, cost)
    costs = np.where((a > 0)[..., :, None] & (b > 0)[..., None, :], cost, np.inf)
    nearest = (costs.min(axis=-1, initial=np.inf), costs.min(axis=-2, initial=np.inf))
    left, right = (np.where(np.isfinite(one), one, 0.0) for one in nearest)
    return (a * left).sum(axis=-1), (b * right).sum(axis=-1)


def assignment(a: np.ndarray, b: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """The cheapest one-to-one pairing of as many points as the shorter side has, bool[..., n, m].

    Weights only distinguish points from padding. Uses SciPy's solver (Crouse, 2016). Raises as `exact`.
    """
    from scipy.optimize import linear_sum_assignment

    a, b, cost = _checked(a, b, cost)
    pairs = np.zeros(cost.shape, bool)
    for k in np.ndindex(cost.shape[:-2]):
        rows, columns = np.flatnonzero(a[k]), np.flatnonzero(b[k])
        chosen_rows, chosen_columns = linear_sum_assignment(cost[k][np.ix_(rows, columns)])
        pairs[k][rows[chosen_rows], columns[chosen_columns]] = True
    return pairs


def _checked(a: np.ndarray, b: np.ndarray, cost: np.ndarray) -> Problem:
    """The problem in float64, with weights that sum to 1 or are all 0, and costs that are 0 in padding."""
    a, b, cost = (np.asarray(array, np.float64) for array in (a, b, cost))
    if a.ndim < 1 or b.ndim < 1 or cost.shape != (*a.shape, b.shape[-1]) or a.shape[:-1] != b.shape[:-1]:
        raise ValueError(f"costs of shape {cost.shape} do not match weights of shapes {a.shape} and {b.shape}")
    for weights in (a, b):
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ValueError("weights must be finite and not negative")
    cost = np.where((a > 0)[..., :, None] & (b > 0)[..., None, :], cost, 0.0)
    if not np.isfinite(cost).all():
        raise ValueError("costs must be finite")
    totals = [weights.sum(axis=-1, keepdims=True) for weights in (a, b)]
    both = (totals[0] > 0) & (totals[1] > 0)
    a, b = (np.divide(w, t, out=np.zeros_like(w), where=both) for w, t in zip((a, b), totals, strict=True))
    return a, b, cost


def _solve(a: np.ndarray, b: np.ndarray, cost: np.ndarray, plan: np.ndarray) -> None:
    """Writes the optimal plan of one problem. Raises RuntimeError if none is found in _MAX_ITER pivots."""
    from ot.lp.emd_wrap import emd_c  # late: importing POT also imports JAX and takes a second

    rows, columns = np.flatnonzero(a), np.flatnonzero(b)
    if not (len(rows) and len(columns)):
        return
    weights, others, costs = a[rows], b[columns], cost[np.ix_(rows, columns)]
    others *= weights.sum() / others.sum()  # exactly equal sums, or the linear program has no solution
    found, _, _, _, code = emd_c(weights, others, costs, _MAX_ITER, 1)
    if code != 1:
        raise RuntimeError(f"no optimal plan found for {len(rows)} x {len(columns)} points (POT's code {code})")
    plan[np.ix_(rows, columns)] = found
