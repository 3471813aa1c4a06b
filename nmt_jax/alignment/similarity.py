"""Links from a matrix of similarities, float[S, T] between 0 and 1, of the pieces of a sentence and its translation."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metrics_jax.embedding.exact_transport import Problem, assignment
from metrics_jax.embedding.transport import sinkhorn_plans

ALPHA, ROUNDS = 0.9, 2  # of `itermax`, those of the paper
ENTROPIC: dict[str, Any] = {"epsilon": 0.1, "num_iters": 60, "rounded": False}  # of `sinkhorn`; shares within 0.0002


def argmax(similarities: np.ndarray) -> np.ndarray:
    """Links bool[S, T] of two pieces that are most similar to each other (Jalili Sabet et al., 2020, "Argmax")."""
    forward, reverse = np.zeros(similarities.shape, bool), np.zeros(similarities.shape, bool)
    forward[np.arange(len(similarities)), similarities.argmax(axis=1)] = True
    reverse[similarities.argmax(axis=0), np.arange(similarities.shape[1])] = True
    return forward & reverse


def itermax(similarities: np.ndarray) -> np.ndarray:
    """Links bool[S, T] of `argmax`, repeated with smaller similarities of linked pieces.

    Jalili Sabet et al. (2020), "Itermax", algorithm 1: similarities count `ALPHA` times if one piece is linked, and
    not at all if both are.
    """
    links = argmax(similarities)
    for _ in range(ROUNDS - 1):
        source, target = links.any(axis=1, keepdims=True), links.any(axis=0, keepdims=True)
        weights = np.where(source & target, 0, np.where(source | target, ALPHA, 1))
        links = links | (argmax(similarities * weights) & (weights > 0))
    return links


def match(similarities: np.ndarray) -> np.ndarray:
    """One-to-one links bool[S, T] with the largest sum of similarities (Jalili Sabet et al., 2020, "Match")."""
    return assignment(*_problem(similarities))


BY_PAIR: dict[str, Callable[[np.ndarray], np.ndarray]] = {"argmax": argmax, "itermax": itermax, "match": match}
TRANSPORT = "transport"
METHODS = (*BY_PAIR, TRANSPORT)


def transport_shares(similarities: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Of each sentence pair, how much of the weight of a piece is transported to another, float[S, T] from 0 to 1.

    All pieces of a sentence have equal weights, the cost is 1 - similarity, and the plan is entropic (Cuturi, 2013);
    alignment by such plans is due to Dou and Neubig (2021). The share is relative to the piece of smaller
    weight, so all pieces of the longer sentence may be linked.
    """
    plans = sinkhorn_plans([_problem(one) for one in similarities], **ENTROPIC)
    return [plan * max(plan.shape) for plan in plans]


def _problem(similarities: np.ndarray) -> Problem:
    """The transport problem of pieces of equal weights."""
    return np.ones(len(similarities)), np.ones(similarities.shape[1]), 1 - similarities
