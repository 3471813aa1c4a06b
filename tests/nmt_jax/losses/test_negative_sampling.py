"""Negative sampling: draws by the counts, and a log of the sigmoid that is right far out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from nmt_jax.losses.sampled import Alias, log_sigmoid, negative_sampling


@pytest.mark.parametrize("power", [0.0, 0.75, 1.0])
def test_negatives_follow_the_counts_to_the_power(power):
    counts = np.array([0, 1000, 300, 299, 40, 7, 1, 1, 1])
    weights = np.where(counts, counts**power, 0.0)
    drawn = np.asarray(jax.jit(lambda key: Alias.of(weights).draw(key, (400, 500)))(jax.random.key(1)))
    found = np.bincount(drawn.reshape(-1), minlength=len(counts))
    assert found[0] == 0
    expected = weights / weights.sum() * drawn.size
    assert scipy.stats.chisquare(found[1:], expected[1:]).pvalue > 1e-3


def test_the_alias_table_is_exact():
    weights = np.random.default_rng(0).pareto(1.0, 1000) * (np.arange(1000) % 7 > 0)
    table = Alias.of(weights)
    share = table.keep.astype(float)
    np.add.at(share, table.other, 1 - table.keep.astype(float))
    np.testing.assert_allclose(share / 1000, weights / weights.sum(), atol=1e-7)
    assert (share[::7] == 0).all()


def test_log_sigmoid_and_its_gradient():
    x = np.array([-200.0, -30.0, -1.0, 0.0, 1e-3, 2.0, 30.0, 200.0], np.float32)
    np.testing.assert_allclose(log_sigmoid(x), -np.logaddexp(0, -x.astype(float)), rtol=1e-6, atol=1e-7)
    slope = jax.vmap(jax.grad(log_sigmoid))(x)
    np.testing.assert_allclose(slope, 1 / (1 + np.exp(np.minimum(x.astype(float), 80))), rtol=1e-5, atol=1e-7)


def test_the_loss_by_hand():
    scores = jnp.array([[[2.0, -1.0, 0.5, -0.5]]])
    pairs = jnp.array([[[1.0, 0.25]]])
    log = lambda s: np.log(1 / (1 + np.exp(-s)))  # noqa: E731
    negatives = (log(-0.5) + log(0.5)) / 2
    expected = -(log(2.0) + 0.25 * log(-1.0) + 1.25 * 5 * negatives)
    assert float(negative_sampling(scores, pairs, 5)) == pytest.approx(expected, rel=1e-6)
