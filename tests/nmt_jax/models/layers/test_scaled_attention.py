"""Scaled dot-product attention: the same function, and the same gradient, on every platform."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax import platforms
from nmt_jax.models.layers.scaled_attention import attend, fused_context, softmax

MASK = jnp.tril(jnp.ones((32, 32), bool))[None, None]


def inputs(dtype):
    return [jax.random.normal(jax.random.key(seed), (2, 3, 32, 8), dtype) for seed in range(3)]


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_weights_that_are_computed_again_have_the_gradient_of_those_kept(rate):
    key = jax.random.key(7) if rate else None

    def gradients(choice):
        with platforms.use(dataclasses.replace(platforms.ACCELERATOR, attention_weights=choice)):
            context, pull = jax.vjp(lambda *given: attend(*given, MASK, rate, key)[0], *inputs(jnp.float32))
            return context, pull(context)

    jax.tree.map(
        lambda ours, expected: np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-6),
        gradients("recomputed"),
        gradients("kept"),
    )


@pytest.mark.parametrize("choice", ["recomputed", "kept"])
def test_only_kept_weights_are_saved_for_the_backward_pass(choice):
    with platforms.use(dataclasses.replace(platforms.ACCELERATOR, attention_weights=choice)):
        _, pull = jax.vjp(lambda *given: attend(*given, MASK)[0], *inputs(jnp.float32))
    saved = {array.shape for array in jax.tree.leaves(pull)}
    assert ((2, 3, 32, 32) in saved) == (choice == "kept")


@pytest.mark.parametrize("platform", [platforms.ACCELERATOR, platforms.CPU])
def test_dropout_does_not_change_the_weights_returned(platform):
    with platforms.use(platform):
        plain, dropped = attend(*inputs(jnp.float32), MASK), attend(*inputs(jnp.float32), MASK, 0.5, jax.random.key(0))
    np.testing.assert_allclose(dropped[1], plain[1], rtol=1e-6)
    assert np.abs(dropped[0] - plain[0]).max() > 0.1


def test_softmax_of_bfloat16_is_that_of_float32_rounded():
    scores, push = (jax.random.normal(jax.random.key(seed), (5, 33)).astype(jnp.bfloat16) for seed in range(2))
    y, pull = jax.vjp(softmax, scores)
    exact, exact_pull = jax.vjp(softmax, scores.astype(jnp.float32))
    np.testing.assert_array_equal(y, exact.astype(jnp.bfloat16))
    (ours,), (expected,) = pull(push), exact_pull(push.astype(jnp.float32))
    assert y.dtype == ours.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(ours, np.float32), expected, atol=0.01 * float(jnp.abs(expected).max()))


def test_attention_without_cudnn_is_that_of_other_accelerators():
    query, keys, values = inputs(jnp.bfloat16)
    with platforms.use(platforms.GPU):
        assert fused_context(query, keys, values, MASK) is None
        ours = attend(query, keys, values, MASK)
    with platforms.use(platforms.ACCELERATOR):
        others = attend(query, keys, values, MASK)
    jax.tree.map(np.testing.assert_array_equal, ours, others)
