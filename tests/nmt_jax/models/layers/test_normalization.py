"""Layer normalization."""

import jax
import jax.numpy as jnp
import numpy as np

from nmt_jax.models.layers.basic import LayerNorm


def test_layer_norm_is_ba_et_al():
    x = jnp.asarray(np.random.default_rng(0).normal(3, 2, (2, 4, 16)), jnp.float32)
    y, _ = LayerNorm().init_with_output(jax.random.key(0), x)
    expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(y, expected, atol=1e-5)
