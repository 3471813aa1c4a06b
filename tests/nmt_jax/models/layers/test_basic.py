import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.models.layers import basic as layers


@pytest.mark.parametrize(("rate", "width"), [(0.1, 64), (0.3, 7)])
def test_dropout_keeps_the_share_and_the_mean(rate, width):
    x = jnp.ones((50, 41, width))
    y = np.asarray(layers.dropout(x, rate, jax.random.key(0)))
    keep = round(256 * (1 - rate)) / 256
    assert abs((y != 0).mean() - keep) < 4 * np.sqrt(keep * (1 - keep) / y.size)
    np.testing.assert_allclose(y[y != 0], 1 / keep, rtol=1e-6)
    assert not np.array_equal(y, layers.dropout(x, rate, jax.random.key(1)))


def test_dropout_units_are_independent():
    dropped = np.asarray(layers.dropout(jnp.ones((4000, 8)), 0.5, jax.random.key(0))) == 0
    correlation = np.corrcoef(dropped.T) - np.eye(8)
    assert np.abs(correlation).max() < 5 / np.sqrt(4000)


def test_matmul_gradient_in_bfloat16_is_the_float32_gradient_rounded():
    rng = np.random.default_rng(0)
    x, w = jnp.asarray(rng.normal(size=(3, 5, 16)), jnp.float32), jnp.asarray(rng.normal(size=(16, 7)), jnp.float32)

    def loss(x, w, dtype):
        return jnp.sum(jnp.sin(layers.matmul(x, w, dtype)))

    exact = jax.grad(loss, argnums=(0, 1))(x, w, "float32")
    rough = jax.grad(loss, argnums=(0, 1))(x, w, "bfloat16")
    for a, b in zip(exact, rough, strict=True):
        assert b.dtype == jnp.float32
        assert np.abs(a - b).max() < 0.05 * np.abs(a).max()


def test_layer_norm_is_ba_et_al():
    x = jnp.asarray(np.random.default_rng(0).normal(3, 2, (2, 4, 16)), jnp.float32)
    y, _ = layers.LayerNorm().init_with_output(jax.random.key(0), x)
    expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(y, expected, atol=1e-5)


def test_sinusoids_are_equation_of_section_3_5():
    table = layers.sinusoids(7, 6)
    for position in range(7):
        for i in range(3):
            angle = position / 10000 ** (2 * i / 6)
            np.testing.assert_allclose(
                table[position, [i, 3 + i]], [np.sin(angle), np.cos(angle)], rtol=1e-6, atol=1e-7
            )


def test_learned_positions_end():
    with pytest.raises(ValueError, match="max_positions=4"):
        layers.Positions("learned", 4, 8).init_with_output(jax.random.key(0), 5)


def test_gelu_in_bfloat16_is_the_exact_one_to_what_a_product_can_tell():
    x = jnp.linspace(-20, 20, 40_001)
    exact, rounded = layers.activation("gelu_erf", "float32"), layers.activation("gelu_erf", "bfloat16")
    assert jnp.abs(rounded(x) - exact(x)).max() < 1e-4
    slope, other = (jax.vmap(jax.grad(one))(x) for one in (rounded, exact))
    assert jnp.abs(slope - other).max() < 2e-3
    assert layers.activation("gelu", "bfloat16") is layers.ACTIVATIONS["gelu"]
