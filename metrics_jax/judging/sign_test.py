"""The sign test, and its power: which of two metrics people side with where the two order texts differently.

It equals McNemar's exact test of the metrics' accuracies: pairs that both order alike do not count.
"""

import math

import numpy as np

MOST = 100_000  # pairs: more would take seconds to compute, and years to judge


def sign_test(wins: int, losses: int) -> float:
    """The two-sided p-value of `wins` and `losses`, were both equally likely; without ties (Dixon and Mood, 1946).

    Raises ValueError for negative numbers.
    """
    from scipy import stats  # late: it takes a second

    if min(wins, losses) < 0:
        raise ValueError(f"{wins} wins and {losses} losses: both must be 0 or more")
    return min(1.0, 2 * float(stats.binom.cdf(min(wins, losses), wins + losses, 0.5)))


def sign_test_power(num_pairs: int | np.ndarray, share: float, alpha: float = 0.05) -> np.ndarray:
    """The probability, float[...], that the sign test of num_pairs int[...] pairs without ties finds p <= alpha.

    share: the probability, 0 to 1, that people side with the first metric. Raises ValueError as `pairs_needed`.
    """
    from scipy import stats

    _check(share, alpha)
    num_pairs = np.asarray(num_pairs)
    most = stats.binom.ppf(alpha / 2, num_pairs, 0.5)
    most -= stats.binom.cdf(most, num_pairs, 0.5) > alpha / 2  # the largest number of losses that is significant
    return stats.binom.cdf(most, num_pairs, share) + stats.binom.cdf(most, num_pairs, 1 - share)


def pairs_needed(share: float, power: float = 0.8, alpha: float = 0.05) -> int:
    """The number of pairs without ties from which on the sign test has at least this power (as a rule 0.8).

    share: as in `sign_test_power`; not 0.5, which no number of pairs tells from chance. The power does not grow with
    every pair, as the test is discrete. Raises ValueError for a share, power or alpha out of range, and for a share so
    close to 0.5 that more than MOST pairs are needed.
    """
    from scipy import stats

    _check(share, alpha)
    if not alpha < power < 1:
        raise ValueError(f"the power {power:g} must be above alpha, {alpha:g}, and below 1")
    if share == 0.5:
        raise ValueError("a share of 0.5 cannot be told from chance")
    # The normal approximation (Connor, 1987, where every pair is discordant), which the exact number is close to.
    spread = stats.norm.ppf(1 - alpha / 2) / 2 + stats.norm.ppf(power) * math.sqrt(share * (1 - share))
    near = (max(spread, 0.5) / (share - 0.5)) ** 2
    if near > MOST:
        raise ValueError(f"a share of {share:g} needs more than {MOST:,} pairs to be told from chance")
    first = max(1, int(0.8 * near) - 20)
    while sign_test_power(first, share, alpha) >= power:  # never for a single pair
        first //= 2
    sizes = np.arange(first, int(1.3 * near) + 100)
    return int(sizes[np.flatnonzero(sign_test_power(sizes, share, alpha) < power)[-1]]) + 1


def _check(share: float, alpha: float) -> None:
    if not (0 <= share <= 1 and 0 < alpha < 1):
        raise ValueError(f"a share of {share:g} and alpha = {alpha:g}: both must be probabilities")
