"""Soft pairwise accuracy (Thompson et al., 2024): agreement on how confidently one system is better than another."""

import numpy as np

from metrics_jax.significance import SEED

PERMUTATIONS = 1000


def p_values(segments: np.ndarray, *, permutations: int = PERMUTATIONS, seed: int = SEED) -> np.ndarray:
    """P-values float[S, S] of system i over system j, from segment scores float[S, N], NaN if missing.

    Each is the fraction of `permutations` in which the segments of the two systems, swapped at random, give a
    difference of means at least as large as the observed one: near 0 if i is better, near 1 if it is worse. Two systems
    are compared on the segments that both have (NaN if there are none), and the same segments are swapped for every
    pair (section 4). Raises ValueError unless the scores are two-dimensional.
    """
    segments = np.asarray(segments, np.float64)
    if segments.ndim != 2:
        raise ValueError(f"segments must be float[systems, segments], not of shape {segments.shape}")
    known = ~np.isnan(segments)
    scores = np.where(known, segments, 0.0)
    flips = np.random.default_rng(seed).integers(2, size=(permutations, segments.shape[1])) * 2.0 - 1.0
    p = np.full((len(segments), len(segments)), np.nan)
    for system, (own_scores, own_known) in enumerate(zip(scores, known, strict=True)):
        both = known & own_known
        differences = (own_scores - scores) * both
        observed = differences.sum(axis=1)
        # Sums of the same numbers in another order may differ by rounding.
        margin = 1e-9 * np.abs(differences).sum(axis=1)
        swapped = flips @ differences.T
        share = (swapped >= observed - margin).mean(axis=0)
        p[system] = np.where(both.any(axis=1), share, np.nan)
    np.fill_diagonal(p, np.nan)
    return p


def soft_accuracy(metric: np.ndarray, human: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Soft pairwise accuracy float[...], 0 to 1, of p-values float[..., S, S] of a metric and of humans.

    It is 1 - mean |difference of p-values| over pairs of systems. weights: float[..., S], how often each system counts.
    NaN if no pair of systems has segments in common.
    """
    first, second = np.triu_indices(metric.shape[-1], 1)
    distances = np.abs(metric - human)[..., first, second]
    counts = np.ones(len(first)) if weights is None else weights[..., first] * weights[..., second]
    counts = np.where(np.isnan(distances), 0.0, counts)
    total = counts.sum(axis=-1)
    lost = (np.nan_to_num(distances) * counts).sum(axis=-1)
    return 1.0 - np.divide(lost, total, out=np.full(np.shape(total), np.nan), where=total > 0)
