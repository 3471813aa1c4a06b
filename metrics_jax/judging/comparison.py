"""Comparison of metrics by their agreement with human judgements: intervals, tests, clusters of metrics.

judged = agreement(Judgements(human, systems, items), "pearson", "system")
values, p = judged.values(scores), p_values(judged, scores)
clusters(values, p)
"""

import dataclasses

import numpy as np

from metrics_jax.embedding.encoder import progress
from metrics_jax.judging.coefficient import Coefficient
from metrics_jax.significance import SEED, Interval, check_sampling, percentile_interval

_TIE = 1e-9  # tolerance for equal differences: floating-point sums depend on their order


@dataclasses.dataclass(frozen=True)
class Williams:
    """Result of Williams' test: t, with n - 3 degrees of freedom, and the two-sided p-value."""

    t: float
    p_value: float


def intervals(
    agreement: Coefficient, scores: np.ndarray, *, draws: int = 1000, seed: int = SEED, alpha: float = 0.05
) -> list[Interval]:
    """Coefficients of M metrics, from scores float[M, N], with 1 - alpha percentile bootstrap intervals.

    Samples with an undefined coefficient (such as a single text) are left out. Raises ValueError as `check_sampling`.
    """
    check_sampling(alpha, draws=draws)
    values = agreement.values(scores)
    resampled = agreement.resampled(scores, draws, np.random.default_rng(seed))
    return [
        percentile_interval(value, known, alpha) if len(known) else Interval(value, np.nan, np.nan, np.nan, np.nan)
        for value, known in zip(values.tolist(), (row[~np.isnan(row)] for row in resampled), strict=True)
    ]


def p_values(agreement: Coefficient, scores: np.ndarray, *, trials: int = 1000, seed: int = SEED) -> np.ndarray:
    """P-values float[M, M] of all pairs of M metrics with scores float[M, N], by a permutation test.

    The p-value is the probability of a difference at least this large, in either direction, between metrics that agree
    equally well; the observed difference is counted as one more trial. `Coefficient.swapped` documents what is swapped
    (Deutsch et al., 2021). NaN on the diagonal and where a coefficient is undefined. Raises ValueError for invalid
    trials, and for a coefficient that has no test.
    """
    check_sampling(0.5, trials=trials)
    values = agreement.values(scores)
    observed = np.abs(values[:, None] - values)
    as_large, total = np.zeros(observed.shape), np.zeros(observed.shape)
    with progress("tests", trials * len(values) * (len(values) - 1) // 2) as advance:
        for a, b, differences in agreement.swapped(scores, trials, np.random.default_rng(seed), advance):
            known = differences[~np.isnan(differences)]
            as_large[a, b] += np.count_nonzero(np.abs(known) >= observed[a, b] - _TIE)
            total[a, b] += len(known)
    p = (as_large + as_large.T + 1) / (total + total.T + 1)
    p[np.isnan(observed)] = np.nan
    np.fill_diagonal(p, np.nan)
    return p


def williams(first: float, second: float, between: float, num_judgements: int) -> Williams:
    """Williams' test of whether two metrics correlate equally with human judgements.

    first, second: Pearson's r of each metric with the judgements; between: that of one metric with the other. Source:
    Williams (1959), in the form of Graham and Baldwin (2014, section 4). The result is NaN if the three are numerically
    dependent. Raises ValueError for fewer than four judgements.
    """
    n = num_judgements
    if n < 4:
        raise ValueError(f"{n} judgements: Williams' test needs four or more")
    from scipy import stats  # late: it takes a second

    k = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    denominator = 2 * k * (n - 1) / (n - 3) + (first + second) ** 2 / 4 * (1 - between) ** 3
    if not denominator > _TIE**2:
        return Williams(np.nan, np.nan)
    t = (first - second) * np.sqrt((n - 1) * (1 + between) / denominator)
    return Williams(float(t), float(2 * stats.t.sf(abs(t), n - 3)))


def clusters(values: np.ndarray, p: np.ndarray, alpha: float = 0.05) -> np.ndarray:
    """Rank clusters int[M], 1 is the best, from coefficients float[M] and p-values float[M, M].

    Going down from the best metric, one that is significantly worse than any metric of the current cluster begins the
    next cluster, so that no metric is beaten by one of its own or of a later cluster (as in WMT's metrics tasks).
    Undefined coefficients (NaN) form the last cluster.
    """
    order = np.lexsort((np.arange(len(values)), -np.nan_to_num(values, nan=-np.inf)))
    ranks, rank = np.zeros(len(values), int), 1
    members: list[int] = []
    for metric in order.tolist():
        lost = np.isnan(values[metric]) and any(not np.isnan(values[one]) for one in members)
        if lost or any(p[one, metric] < alpha for one in members):
            rank, members = rank + 1, []
        ranks[metric] = rank
        members.append(metric)
    return ranks
