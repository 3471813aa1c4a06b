"""The multilayer perceptron by hand, and its settings."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.models.mlp import Model


@pytest.mark.parametrize("num_layers", [0, 2])
def test_by_hand(num_layers):
    model = Model(num_outputs=2, num_layers=num_layers, d_hidden=5, dropout=0.5)
    x = jax.random.normal(jax.random.key(0), (3, 4))
    params = jax.tree.map(np.asarray, model.init(jax.random.key(1), x)["params"])
    assert set(params) == {*(f"hidden_{n}" for n in range(num_layers)), "output"}
    y = np.asarray(x)
    for n in range(num_layers):
        y = np.maximum(y @ params[f"hidden_{n}"]["kernel"] + params[f"hidden_{n}"]["bias"], 0)
    expected = y @ params["output"]["kernel"] + params["output"]["bias"]
    np.testing.assert_allclose(model.apply({"params": params}, x), expected, atol=1e-5)
    train = model.apply({"params": params}, x, train=True, rngs={"dropout": jax.random.key(2)})
    assert jnp.abs(train - expected).max() > 1e-3


@pytest.mark.parametrize("wrong", [{"num_layers": -1}, {"d_hidden": 0}, {"dropout": 1.0}])
def test_settings_that_cannot_be_meant(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Model(**wrong)
