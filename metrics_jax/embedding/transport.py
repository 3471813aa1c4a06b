"""Optimal transport by a named method: exact on the host, or Sinkhorn's algorithm on JAX's devices."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from metrics_jax.embedding.exact_transport import Problem, Solution, exact
from metrics_jax.embedding.lengths import bucket

METHODS = ("exact", "sinkhorn")
_BATCH = 256  # problems that a device solves at a time
_BATCH_COSTS = 2**18  # upper limit on the costs in one batch


def solve(problems: Sequence[Problem], method: str = "exact") -> tuple[np.ndarray, np.ndarray]:
    """Value and lower bound, float64[P] each, of P problems (a float[n], b float[m], cost float[n, m]) of any sizes.

    See `Solution`. method: "exact", or "sinkhorn" with its defaults on all devices of this process, in batches of a
    few shapes that depend on problem sizes only. Raises ValueError if the method does not exist.
    """
    check_method(method)
    value, lower = np.zeros(len(problems)), np.zeros(len(problems))
    solve_batch, share = (_exact, 1) if method == "exact" else (_sinkhorn, _num_devices())
    for chosen, rows, size in _batches(problems, share):
        found = solve_batch([problems[number] for number in chosen], rows, size)
        value[chosen], lower[chosen] = found.value[: len(chosen)], found.lower[: len(chosen)]
    return value, lower


def sinkhorn_plans(problems: Sequence[Problem], **options: Any) -> list[np.ndarray]:
    """The plan float32[n, m] of each of P problems of any sizes; options: those of `sinkhorn`.

    A plan does not depend on the other problems.
    """
    plans = [np.zeros(0, np.float32)] * len(problems)
    for chosen, rows, size in _batches(problems, _num_devices()):
        batch = [problems[number] for number in chosen]
        found = _sinkhorn(batch, rows, size, **options)
        for number, (a, b, _), plan in zip(chosen, batch, found.plan, strict=False):
            plans[number] = plan[: len(a), : len(b)]
    return plans


def _batches(problems: Sequence[Problem], share: int) -> Iterator[tuple[list[int], int, int]]:
    """The numbers of problems to solve together for `share` devices, the rows of their batch, and their padded size."""
    groups: dict[int, list[int]] = {}
    for number, (a, b, _) in enumerate(problems):
        groups.setdefault(bucket(max(len(a), len(b), 1)), []).append(number)
    for size, numbers in groups.items():
        rows = share * batch_rows(size)
        for start in range(0, len(numbers), rows):
            yield numbers[start : start + rows], rows, size


def batch_rows(size: int) -> int:
    """The number of problems of `size` points on each side that a device solves at a time."""
    return min(_BATCH, max(1, _BATCH_COSTS // size**2))


def _num_devices() -> int:
    from metrics_jax.embedding.devices import local_mesh

    return local_mesh().size


def _exact(problems: Sequence[Problem], rows: int, size: int) -> Solution:
    return exact(*_padded(problems, len(problems), size))


def _sinkhorn(problems: Sequence[Problem], rows: int, size: int, **options: Any) -> Solution:
    from metrics_jax.embedding import devices
    from metrics_jax.embedding.sinkhorn import sinkhorn

    batch = devices.put(_padded(problems, rows, size), devices.by_rows(devices.local_mesh()))
    found: Solution = devices.gathered(sinkhorn(*batch, **options))
    return found


def solution(a: np.ndarray, b: np.ndarray, cost: np.ndarray, method: str = "exact") -> Solution:
    """The plans and costs of problems of one size; method and errors as for `solve`."""
    check_method(method)
    if method == "exact":
        return exact(a, b, cost)
    from metrics_jax.embedding.sinkhorn import sinkhorn

    return Solution(*map(np.asarray, sinkhorn(a, b, cost)))


def check_method(method: str) -> None:
    """Raises ValueError if the method does not exist."""
    if method not in METHODS:
        raise ValueError(f"transport={method!r} is none of {', '.join(METHODS)}")


def _padded(problems: Sequence[Problem], rows: int, size: int) -> Problem:
    """Problems as one batch of `rows` rows, padded to `size` points on each side."""
    a, b, cost = np.zeros((rows, size)), np.zeros((rows, size)), np.zeros((rows, size, size))
    for k, (weights, others, costs) in enumerate(problems):
        a[k, : len(weights)], b[k, : len(others)], cost[k, : len(weights), : len(others)] = weights, others, costs
    return a, b, cost
