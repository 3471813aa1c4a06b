"""Products and their gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax import platforms
from nmt_jax.models.layers.dense import matmul


@pytest.mark.parametrize("platform", [platforms.CPU, platforms.ACCELERATOR], ids=lambda platform: platform.name)
def test_gradient_of_matmul_in_bfloat16_is_the_float32_gradient_rounded(platform):
    rng = np.random.default_rng(0)
    x, w = jnp.asarray(rng.normal(size=(3, 5, 16)), jnp.float32), jnp.asarray(rng.normal(size=(16, 7)), jnp.float32)

    def loss(x, w, dtype):
        return jnp.sum(jnp.sin(matmul(x, w, dtype)))

    with platforms.use(platform):
        exact = jax.grad(loss, argnums=(0, 1))(x, w, "float32")
        rough = jax.grad(loss, argnums=(0, 1))(x, w, "bfloat16")
    for a, b in zip(exact, rough, strict=True):
        assert b.dtype == jnp.float32
        assert np.abs(a - b).max() < 0.05 * np.abs(a).max()
