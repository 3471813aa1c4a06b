"""Dropout of units and of sequences."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax import platforms
from nmt_jax.models.layers.basic import dropout


@pytest.mark.parametrize("name", ["bernoulli", "bytes"])
@pytest.mark.parametrize(("rate", "width"), [(0.1, 64), (0.3, 7)])
def test_dropout_keeps_the_share_and_the_mean(name, rate, width):
    x = jnp.ones((50, 41, width))
    keep = round(256 * (1 - rate)) / 256 if name == "bytes" else 1 - rate
    with platforms.use(dataclasses.replace(platforms.PLAIN, dropout=name)):
        y = np.asarray(dropout(x, rate, jax.random.key(0)))
        other = dropout(x, rate, jax.random.key(1))
    assert abs((y != 0).mean() - keep) < 4 * np.sqrt(keep * (1 - keep) / y.size)
    np.testing.assert_allclose(y[y != 0], 1 / keep, rtol=1e-6)
    assert not np.array_equal(y, other)


def test_dropout_units_are_independent():
    dropped = np.asarray(dropout(jnp.ones((4000, 8)), 0.5, jax.random.key(0))) == 0
    correlation = np.corrcoef(dropped.T) - np.eye(8)
    assert np.abs(correlation).max() < 5 / np.sqrt(4000)
