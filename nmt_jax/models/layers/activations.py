"""Activation functions, some of them approximated within the precision of the next product."""

from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nmt_jax import platforms
from nmt_jax.models.layers.dense import activation_type


def gelu_erf(x: Array) -> Array:
    """GELU, x Phi(x) (Hendrycks and Gimpel, 2016, section 2), by erf: on CPUs twice as fast as by erfc, within 1e-6."""
    return 0.5 * x * (1 + jax.lax.erf(x * np.float32(0.5**0.5)))


def gelu_polynomial(x: Array) -> Array:
    """GELU within 1e-4, the precision of a bfloat16 product; on CPUs two thirds of the time of `gelu_erf`.

    Phi is 1/2 plus an odd polynomial of degree 15, the best approximation on |x| <= 4.2 that is 1/2 at its ends, so
    that Phi is 0 or 1 beyond.
    """
    inside = jnp.clip(x, -4.2, 4.2)
    square = inside * inside
    fourth = square * square
    # Evaluated in pairs (Estrin, 1960): independent terms.
    low = 0.3984659 - 0.0655283 * square + (0.009298283 - 0.0009506711 * square) * fourth
    high = 6.689253e-05 - 3.038066e-06 * square + (7.941845e-08 - 9.018297e-10 * square) * fourth
    return x * (0.5 + inside * (low + high * (fourth * fourth)))


def gelu_exact(x: Array) -> Array:
    """GELU as JAX computes it, by erfc."""
    return nn.gelu(x, approximate=False)


@jax.custom_vjp
def _relu(x: Array) -> Array:
    """max(x, 0); the backward pass reads the result, which the next product keeps anyway, instead of x."""
    return nn.relu(x)


def _relu_forward(x: Array) -> tuple[Array, Array]:
    y = nn.relu(x)
    return y, y


_relu.defvjp(_relu_forward, lambda y, gradient: (jnp.where(y > 0, gradient, 0),))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": nn.relu,
    "gelu": nn.gelu,  # the approximation by tanh (Hendrycks and Gimpel, 2016, section 2)
    "gelu_erf": gelu_erf,
    "swiglu": nn.silu,
    "quick_gelu": lambda x: x * nn.sigmoid(1.702 * x),  # a coarser approximation (section 2 there), in CLIP
}


def activation(name: str, dtype: str) -> Callable[[Array], Array]:
    """Return the function `name` of ACTIVATIONS for use between two products in `dtype`."""
    if activation_type(dtype) != "float32":
        return _relu if name == "relu" else jax.checkpoint(gelu_exact if name == "gelu_erf" else ACTIVATIONS[name])
    if name != "gelu_erf":
        return ACTIVATIONS[name]
    if platforms.current().gelu == "exact":
        return gelu_exact
    return gelu_polynomial if dtype == "bfloat16" else gelu_erf
