"""Tuning of weights by pairwise ranked optimization, PRO (Hopkins and May, 2011).

Pairs of translations of a line are sampled, and a linear classifier learns which of the two a metric prefers.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.optimize


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How pairs are sampled: Gamma, Xi and alpha of Hopkins and May (2011), section 4.1.

    candidates: pairs drawn for each line. kept: of those, the pairs with the largest differences of the metric. least:
    smallest difference, as a share of the best score of any translation.
    """

    candidates: int = 5000
    kept: int = 50
    least: float = 0.05


def sample_pairs(
    features: Sequence[np.ndarray], scores: Sequence[np.ndarray], sampling: Sampling, rng: np.random.Generator
) -> np.ndarray:
    """Returns differences of features, better minus worse, float64[P, F].

    features: for each line float64[N, F]. scores: for each line float64[N], by the metric, higher is better.
    """
    least = sampling.least * max(float(np.abs(one).max(initial=0)) for one in scores)
    found = [np.zeros((0, features[0].shape[1]))]
    for rows, quality in zip(features, scores, strict=True):
        if len(quality) < 2:
            continue
        one, other = rng.integers(0, len(quality), (2, sampling.candidates))
        difference = np.abs(quality[one] - quality[other])
        valid = np.flatnonzero(difference >= max(least, 1e-12))
        valid = valid[np.argsort(-difference[valid], kind="stable")][: sampling.kept]
        sign = np.sign(quality[one] - quality[other])[valid]
        found.append(sign[:, None] * (rows[one[valid]] - rows[other[valid]]))
    return np.concatenate(found)


def fit(pairs: np.ndarray, start: np.ndarray, strength: float = 1e-4) -> np.ndarray:
    """Returns the weights float64[F] that maximize the mean log-likelihood of pairs, sigma(w . difference).

    start: float64[F]. strength: of the L2 penalty on weights of features that are scaled to a mean square of 1.
    """
    scale = np.sqrt((pairs**2).mean(axis=0))
    scale[scale == 0] = 1.0
    scaled = pairs / scale

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        margin = scaled @ weights
        value = np.logaddexp(0, -margin).mean() + strength / 2 * weights @ weights
        gradient = -(scaled.T @ (1 / (1 + np.exp(np.minimum(margin, 500))))) / len(scaled)
        return float(value), gradient + strength * weights

    found = scipy.optimize.minimize(loss, start * scale, jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return np.asarray(found.x) / scale


def normalized(weights: np.ndarray) -> np.ndarray:
    """Returns the weights scaled to a sum of magnitudes of 1, which changes no ranking."""
    return weights / max(float(np.abs(weights).sum()), 1e-12)


def qualities(metric: Any, texts: Sequence[Sequence[str]], references: Sequence[str]) -> list[np.ndarray]:
    """Returns for each line the scores float64[N] of its N texts by a metric of `metrics_jax`, higher is better.

    references: one of each line. For BLEU, its smoothed form for sentences, BLEU+1, is used.
    """
    if metric.name == "bleu":
        metric = dataclasses.replace(metric, smooth_method="add-k")
    repeated = [reference for reference, own in zip(references, texts, strict=True) for _ in own]
    segments = metric([text for own in texts for text in own], repeated).segments
    cuts = np.cumsum([len(own) for own in texts])[:-1]
    return np.split(segments if metric.higher_is_better else -segments, cuts)
