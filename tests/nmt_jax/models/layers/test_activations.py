"""Activation functions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax import platforms
from nmt_jax.models.layers.activations import ACTIVATIONS, activation, gelu_erf, gelu_exact
from nmt_jax.models.layers.dropout import dropout, dropped_relu


def test_gelu_in_bfloat16_is_exact_to_the_precision_of_a_product():
    x = jnp.linspace(-20, 20, 40_001)
    exact, rounded = activation("gelu_erf", "float32"), activation("gelu_erf", "bfloat16")
    assert jnp.abs(rounded(x) - exact(x)).max() < 1e-4
    slope, other = (jax.vmap(jax.grad(one))(x) for one in (rounded, exact))
    assert jnp.abs(slope - other).max() < 2e-3
    assert activation("gelu", "bfloat16") is ACTIVATIONS["gelu"]


def test_gelu_by_erf_is_exact_within_a_millionth():
    x = jnp.linspace(-20, 20, 40_001)
    with platforms.use(platforms.ACCELERATOR):
        exact = activation("gelu_erf", "float32")
    assert exact is gelu_exact
    assert jnp.abs(gelu_erf(x) - exact(x)).max() < 1e-6


def test_relu_on_accelerators_has_the_gradient_of_relu():
    x = jnp.array([-2.0, -0.0, 0.0, 1e-30, 3.0], jnp.bfloat16)
    with platforms.use(platforms.ACCELERATOR):
        relu = activation("relu", "bfloat16")
    assert relu is not ACTIVATIONS["relu"]
    for one, other in zip(jax.vjp(relu, x)[1](x), jax.vjp(ACTIVATIONS["relu"], x)[1](x), strict=True):
        np.testing.assert_array_equal(one, other)


def test_relu_before_dropout_has_the_value_and_the_gradient_of_both():
    x, key = jax.random.normal(jax.random.key(0), (16, 64)), jax.random.key(1)
    with platforms.use(platforms.ACCELERATOR):
        ours, expected = (
            jax.vjp(function, x)
            for function in (lambda x: dropped_relu(x, 0.3, key), lambda x: dropout(ACTIVATIONS["relu"](x), 0.3, key))
        )
    np.testing.assert_array_equal(ours[0], expected[0])
    np.testing.assert_allclose(ours[1](x)[0], expected[1](x)[0], rtol=1e-6)


@pytest.mark.parametrize("name", ["gelu", "gelu_erf", "swiglu"])
def test_smooth_activations_on_accelerators_save_their_input_only(name):
    x = jax.random.normal(jax.random.key(0), (16, 64)).astype(jnp.bfloat16)
    with platforms.use(platforms.ACCELERATOR):
        y, pull = jax.vjp(activation(name, "bfloat16"), x)
    assert [array.dtype for array in jax.tree.leaves(pull) if array.shape == x.shape] == [jnp.bfloat16]
    exact, exact_pull = jax.vjp(ACTIVATIONS[name], x.astype(jnp.float32))
    np.testing.assert_allclose(np.asarray(y, np.float32), exact, atol=0.02)
    np.testing.assert_allclose(
        np.asarray(pull(jnp.ones_like(x))[0], np.float32), exact_pull(jnp.ones_like(exact))[0], atol=0.02
    )
