"""Layer normalization (Ba et al., 2016)."""

import flax.linen as nn
import jax
import jax.numpy as jnp

Array = jax.Array


class LayerNorm(nn.Module):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias over the last axis, in float32."""

    epsilon: float = 1e-6

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """x float[..., D] -> float32[..., D]."""
        scale = self.param("scale", nn.initializers.ones, (x.shape[-1],))
        bias = self.param("bias", nn.initializers.zeros, (x.shape[-1],))
        x = x.astype(jnp.float32)
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.mean(centred * centred, axis=-1, keepdims=True)
        normal = centred * jax.lax.rsqrt(variance + self.epsilon)
        return normal * jnp.broadcast_to(scale, x.shape) + jnp.broadcast_to(bias, x.shape)
