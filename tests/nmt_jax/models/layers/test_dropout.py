"""Dropout of units and of sequences."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax import platforms
from nmt_jax.models.layers.dropout import dropout


def hashed():
    return platforms.use(platforms.ACCELERATOR)


@pytest.mark.parametrize("name", ["hash", "bytes"])
@pytest.mark.parametrize(("rate", "width"), [(0.1, 64), (0.3, 7)])
def test_dropout_keeps_the_share_and_the_mean(name, rate, width):
    x = jnp.ones((50, 41, width))
    keep = round(256 * (1 - rate)) / 256 if name == "bytes" else 1 - rate
    with platforms.use(dataclasses.replace(platforms.ACCELERATOR, dropout=name)):
        y = np.asarray(dropout(x, rate, jax.random.key(0)))
        other = dropout(x, rate, jax.random.key(1))
    assert abs((y != 0).mean() - keep) < 4 * np.sqrt(keep * (1 - keep) / y.size)
    np.testing.assert_allclose(y[y != 0], 1 / keep, rtol=1e-6)
    assert not np.array_equal(y, other)


@pytest.mark.parametrize("platform", [platforms.ACCELERATOR, platforms.CPU], ids=lambda platform: platform.name)
def test_dropout_units_are_independent(platform):
    with platforms.use(platform):
        dropped = np.asarray(dropout(jnp.ones((4000, 8)), 0.5, jax.random.key(0))) == 0
    correlation = np.corrcoef(dropped.T) - np.eye(8)
    assert np.abs(correlation).max() < 5 / np.sqrt(4000)


def test_hashed_masks_of_two_keys_are_independent():
    with hashed():
        masks = [np.asarray(dropout(jnp.ones(40_000), 0.5, jax.random.key(seed))) == 0 for seed in range(8)]
    correlation = np.corrcoef(masks) - np.eye(8)
    assert np.abs(correlation).max() < 5 / np.sqrt(40_000)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_gradient_of_hashed_dropout_has_the_mask_of_the_value(dtype):
    x, key = jnp.ones((30, 50), dtype), jax.random.key(3)
    with hashed():
        y, pull = jax.vjp(lambda x: dropout(x, 0.25, key), x)
        (gradient,) = pull(jnp.ones_like(y))
    assert y.dtype == gradient.dtype == x.dtype
    np.testing.assert_array_equal(y, gradient)


@pytest.mark.parametrize("platform", [platforms.ACCELERATOR, platforms.CPU], ids=lambda platform: platform.name)
def test_dropout_of_almost_nothing_keeps_everything(platform):
    x = jnp.ones((30, 50))
    with platforms.use(platform):
        np.testing.assert_array_equal(dropout(x, 1e-12, jax.random.key(0)), x)


def test_dropout_of_almost_everything_on_cpus_keeps_one_unit_in_256():
    with platforms.use(platforms.CPU):
        y = np.asarray(dropout(jnp.ones((256, 256)), 0.999, jax.random.key(0)))
    assert set(np.unique(y)) == {0.0, 256.0}
