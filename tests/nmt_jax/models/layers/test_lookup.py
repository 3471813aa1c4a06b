"""Rows of a word table: the gradient is that of indexing, for any number of devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType

from nmt_jax import platforms
from nmt_jax.models.layers.embedding import Embedding
from nmt_jax.models.layers.lookup import look_up

V, D = 11, 6


def on_devices(count):
    return jax.sharding.use_abstract_mesh(AbstractMesh((count,), ("data",), axis_types=(AxisType.Auto,)))


@pytest.mark.parametrize("count", [1, 4, 3])
def test_the_gradient_is_that_of_indexing(count):
    """With 4 devices, each sums its own rows first; 3 do not divide 8 rows, so there is one sum."""
    rng = np.random.default_rng(0)
    table, push = (jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in ((V, D), (8, 5, D)))
    numbers = jnp.asarray(rng.integers(V, size=(8, 5)))

    def pulled(rows):
        with on_devices(count):
            value, pull = jax.vjp(rows, table)
            return value, pull(push)[0], str(jax.make_jaxpr(pull)(push))

    (ours, gradient, program), (theirs, expected, _) = (
        pulled(lambda t: look_up(t, numbers)),
        pulled(lambda t: t[numbers]),
    )
    assert np.array_equal(ours, theirs)
    np.testing.assert_allclose(gradient, expected, atol=1e-6)
    assert (f"f32[4,{V},{D}]" in program) == (count == 4)


def test_a_tied_table_has_one_gradient_in_the_type_of_the_model():
    """Both gradients are added in bfloat16, so that one sum over devices is enough; float32 sums precede it."""
    model = Embedding(V, D, "bfloat16")
    numbers = jnp.asarray(np.random.default_rng(1).integers(V, size=(8, 40)))

    def loss(params, dtype):
        def apply(module):
            return jnp.sum(jnp.square(module(numbers))) + jnp.sum(jnp.square(module.table.T.astype(dtype)))

        return model.clone(dtype=dtype).apply(params, method=apply).astype(jnp.float32)

    with platforms.use(platforms.ACCELERATOR), on_devices(4):
        params = jax.jit(model.init)(jax.random.key(0), numbers)
        assert params["params"]["table"].dtype == jnp.float32
        gradient = jax.jit(jax.grad(loss), static_argnums=1)
        rough, exact = (gradient(params, dtype)["params"]["table"] for dtype in ("bfloat16", "float32"))
        program = str(jax.make_jaxpr(jax.grad(loss), static_argnums=1)(params, "bfloat16"))
    np.testing.assert_allclose(rough, exact, rtol=0.02, atol=0.02 * float(jnp.abs(exact).max()))
    assert f":bf16[{V},{D}] = add_any" in program
