"""Pairwise ranked optimization against slow restatements, and what it must find."""

import numpy as np

from nmt_jax.translation.pairwise_tuning import Sampling, fit, sample_pairs


def test_sampled_pairs_are_those_with_the_largest_differences():
    rng = np.random.default_rng(0)
    features, scores = [rng.normal(size=(6, 3)) for _ in range(2)], [rng.random(6), np.array([0.5] * 6)]
    found = sample_pairs(features, scores, Sampling(2000, 40, 0.05), np.random.default_rng(1))
    largest = scores[0].max() - scores[0].min()
    best, worst = features[0][scores[0].argmax()], features[0][scores[0].argmin()]
    assert found.shape == (40, 3)  # none of the second line, in which all are equal
    np.testing.assert_allclose(found, np.tile(best - worst, (40, 1)))
    few = sample_pairs(features, scores, Sampling(2000, 2000, 0.5), np.random.default_rng(1))
    gaps = {
        tuple(np.round(features[0][i] - features[0][j], 9))
        for i in range(6)
        for j in range(6)
        if scores[0][i] - scores[0][j] >= 0.5 * scores[0].max()
    }
    assert largest > 0.5 * scores[0].max()
    assert {tuple(np.round(one, 9)) for one in few} == gaps


def test_fit_maximizes_the_likelihood_of_pairs():
    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(400, 3)) * (1, 10, 0.1)
    truth = np.array([1.0, -0.1, 5.0])
    pairs *= np.where(rng.random(400) < 1 / (1 + np.exp(-pairs @ truth)), 1, -1)[:, None]

    def likelihood(weights):
        return -np.log1p(np.exp(-pairs @ weights)).mean()

    found = fit(pairs, np.zeros(3), strength=0.0)
    for step in np.eye(3) * 1e-2:
        assert likelihood(found) > max(likelihood(found + step * found), likelihood(found - step * found))
    np.testing.assert_allclose(found, truth, rtol=0.35)
