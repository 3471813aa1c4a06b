"""Activation functions."""

import jax
import jax.numpy as jnp
import numpy as np

from nmt_jax import platforms
from nmt_jax.models.layers.basic import ACTIVATIONS, activation, gelu_erf, gelu_exact


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
