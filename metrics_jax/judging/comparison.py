"""Which metric agrees better with people, and how sure that is: intervals, tests, clusters of metrics.

judged = agreement(Judgements(human, systems, items), "pearson", "system")
values, p = judged.values(scores), p_values(judged, scores)
clusters(values, p)
"""

import dataclasses

import numpy as np
import scipy.stats

from metrics_jax.embedding.encoder import progress
from metrics_jax.judging.coefficient import Coefficient
from metrics_jax.significance import SEED, Interval, check_sampling, percentile_interval

_TIE = 1e-9  # differences this close are equal: sums of floats depend on their order


@dataclasses.dataclass(frozen=True)
class Williams:
    """Williams' t, with n - 3 degrees of freedom, and the two-sided p-value."""

    t: float
    p_value: float


def intervals(
    agreement: Coefficient, scores: np.ndarray, *, draws: int = 1000, seed: int = SEED, alpha: float = 0.05
) -> list[Interval]:
    """Scores float[M, N] of M metrics -> their coefficients with percentile bootstrap intervals of 1 - alpha.

    Samples without a coefficient, as those of one text alone, are left out. ValueError for impossible numbers.
    """
    check_sampling(alpha, draws=draws)
    values = agreement.values(scores)
    resampled = agreement.resampled(scores, draws, np.random.default_rng(seed))
    result = []
    for value, row in zip(values.tolist(), resampled, strict=True):
        known = row[~np.isnan(row)]
        undefined = Interval(value, np.nan, np.nan, np.nan, np.nan)
        result.append(percentile_interval(value, known, alpha) if len(known) else undefined)
    return result


def p_values(agreement: Coefficient, scores: np.ndarray, *, trials: int = 1000, seed: int = SEED) -> np.ndarray:
    """Scores float[M, N] -> float[M, M]: the chance of so large a difference between metrics that agree equally well.

    Either direction counts, and the observed difference is counted as one trial more; NaN on the diagonal and where a
    metric has no coefficient. The permutation test of Deutsch et al. (2021), which says what is swapped: see
    `Coefficient.swapped`. ValueError for impossible numbers, and for a coefficient that has no test.
    """
    check_sampling(0.5, trials=trials)
    values = agreement.values(scores)
    observed = np.abs(values[:, None] - values)
    as_large, counted = np.zeros(observed.shape), np.zeros(observed.shape)
    with progress("tests", trials * len(values) * (len(values) - 1) // 2) as advance:
        for a, b, differences in agreement.swapped(scores, trials, np.random.default_rng(seed), advance):
            known = differences[~np.isnan(differences)]
            as_large[a, b] += np.count_nonzero(np.abs(known) >= observed[a, b] - _TIE)
            counted[a, b] += len(known)
    p = (as_large + as_large.T + 1) / (counted + counted.T + 1)
    p[np.isnan(observed)] = np.nan
    np.fill_diagonal(p, np.nan)
    return p


def williams(first: float, second: float, between: float, num_judgements: int) -> Williams:
    """Pearson's r of two metrics with people, and that of one with the other -> are the first two equal?

    Williams (1959), as Graham and Baldwin (2014, section 4) have it. NaN where the three cannot be told apart from
    exact dependence. ValueError for fewer than four judgements.
    """
    n = num_judgements
    if n < 4:
        raise ValueError(f"{n} judgements: Williams' test needs four or more")
    k = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    below = 2 * k * (n - 1) / (n - 3) + (first + second) ** 2 / 4 * (1 - between) ** 3
    if not below > _TIE**2:
        return Williams(np.nan, np.nan)
    t = (first - second) * np.sqrt((n - 1) * (1 + between) / below)
    return Williams(float(t), float(2 * scipy.stats.t.sf(abs(t), n - 3)))


def clusters(values: np.ndarray, p: np.ndarray, alpha: float = 0.05) -> np.ndarray:
    """Coefficients float[M] and p-values float[M, M] -> int[M]: 1 for the best cluster, 2 for the next ...

    From the best metric down, one that is significantly worse than any of the cluster so far begins the next, so that
    none is beaten by one of its own or of a later cluster (WMT's metrics tasks). NaN is worst, in a cluster of its own.
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
