"""Layer normalization (Ba et al., 2016)."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax import platforms


def layer_norm(x: Array, scale: Array, bias: Array, epsilon: float) -> Array:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias over the last axis of [..., D] (Ba et al., 2016, eq. 4).

    Computed in float32; the result has the type of x.
    """
    if x.dtype != jnp.float32:
        return _narrow_layer_norm(x, scale, bias, epsilon)
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    normal = centred * jax.lax.rsqrt(jnp.mean(centred * centred, axis=-1, keepdims=True) + epsilon)
    return normal * jnp.broadcast_to(scale, x.shape) + jnp.broadcast_to(bias, x.shape)


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def _narrow_layer_norm(x: Array, scale: Array, bias: Array, epsilon: float) -> Array:
    """`layer_norm` of bfloat16 that keeps only the mean and the deviation of a row in float32 for the backward pass."""
    return layer_norm(x.astype(jnp.float32), scale, bias, epsilon).astype(x.dtype)


def _narrow_forward(x: Array, scale: Array, bias: Array, epsilon: float) -> tuple[Array, tuple[Array, ...]]:
    wide = x.astype(jnp.float32)
    mean = jnp.mean(wide, axis=-1, keepdims=True)
    factor = jax.lax.rsqrt(jnp.mean(jnp.square(wide - mean), axis=-1, keepdims=True) + epsilon)
    return _narrow_layer_norm(x, scale, bias, epsilon), (x, mean, factor, scale)


def _narrow_backward(epsilon: float, saved: tuple[Array, ...], gradient: Array) -> tuple[Array, Array, Array]:
    x, mean, factor, scale = saved
    normal, gradient = (x.astype(jnp.float32) - mean) * factor, gradient.astype(jnp.float32)
    d_normal = gradient * jnp.broadcast_to(scale, x.shape)
    parallel = normal * jnp.mean(d_normal * normal, axis=-1, keepdims=True)
    d_x = factor * (d_normal - jnp.mean(d_normal, axis=-1, keepdims=True) - parallel)
    rows = tuple(range(x.ndim - 1))
    terms = gradient * normal
    if platforms.current().scale_gradient == "stored":
        # XLA does not fuse them into their sum on GPUs, and would write them in float32.
        terms = jax.lax.optimization_barrier(terms.astype(x.dtype)).astype(jnp.float32)
    return d_x.astype(x.dtype), jnp.sum(terms, axis=rows), jnp.sum(gradient, axis=rows)


_narrow_layer_norm.defvjp(_narrow_forward, _narrow_backward)


class LayerNorm(nn.Module):
    """`layer_norm` with a learned scale and bias."""

    epsilon: float = 1e-6

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """x [..., D] -> [..., D] of the same type."""
        scale = self.param("scale", nn.initializers.ones, (x.shape[-1],))
        bias = self.param("bias", nn.initializers.zeros, (x.shape[-1],))
        return layer_norm(x, scale, bias, self.epsilon)
