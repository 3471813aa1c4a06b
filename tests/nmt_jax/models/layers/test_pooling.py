"""Attention pooling: its equations, exact zeros outside the mask, and nothing to look at."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.models.layers.classifier import AttentionPooling, masked_softmax


def test_weights_are_a_softmax_over_the_mask_and_exactly_zero_elsewhere():
    random = np.random.default_rng(0)
    scores = random.normal(size=(50, 9)) * 30
    mask = random.random((50, 9)) < 0.5
    weights = np.asarray(masked_softmax(jnp.float32(scores), mask))
    assert weights.dtype == np.float32
    assert (weights[~mask] == 0.0).all()
    for row, keep, found in zip(scores, mask, weights, strict=True):
        if keep.any():
            exponentials = np.exp(row[keep] - row[keep].max())
            np.testing.assert_allclose(found[keep], exponentials / exponentials.sum(), rtol=2e-5, atol=1e-7)
            assert found.sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("value", [0.0, 1e30, -1e30, np.inf, np.nan])
def test_what_stands_outside_the_mask_does_not_matter(value):
    scores = jnp.array([[0.3, value, -1.0], [value, value, value]], jnp.float32)
    mask = jnp.array([[True, False, True], [False] * 3])

    def squares(scores):
        return jnp.sum(masked_softmax(scores, mask) ** 2)

    weights, gradient = masked_softmax(scores, mask), jax.grad(squares)(scores)
    np.testing.assert_allclose(weights[0], [1 / (1 + np.exp(-1.3)), 0, 1 / (1 + np.exp(1.3))], rtol=1e-6)
    assert (weights[1] == 0).all()
    assert np.isfinite(gradient).all()
    assert (gradient[~np.asarray(mask)] == 0).all()


def restated(params, states, mask):
    """Yang et al. (2016), eq. 5 to 7, one sequence at a time in float64."""
    weight, bias, context = (
        np.asarray(leaf, np.float64)
        for leaf in (params["hidden"]["kernel"], params["hidden"]["bias"], params["context"])
    )
    vectors, rows = [], []
    for h, keep in zip(np.asarray(states, np.float64), mask, strict=True):
        exponentials = np.exp(np.tanh(h @ weight + bias) @ context) * keep
        alpha = exponentials / exponentials.sum() if keep.any() else exponentials
        rows.append(alpha)
        vectors.append(alpha @ h)
    return np.array(vectors), np.array(rows)


def test_pooling_is_its_equation_and_so_is_its_gradient():
    random = np.random.default_rng(1)
    states = random.normal(size=(4, 6, 5)).astype(np.float32)
    mask = np.array([[True] * 6, [True] * 4 + [False] * 2, [False, True] * 3, [False] * 6])
    pooling = AttentionPooling(7)
    params = jax.jit(pooling.init)(jax.random.key(0), states, mask)["params"]
    params["hidden"]["bias"] = jnp.float32(random.normal(size=7))
    vectors, weights = jax.jit(pooling.apply)({"params": params}, states, mask)
    for found, wanted in zip((vectors, weights), restated(params, states, mask), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)

    def loss(states):
        return jnp.sum(pooling.apply({"params": params}, states, mask)[0] ** 2)

    gradient = np.asarray(jax.jit(jax.grad(loss))(states))
    assert (gradient[~mask] == 0).all()
    direction, step = random.normal(size=states.shape), 1e-6
    ends = [
        (restated(params, states.astype(np.float64) + sign * step * direction, mask)[0] ** 2).sum() for sign in (1, -1)
    ]
    assert (gradient * direction).sum() == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4)
