"""Matrix products with float32 accumulation and optional bfloat16 operands, and the dense layer.

With dtype "bfloat16" the operands of a product, and of both products of its gradient, are rounded to bfloat16
(Micikevicius et al., 2018); everything between two products stays float32.
"""

import functools
from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp

from nmt_jax import platforms

Array = jax.Array


def matmul(x: Array, kernel: Array, dtype: str = "float32") -> Array:
    """x float[..., D] times kernel float[D, F] -> float32[..., F]; operands rounded to `dtype`, sums in float32."""
    return MATMUL[platforms.current().product_gradient, dtype](x, kernel, dtype)


def product(a: Array, b: Array, dtype: str) -> Array:
    """a float[N, D] times b float[D, M] -> float32[N, M]: operands rounded to `dtype`, sums in float32."""
    return jnp.dot(a.astype(dtype), b.astype(dtype), preferred_element_type=jnp.float32)


def transposed(a: Array, dtype: str) -> Array:
    """a float[N, M] -> [M, N] as an operand of a product in `dtype`."""
    return TRANSPOSE[platforms.current().transpose, dtype](a)


def _plain_matmul(x: Array, kernel: Array, dtype: str) -> Array:
    return product(x.reshape(-1, x.shape[-1]), kernel, dtype).reshape(*x.shape[:-1], -1)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _matmul(x: Array, kernel: Array, dtype: str) -> Array:
    return _plain_matmul(x, kernel, dtype)


def _matmul_forward(x: Array, kernel: Array, dtype: str) -> tuple[Array, tuple[Array, Array]]:
    return _matmul(x, kernel, dtype), (x.astype(dtype), kernel)


def _matmul_backward(dtype: str, saved: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    x, kernel = saved
    rows = gradient.reshape(-1, gradient.shape[-1]).astype(dtype)
    d_x = product(rows, transposed(kernel, dtype), dtype).reshape(x.shape)
    return d_x, product(transposed(x.reshape(-1, x.shape[-1]), dtype), rows, dtype)


_matmul.defvjp(_matmul_forward, _matmul_backward)

# By `Platform.product_gradient` and dtype. In float32 XLA's CPU compiler copies the gradient transposed under JAX's own
# rule, which takes a tenth of a step; in bfloat16 that rule would not round the gradient.
MATMUL: dict[tuple[str, str], Callable[[Array, Array, str], Array]] = {
    ("derived", "float32"): _plain_matmul,
    ("derived", "bfloat16"): _matmul,
    ("explicit", "float32"): _matmul,
    ("explicit", "bfloat16"): _matmul,
}


def _lazily_transposed(a: Array) -> Array:
    return a.T


def _transposed_copy(a: Array) -> Array:
    # The barrier keeps XLA from fusing the transpose into the product.
    return jax.lax.optimization_barrier(a.astype(jnp.bfloat16).T)


# By `Platform.transpose` and dtype. CPUs multiply untransposed bfloat16 matrices twice as fast as transposed ones; in
# float32 there is no difference.
TRANSPOSE = {
    ("lazy", "float32"): _lazily_transposed,
    ("lazy", "bfloat16"): _lazily_transposed,
    ("materialized", "float32"): _lazily_transposed,
    ("materialized", "bfloat16"): _transposed_copy,
}


class Dense(nn.Module):
    """y = x W + b, with W initialized after Glorot and Bengio (2010) unless `kernel_init` is given, and b = 0."""

    features: int
    use_bias: bool = True
    dtype: str = "float32"
    kernel_init: nn.initializers.Initializer = nn.initializers.xavier_uniform()

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """x float[..., D] -> float32[..., features]."""
        kernel = self.param("kernel", self.kernel_init, (x.shape[-1], self.features))
        y = matmul(x, kernel, self.dtype)
        if self.use_bias:
            bias = self.param("bias", nn.initializers.zeros, (self.features,))
            y = y + jnp.broadcast_to(bias, y.shape)
        return y
