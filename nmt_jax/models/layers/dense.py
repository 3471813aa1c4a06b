"""Matrix products in float32 or bfloat16, and the dense layer.

With dtype "bfloat16" the operands of a product, and of both products of its gradient, are rounded to bfloat16
(Micikevicius et al., 2018). What lies between two products is float32 on CPUs; on accelerators it has the model's type,
so that half as many bytes move, while norms, softmax, loss and the optimizer still compute in float32.
"""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax import platforms
from nmt_jax.models.layers.quantization import Quantized, quantized_product

FEW_ROWS = 64  # by measurement: the same row gets the same sums in a product of more rows


def matmul(x: Array, kernel: Array | Quantized, dtype: str = "float32") -> Array:
    """x float[..., D] times kernel float[D, F] -> float32[..., F]; operands rounded to `dtype`, sums in float32."""
    if isinstance(kernel, Quantized):
        return quantized_product(x, kernel)
    # In float32 XLA's CPU compiler copies the gradient transposed under JAX's own rule, which takes a tenth of a step;
    # in bfloat16 that rule would not round the gradient.
    if platforms.current().product_gradient == "derived" and dtype == "float32":
        return _plain_matmul(x, kernel, dtype)
    return _matmul(x, kernel, dtype, x.dtype.name)


def activation_type(dtype: str) -> str:
    """The type of activations between the products of a model that computes in `dtype`."""
    return dtype if platforms.current().activations == "model" else "float32"


def hidden_product(x: Array, kernel: Array | Quantized, dtype: str) -> Array:
    """x float[..., D] times kernel float[D, F] -> [..., F] in the type of activations."""
    if isinstance(kernel, Quantized):
        return quantized_product(x, kernel).astype(activation_type(dtype))
    if activation_type(dtype) == "float32":
        return matmul(x, kernel, dtype)
    return jnp.dot(x.astype(dtype), kernel.astype(dtype))


def product(a: Array, b: Array, dtype: str) -> Array:
    """a float[N, D] times b float[D, M] -> float32[N, M]: operands rounded to `dtype`, sums in float32."""
    if dtype == "float32" and len(a) < FEW_ROWS and platforms.current().few_rows == "transposed":
        # XLA's CPU compiler adds the terms of few rows in another order than those of many, unless b is transposed.
        # The barrier keeps it from undoing that.
        return jax.lax.dot_general(a, jax.lax.optimization_barrier(b.T), (((1,), (1,)), ((), ())))
    return jnp.dot(a.astype(dtype), b.astype(dtype), preferred_element_type=jnp.float32)


def transposed(a: Array, dtype: str) -> Array:
    """a float[N, M] -> [M, N] as an operand of a product in `dtype`."""
    if platforms.current().transpose == "lazy" or dtype == "float32":
        return a.T
    # CPUs multiply untransposed bfloat16 matrices twice as fast as transposed ones; in float32 there is no difference.
    # The barrier keeps XLA from fusing the transpose into the product.
    return jax.lax.optimization_barrier(a.astype(jnp.bfloat16).T)


def _plain_matmul(x: Array, kernel: Array, dtype: str) -> Array:
    return product(x.reshape(-1, x.shape[-1]), kernel, dtype).reshape(*x.shape[:-1], -1)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def _matmul(x: Array, kernel: Array, dtype: str, x_dtype: str) -> Array:
    return _plain_matmul(x, kernel, dtype)


def _matmul_forward(x: Array, kernel: Array, dtype: str, x_dtype: str) -> tuple[Array, tuple[Array, Array]]:
    return _plain_matmul(x, kernel, dtype), (x.astype(dtype), kernel)


def _matmul_backward(dtype: str, x_dtype: str, saved: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    x, kernel = saved
    rows = gradient.reshape(-1, gradient.shape[-1]).astype(dtype)
    d_x = product(rows, transposed(kernel, dtype), dtype).reshape(x.shape).astype(x_dtype)
    return d_x, product(transposed(x.reshape(-1, x.shape[-1]), dtype), rows, dtype).astype(kernel.dtype)


_matmul.defvjp(_matmul_forward, _matmul_backward)


class Dense(nn.Module):
    """y = x W + b, with W initialized after Glorot and Bengio (2010) unless `kernel_init` is given, and b = 0."""

    features: int
    use_bias: bool = True
    dtype: str = "float32"
    kernel_init: nn.initializers.Initializer = nn.initializers.xavier_uniform()

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """x float[..., D] -> [..., features] in the type of activations."""
        kernel = self.param("kernel", self.kernel_init, (x.shape[-1], self.features))
        y = hidden_product(x, kernel, self.dtype)
        if self.use_bias:
            bias = self.param("bias", nn.initializers.zeros, (self.features,))
            y = y + jnp.broadcast_to(bias, y.shape).astype(y.dtype)
        return y
