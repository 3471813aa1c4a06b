"""A small encoder of images that is trained with the rest of a model: convolutions for form, and one colour per patch.

The convolutions do not see colours, so that a shape is recognized in a colour that it never had in training.
"""

import math

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.dense import Dense
from nmt_jax.models.layers.normalization import LayerNorm

IMAGE_ENCODERS = ("patches", "convolution")
CHANNELS = 3  # red, green, blue
STEM = 4  # pixels on a side of the first convolution
EPSILON = 1e-3  # of the norms: flat parts of an image are not scaled up to noise


def neighbourhoods(x: Array, stride: int = 1, before: int = 1) -> Array:
    """The 3 x 3 neighbourhoods of every `stride`-th cell: [B, H, W, C] -> [B, H / stride, W / stride, 9 C].

    They begin `before` cells above and to the left of it. Cells outside are 0. A product with it is a convolution.
    """
    height, width = x.shape[1:3]
    around = (before, 2 - before)
    padded = jnp.pad(x, ((0, 0), around, around, (0, 0)))
    shifted = [padded[:, i : i + height : stride, j : j + width : stride] for i in range(3) for j in range(3)]
    return jnp.concatenate(shifted, axis=-1)


def contrast(pixels: Array) -> Array:
    """The distance of the colour of each pixel from the mean colour of its image, [B, H, W, 3] -> [B, H, W, 1].

    It shows outlines in the same way whatever the colours.
    """
    difference = pixels - pixels.mean(axis=(1, 2), keepdims=True)
    return jnp.sqrt(jnp.square(difference).sum(axis=-1, keepdims=True) + 1e-4)  # a gradient at 0, too


def colours(pixels: Array, weights: Array, columns: int) -> Array:
    """The weighted mean colour of each patch, line by line: [B, H, W, 3], weights [B, H, W, 1] -> [B, columns^2, 3]."""

    def patches(x: Array) -> Array:
        size = x.shape[1] // columns
        return x.reshape(-1, columns, size, columns, size, x.shape[-1])

    sums = patches(pixels * weights).sum(axis=(2, 4)) / patches(weights).sum(axis=(2, 4))
    return sums.reshape(-1, columns**2, CHANNELS)


class ConvolutionalEncoder(nn.Module):
    """Convolutions that turn an image into a grid of cells, one for each of its patches, and the colour of the patch.

    columns: patches on a side of the image. The convolutions read the `contrast`. The first one has 4 x 4 pixels and
    stride 4, as in ConvNeXt (Liu et al., 2022). For patches of P x P pixels, where P is a power of 2, log2(P) - 2
    further ones, 3 x 3 with stride 2, make a cell of a patch, and one of stride 1 adds the cells around it, so that a
    cell sees 4 P - 4 pixels in each direction. The first has `width` filters, each further one twice as many, except
    for the last. Each is followed by layer normalization over the filters and ReLU. The colour of a patch is the mean
    of its pixels, which count more the more they stand out; a hidden layer of 2 `width` units reads it. `features`:
    the width of the result.
    """

    columns: int
    width: int
    features: int
    dtype: str

    @nn.compact
    def __call__(self, rows: Array, mask: Array) -> Array:
        """Patches float[B, S, 3 P^2], line by line, and which are real, bool[B, S] -> cells [B, S, features].

        Patches that are missing or padding are grey. Raises ValueError if P is not a power of 2, or less than 4.
        """
        length, count, size = rows.shape[1], self.columns**2, math.isqrt(rows.shape[-1] // CHANNELS)
        if size & (size - 1) or size < STEM:
            raise ValueError(
                f"image_encoder='convolution' needs a patch_size that is a power of 2, at least {STEM}, not {size}"
            )
        patches = _resize(jnp.where(mask[..., None], rows, 0.0), count)
        grid = patches.reshape(-1, self.columns, self.columns, size, size, CHANNELS).swapaxes(2, 3)
        pixels = grid.reshape(-1, self.columns * size, self.columns * size, CHANNELS)
        distance = contrast(pixels)
        colour = colours(pixels, jnp.square(distance), self.columns)
        colour = jax.nn.relu(Dense(2 * self.width, dtype=self.dtype, name="colour")(colour))
        side, halvings = self.columns * size // STEM, (size // STEM).bit_length() - 1
        blocks = distance.reshape(-1, side, STEM, side, STEM).swapaxes(2, 3).reshape(-1, side, side, STEM**2)
        x = self._layer(0, blocks, self.width)
        for number in range(1, halvings + 1):
            # An even stride has no centre: the last one begins later, so that a cell is centred on its patch.
            around = neighbourhoods(x, stride=2, before=0 if number == halvings else 1)
            x = self._layer(number, around, self.width << number)
        x = self._layer(halvings + 1, neighbourhoods(x), self.width << halvings)
        both = jnp.concatenate([x.reshape(-1, count, x.shape[-1]), colour], axis=-1)
        cells = Dense(self.features, dtype=self.dtype, name="output")(both)
        return _resize(cells, length)

    def _layer(self, number: int, inputs: Array, filters: int) -> Array:
        """Filters over `inputs` [B, H, W, C], normalized and rectified -> [B, H, W, filters]."""
        init = nn.initializers.he_uniform()
        x = Dense(filters, dtype=self.dtype, kernel_init=init, name=f"hidden_{number}")(inputs)
        return jax.nn.relu(LayerNorm(EPSILON, name=f"norm_{number}")(x))


def _resize(x: Array, length: int) -> Array:
    """The first `length` rows of float[B, S, D], or all rows and zeros after them."""
    return jnp.pad(x[:, :length], ((0, 0), (0, max(length - x.shape[1], 0)), (0, 0)))
