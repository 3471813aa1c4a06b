"""A small convolutional encoder of images, trained with the rest of a model."""

import math

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.basic import Dense, LayerNorm

IMAGE_ENCODERS = ("patches", "convolution")
CHANNELS = 3  # red, green, blue
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


def with_contrast(pixels: Array) -> Array:
    """Pixels [B, H, W, C] with one more channel: the distance of their colour from the mean colour of the image.

    It shows outlines in the same way whatever the colours, so that shapes can be learned apart from them.
    """
    difference = pixels - pixels.mean(axis=(1, 2), keepdims=True)
    distance = jnp.sqrt(jnp.square(difference).sum(axis=-1, keepdims=True) + 1e-4)  # a gradient at 0, too
    return jnp.concatenate([pixels, distance], axis=-1)


class ConvolutionalEncoder(nn.Module):
    """Convolutions that turn an image into a grid of cells, one for each of its patches.

    columns: patches on a side of the image. For patches of P x P pixels, where P is a power of 2, log2(P) convolutions
    of 3 x 3 with stride 2 make a cell of a patch, and one of stride 1 adds the cells around it, so that a cell sees
    4 P - 1 pixels in each direction. The first has `width` filters, each further one twice as many, except for the
    last. Each is followed by layer normalization over the filters and ReLU. `features`: the width of the result.
    """

    columns: int
    width: int
    features: int
    dtype: str

    @nn.compact
    def __call__(self, rows: Array, mask: Array) -> Array:
        """Patches float[B, S, 3 P^2], line by line, and which are real, bool[B, S] -> cells [B, S, features].

        Patches that are missing or padding are grey. Raises ValueError if P is not a power of 2.
        """
        length, count, size = rows.shape[1], self.columns**2, math.isqrt(rows.shape[-1] // CHANNELS)
        if size & (size - 1):
            raise ValueError(f"image_encoder='convolution' needs a patch_size that is a power of 2, not {size}")
        patches = _resize(jnp.where(mask[..., None], rows, 0.0), count)
        grid = patches.reshape(-1, self.columns, self.columns, size, size, CHANNELS).swapaxes(2, 3)
        x = with_contrast(grid.reshape(-1, self.columns * size, self.columns * size, CHANNELS))
        halvings = size.bit_length() - 1
        for number in range(halvings + 1):
            # An even stride has no centre: the last one begins later, so that a cell is centred on its patch.
            stride, before = (2 if number < halvings else 1), (0 if number == halvings - 1 else 1)
            filters = self.width << min(number, max(halvings - 1, 0))
            init = nn.initializers.he_uniform()
            layer = Dense(filters, dtype=self.dtype, kernel_init=init, name=f"hidden_{number}")
            x = LayerNorm(EPSILON, name=f"norm_{number}")(layer(neighbourhoods(x, stride, before)))
            x = jax.nn.relu(x)
        cells = Dense(self.features, dtype=self.dtype, name="output")(x.reshape(-1, count, x.shape[-1]))
        return _resize(cells, length)


def _resize(x: Array, length: int) -> Array:
    """The first `length` rows of float[B, S, D], or all rows and zeros after them."""
    return jnp.pad(x[:, :length], ((0, 0), (0, max(length - x.shape[1], 0)), (0, 0)))
