"""The convolutional encoder of images: convolutions as NumPy writes them, the field of a cell, and missing patches."""

import jax
import numpy as np
import pytest

from nmt_jax.data.readers.images import ImageFiles
from nmt_jax.models.layers.images import ConvolutionalEncoder, neighbourhoods, with_contrast
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
    contrast = np.asarray(with_contrast(image))
    np.testing.assert_array_equal(contrast[..., :3], image)
    np.testing.assert_allclose(contrast[0, ..., 3], contrast[1, ..., 3], rtol=1e-6)
    difference = image[0, 1, 2] - image[0].mean(axis=(0, 1))
    np.testing.assert_allclose(contrast[0, 1, 2, 3], np.sqrt((difference**2).sum()), rtol=1e-3)


def test_a_cell_sees_the_pixels_around_its_patch(encode):
    """Each cell of the middle: 4 P - 1 pixels, of which at least the P pixels next to its patch on either side."""

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
    assert len(seen) == 4 * PATCH - 1
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
    with pytest.raises(ValueError, match="patch_size that is a power of 2, not 3"):
        jax.eval_shape(ConvolutionalEncoder(2, 4, 6, "float32").init, jax.random.key(0), np.zeros((1, 4, 27)), None)
