"""The dual encoder: vectors of length 1, padding without influence, shared encoders, temperatures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.models.dual_encoder import Model
from nmt_jax.models.layers.features import Features
from tests.fixtures.parameters import draw_parameters

SIZES = {"source_vocab_size": 12, "target_vocab_size": 10, "num_layers": 1, "d_model": 8, "d_ff": 12, "num_heads": 2}
SIZES |= {"d_output": 6, "dropout": 0.0}
SOURCE = np.array([[5, 6, 7, 2], [6, 5, 7, 2], [8, 2, 0, 0], [0, 0, 0, 0]])
TARGET = np.array([[4, 3, 2, 0, 0], [9, 8, 7, 6, 2], [3, 2, 0, 0, 0], [0, 0, 0, 0, 0]])


def make(source=SOURCE, **fields):
    """A function of a source and a target, as `Model.__call__`, and the parameters."""
    model = Model(**SIZES | fields)
    variables = draw_parameters(model.init, source, TARGET)
    return jax.jit(lambda source, target: model.apply(variables, source, target)), variables["params"]


def test_vectors_have_length_1_and_padding_has_no_influence():
    call, params = make()
    assert set(params) == {"source_encoder", "target_encoder", "log_scale"}
    *sides, scale = call(SOURCE, TARGET)
    for side in sides:
        np.testing.assert_allclose(np.linalg.norm(side[:3], axis=1), 1, rtol=1e-5)
        assert np.isfinite(side).all()
    assert np.abs(sides[0][0] - sides[0][1]).max() > 1e-3  # the order of words
    assert scale > 0
    wider = [np.pad(side, ((0, 0), (0, 3))) for side in (SOURCE, TARGET)]
    for side, other in zip(sides, call(*wider)[:2], strict=True):
        np.testing.assert_allclose(other[:3], side[:3], atol=1e-6)


def test_rows_of_features_lie_on_a_grid_and_those_after_the_length_have_no_influence():
    rows = np.random.default_rng(0).normal(size=(4, 4, 3)).astype(np.float32)
    changed = rows.copy()
    changed[1, 3] = 99.0
    source, other = (Features(jnp.array(one), jnp.array([4, 3, 4, 1])) for one in (rows, changed))
    sequence, _ = make(source)
    grid, _ = make(source, source_columns=(2,))
    np.testing.assert_array_equal(sequence(source, TARGET)[0], sequence(other, TARGET)[0])
    assert np.abs(sequence(source, TARGET)[0] - grid(source, TARGET)[0]).max() > 1e-3


def test_a_shared_encoder_gives_both_sides_the_same_vectors():
    call, params = make(target_vocab_size=12, share_encoder=True)
    assert set(params) == {"source_encoder", "log_scale"}
    first, second, _ = call(SOURCE, SOURCE)
    np.testing.assert_array_equal(first, second)
    with pytest.raises(ValueError, match="one joint vocabulary"):
        Model(**SIZES, share_encoder=True)


@pytest.mark.parametrize(
    ("log_scale", "sign", "expected"),
    [(1.0, 1, np.e), (1.0, -1, -np.e), (5.0, 1, np.exp(5)), (5.0, -1, 0)],  # 100 is exp(4.6)
)
def test_descent_lowers_a_scale_above_the_bound_but_never_raises_it(log_scale, sign, expected):
    model = Model(**SIZES)

    def loss(params):
        return sign * model.apply({"params": params}, method="scale")

    gradient = jax.grad(loss)({"log_scale": jnp.float32(log_scale)})["log_scale"]
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)


def test_temperatures():
    learned = Model(**SIZES, temperature=0.05)
    scales = [
        float(learned.apply({"params": {"log_scale": jnp.float32(log)}}, method="scale")) for log in (1.0, 9.0, -2.0)
    ]
    np.testing.assert_allclose(scales, [np.e, 100, np.exp(-2)], rtol=1e-6)
    fixed = Model(**SIZES, temperature=0.001, learn_temperature=False)
    np.testing.assert_allclose(fixed.apply({"params": {}}, method="scale"), 1000, rtol=1e-6)
    shapes = jax.eval_shape(fixed.init, jax.random.key(0), SOURCE, TARGET)
    assert set(shapes["params"]) == {"source_encoder", "target_encoder"}
