"""Layer normalization."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax import platforms
from nmt_jax.models.layers.normalization import LayerNorm, layer_norm


def test_layer_norm_is_ba_et_al():
    x = jnp.asarray(np.random.default_rng(0).normal(3, 2, (2, 4, 16)), jnp.float32)
    y, _ = LayerNorm().init_with_output(jax.random.key(0), x)
    expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(y, expected, atol=1e-5)


@pytest.mark.parametrize("platform", [platforms.ACCELERATOR, platforms.GPU])
def test_layer_norm_of_bfloat16_has_the_gradient_of_float32(platform):
    rng = np.random.default_rng(1)
    x, push = (jnp.asarray(rng.normal(1, 2, (3, 4, 64)), jnp.bfloat16) for _ in range(2))
    scale, bias = (jnp.asarray(rng.normal(size=64), jnp.float32) for _ in range(2))

    def pulled(x, push):
        with platforms.use(platform):
            y, pull = jax.vjp(lambda *given: layer_norm(*given, 1e-6), x, scale, bias)
            return y, pull(push)

    ours, exact = pulled(x, push), pulled(x.astype(jnp.float32), push.astype(jnp.float32))
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(exact), strict=True):
        np.testing.assert_allclose(np.asarray(a, np.float32), b, atol=0.01 * float(jnp.abs(b).max()))
    assert [leaf.dtype for leaf in jax.tree.leaves(ours)] == [jnp.bfloat16, jnp.bfloat16, jnp.float32, jnp.float32]
