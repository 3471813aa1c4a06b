"""Shorter sources: the equations of both ways, and lengths."""

import jax
import numpy as np
import pytest

from nmt_jax.models.layers.recurrent_encoder import Encoder
from nmt_jax.models.layers.subsampling import StridedConvolutions, join_neighbours
from tests.fixtures.parameters import draw_parameters

X = np.random.default_rng(0).normal(size=(2, 5, 3)).astype(np.float32)
LENGTHS = np.array([5, 2])
MASK = np.arange(5) < LENGTHS[:, None]


def test_neighbours_are_joined():
    joined = join_neighbours(X, MASK)
    assert joined.shape == (2, 3, 6)
    np.testing.assert_array_equal(joined[0, 1], np.concatenate([X[0, 2], X[0, 3]]))
    np.testing.assert_array_equal(joined[0, 2], np.concatenate([X[0, 4], np.zeros(3)]))
    np.testing.assert_array_equal(joined[1, 1:], 0)
    assert join_neighbours(X[:, :4], MASK[:, :4]).shape == (2, 2, 6)


@pytest.mark.parametrize("length", [4, 5])
def test_convolutions_have_the_values_of_a_strided_convolution(length):
    x, mask = X[:1, :length], MASK[:1, :length]
    module = StridedConvolutions(1, 4)
    variables = draw_parameters(module.init, x, mask)
    found = jax.jit(module.apply)(variables, x, mask)
    layer = variables["params"]["layers_0"]
    expected = jax.lax.conv_general_dilated(
        x, layer["kernel"].reshape(3, 3, 4), (2,), [(1, 1)], dimension_numbers=("NWC", "WIO", "NWC")
    )
    assert found.shape == (1, -(-length // 2), 4)
    np.testing.assert_allclose(found, np.maximum(expected + np.reshape(layer["bias"], (1, 1, 4)), 0), atol=2e-6)


def test_padding_and_lengths_after_several_convolutions():
    module = StridedConvolutions(2, 4)
    variables = draw_parameters(module.init, X, MASK)
    apply = jax.jit(module.apply)
    found = apply(variables, X, MASK)
    assert found.shape == (2, 2, 4)
    filled = np.where(MASK[..., None], X, 100).astype(np.float32)
    np.testing.assert_array_equal(apply(variables, filled, MASK)[MASK[:, ::4]], found[MASK[:, ::4]])
    assert MASK[:, ::4].sum(axis=1).tolist() == [2, 1]  # ceil(ceil(5 / 2) / 2), ceil(ceil(2 / 2) / 2)


def test_the_last_layers_of_a_pyramid_read_pairs():
    encoder = Encoder("lstm", num_layers=3, d_hidden=4, pyramid_layers=2)
    variables = draw_parameters(lambda key, *inputs: encoder.init(key, *inputs, False), X, MASK)
    kernels = [variables["params"][f"layers_{number}_0"]["input"]["kernel"].shape[0] for number in range(3)]
    assert kernels == [3, 8, 8]
    states, _ = encoder.apply(variables, X, MASK, False)
    assert states.shape == (2, 2, 4)
