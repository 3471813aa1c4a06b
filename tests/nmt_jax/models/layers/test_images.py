"""The convolutional encoder of images: convolutions as NumPy writes them, the field of a cell, and missing patches."""

import jax
import numpy as np
import pytest

from nmt_jax.data.readers.images import ImageFiles
from nmt_jax.models.layers.images import ConvolutionalEncoder, colours, contrast, neighbourhoods
from tests.fixtures.parameters import draw_parameters

SIDE, PATCH = 5, 4  # patches on a side, and their pixels
READER = ImageFiles(SIDE * PATCH, PATCH)
PIXELS = np.random.default_rng(0).integers(0, 256, (SIDE * PATCH, SIDE * PATCH, 3), np.uint8)
ROWS = READER.features(READER.cut(PIXELS))[None]
EVERYWHERE = np.ones((1, SIDE**2), bool)


@pytest.fixture(scope="module")
def encode():
    encoder = ConvolutionalEncoder(SIDE, 4, 6, "float32")
    variables = draw_parameters(encoder.init, ROWS, EVERYWHERE)
    return jax.jit(lambda rows, mask: encoder.apply(variables, rows, mask))


@pytest.mark.parametrize(("stride", "before"), [(1, 1), (2, 1), (2, 0)])
def test_a_product_with_neighbourhoods_is_a_convolution(stride, before):
    random = np.random.default_rng(1)
    x, kernel = random.normal(size=(1, 6, 8, 2)), random.normal(size=(3, 3, 2, 5))
    found = neighbourhoods(x, stride, before) @ kernel.reshape(-1, 5)
    assert found.shape == (1, 6 // stride, 8 // stride, 5)
    for row in range(0, 6, stride):
        for column in range(0, 8, stride):
            expected = np.zeros(5)
            for i in range(3):
                for j in range(3):
                    y, z = row + i - before, column + j - before
                    if 0 <= y < 6 and 0 <= z < 8:
                        expected += x[0, y, z] @ kernel[i, j]
            np.testing.assert_allclose(found[0, row // stride, column // stride], expected, rtol=1e-5, atol=1e-5)


def test_contrast_does_not_depend_on_the_colours():
    image = np.zeros((2, 4, 4, 3), np.float32)
    image[0, 1, 2], image[1, 1, 2] = [0.9, 0.0, 0.0], [0.0, 0.0, -0.9]
    found = np.asarray(contrast(image))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    difference = image[0, 1, 2] - image[0].mean(axis=(0, 1))
    np.testing.assert_allclose(found[0, 1, 2, 0], np.sqrt((difference**2).sum()), rtol=1e-3)


def test_the_colour_of_a_patch_is_a_weighted_mean():
    random = np.random.default_rng(2)
    image, weights = random.normal(size=(2, 6, 6, 3)), random.uniform(0.1, 1.0, (2, 6, 6, 1))
    found = np.asarray(colours(image, weights, 2))
    for number, (row, column) in enumerate([(0, 0), (0, 3), (3, 0), (3, 3)]):
        patch = slice(None), slice(row, row + 3), slice(column, column + 3)
        expected = (image[patch] * weights[patch]).sum((1, 2)) / weights[patch].sum((1, 2))
        np.testing.assert_allclose(found[:, number], expected, rtol=1e-5)


def test_a_shape_is_read_in_the_same_way_in_another_colour(encode):
    """Of two colours at the same distance from grey, only the hidden layer for colours tells which one it is."""
    encoder = ConvolutionalEncoder(SIDE, 4, 6, "float32")
    variables = draw_parameters(encoder.init, ROWS, EVERYWHERE)
    kernel = variables["params"]["output"]["kernel"]
    blind = jax.tree.map(lambda one: one, variables)
    blind["params"]["output"]["kernel"] = kernel.at[-2 * encoder.width :].set(0.0)
    shape = np.zeros((2, SIDE * PATCH, SIDE * PATCH, 3), np.float32)
    shape[0, 5:13, 6:11], shape[1, 5:13, 6:11] = [0.8, 0.0, 0.0], [0.0, -0.8, 0.0]
    rows = np.stack([READER.cut(one) for one in shape])
    mask = np.repeat(EVERYWHERE, 2, axis=0)
    first, second = np.asarray(encoder.apply(blind, rows, mask))
    np.testing.assert_allclose(first, second, atol=1e-5)
    first, second = np.asarray(encode(rows, mask))
    assert np.abs(first - second).max() > 0.01


def test_a_cell_sees_the_pixels_around_its_patch(encode):
    """Each cell of the middle: 4 P - 4 pixels, of which at least the P pixels next to its patch on either side."""

    def cell(pixels):
        # The mean colour is the same whatever the pixel, so that only the convolutions carry it.
        return encode(READER.features(READER.cut(pixels))[None], EVERYWHERE)[0, SIDE * 2 + 2]

    base = np.full_like(PIXELS, 128)
    base[0, 0] = 228
    reference, seen = cell(base), []
    for column in range(1, SIDE * PATCH):
        moved = base.copy()
        moved[0, 0], moved[10, column] = 128, 228
        seen.append(column) if np.abs(cell(moved) - reference).max() > 1e-5 else None
    assert seen == list(range(seen[0], seen[-1] + 1))
    assert len(seen) == 4 * PATCH - 4
    assert seen[0] <= PATCH
    assert seen[-1] >= 4 * PATCH - 1


def test_missing_patches_and_padding_are_grey(encode):
    length = 17
    mask, grey = np.arange(SIDE**2)[None] < length, ROWS.copy()
    grey[:, length:] = 0.0
    expected = np.asarray(encode(grey, EVERYWHERE))
    np.testing.assert_allclose(encode(ROWS, mask), expected, atol=1e-6)
    np.testing.assert_allclose(encode(ROWS[:, :length], mask[:, :length]), expected[:, :length], atol=1e-6)
    longer = np.pad(ROWS, ((0, 0), (0, 3), (0, 0)), constant_values=9.0), np.pad(mask, ((0, 0), (0, 3)))
    found = np.asarray(encode(*longer))
    np.testing.assert_allclose(found[:, : SIDE**2], expected, atol=1e-6)
    assert (found[:, SIDE**2 :] == 0).all()


def test_another_patch_size_is_an_error():
    with pytest.raises(ValueError, match="patch_size that is a power of 2, at least 4, not 3"):
        jax.eval_shape(ConvolutionalEncoder(2, 4, 6, "float32").init, jax.random.key(0), np.zeros((1, 4, 27)), None)
