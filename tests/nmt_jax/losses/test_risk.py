"""The expected risk of sampled candidates: Shen et al. (2016), eq. 8 to 10."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.losses.cross_entropy import minimum_risk

B, N = 4, 5


def case(seed=0):
    rng = np.random.default_rng(seed)
    log_probs = rng.normal(-20.0, 8.0, (B, N))
    risks = rng.uniform(size=(B, N))
    distinct = rng.uniform(size=(B, N)) < 0.7
    distinct[:, 0] = True
    weights = np.array([3.0, 0.0, 1.0, 7.0])
    return log_probs, risks, distinct, weights


def by_definition(log_probs, risks, distinct, weights, sharpness):
    """Line by line, with the candidates that count gathered into a set, in float64."""
    total = 0.0
    for row in range(B):
        counted = [n for n in range(N) if distinct[row, n]]
        powers = np.exp(sharpness * log_probs[row, counted])
        total += weights[row] * (powers / powers.sum()) @ risks[row, counted]
    return total


def gradient(log_probs, risks, distinct, weights, sharpness):
    given = [jnp.asarray(x, jnp.float32) for x in (risks, weights)]
    return np.asarray(
        jax.grad(lambda x: minimum_risk(x, given[0], jnp.asarray(distinct), given[1], sharpness)[0])(
            jnp.asarray(log_probs, jnp.float32)
        )
    )


@pytest.mark.parametrize("sharpness", [0.005, 0.3, 1.0])
def test_loss_is_the_definition_and_the_gradient_its_differences(sharpness):
    log_probs, risks, distinct, weights = case()
    total, weight = minimum_risk(*(jnp.asarray(x) for x in (log_probs, risks, distinct, weights)), sharpness)
    np.testing.assert_allclose(total, by_definition(log_probs, risks, distinct, weights, sharpness), rtol=1e-5)
    assert weight == weights.sum()
    found, step = gradient(log_probs, risks, distinct, weights, sharpness), 1e-4
    for place in np.ndindex(B, N):
        moved = np.zeros((B, N))
        moved[place] = step
        sides = [by_definition(log_probs + way * moved, risks, distinct, weights, sharpness) for way in (1, -1)]
        np.testing.assert_allclose(found[place], (sides[0] - sides[1]) / (2 * step), rtol=1e-3, atol=1e-6)
    assert np.abs(found).max() > 1e-4


def test_probability_moves_to_the_candidate_of_lower_risk():
    log_probs, _, distinct, weights = case()
    risks = np.tile(np.linspace(0.0, 1.0, N), (B, 1))
    found = gradient(log_probs, risks, np.ones_like(distinct), np.ones_like(weights), 0.005)
    assert (found[:, 0] > 0).sum() == 0  # descent raises the best ...
    assert (found[:, -1] < 0).sum() == 0  # ... and lowers the worst
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-7)


def test_a_constant_added_to_the_risks_of_a_line_changes_no_gradient():
    log_probs, risks, distinct, weights = case()
    shifted = risks + np.array([[5.0], [0.0], [-3.0], [0.25]])
    np.testing.assert_allclose(
        gradient(log_probs, shifted, distinct, weights, 0.3),
        gradient(log_probs, risks, distinct, weights, 0.3),
        atol=1e-6,
    )


def test_a_candidate_that_comes_twice_counts_once_and_a_line_of_no_weight_not_at_all():
    log_probs, risks, distinct, weights = case()
    for array, value in ((log_probs, -1.0), (risks, 100.0)):
        array[~distinct] = value
    total = minimum_risk(*(jnp.asarray(x) for x in (log_probs, risks, distinct, weights)), 0.3)[0]
    assert float(total) < weights.sum()
    found = gradient(log_probs, risks, distinct, weights, 0.3)
    assert (found[~distinct] == 0).all()
    assert (found[weights == 0] == 0).all()
    assert np.isfinite(found).all()


def test_no_gradient_flows_through_the_risks():
    log_probs, risks, distinct, weights = (jnp.asarray(x) for x in case())
    assert (jax.grad(lambda r: minimum_risk(log_probs, r, distinct, weights, 0.3)[0])(risks) == 0).all()
