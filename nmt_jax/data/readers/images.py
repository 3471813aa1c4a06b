"""Images as sources: decoded, resized to a square, and cut into patches, which are the rows of features.

So reads the vision Transformer (Dosovitskiy et al., 2021, section 3.1); its projection belongs to the model. Pillow
decodes the files: PNG, JPEG, WebP and many others.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, NamedTuple

import numpy as np

from nmt_jax.data import scenes
from nmt_jax.errors import UserError
from nmt_jax.storage.paths import path_of

SCENES = "scenes"  # the corpus, and the first part of the names of its drawings
CHANNELS = 3  # red, green, blue


class Picture(NamedTuple):
    """An image as a model reads it: its pixels uint8[H, W, 3], the columns of its patches, and the place of the first.

    start: among the places of all sources.
    """

    pixels: np.ndarray
    columns: int
    start: int


@dataclasses.dataclass(frozen=True)
class ImageFiles:
    """Image files of any size, see `RowReader`.

    An image becomes a square of `size` pixels a side, whatever the ratio of its sides, and is cut into patches of
    `patch` pixels a side, which divides `size`.
    """

    size: int
    patch: int
    dtype = "u1"

    @property
    def width(self) -> int:
        """Values of a patch."""
        return CHANNELS * self.patch**2

    @property
    def columns(self) -> int:
        """Patches from left to right."""
        return self.size // self.patch

    def cut(self, pixels: np.ndarray) -> np.ndarray:
        """An image uint8[size, size, 3] as patches uint8[P, 3 patch^2]; patches and their pixels are read like text."""
        grid = pixels.reshape(self.columns, self.patch, self.columns, self.patch, CHANNELS)
        return grid.swapaxes(1, 2).reshape(self.columns**2, self.width)

    def pixels(self, patches: np.ndarray) -> np.ndarray:
        """The inverse of `cut`."""
        grid = patches.reshape(self.columns, self.columns, self.patch, self.patch, CHANNELS)
        return grid.swapaxes(1, 2).reshape(self.size, self.size, CHANNELS)

    def features(self, stored: np.ndarray) -> np.ndarray:
        """Values uint8 as float32 in [-1, 1]."""
        return stored.astype(np.float32) / np.float32(127.5) - np.float32(1)

    def read(self, line: str) -> np.ndarray:
        """The patches of an image. Raises UserError, naming the file."""
        return self.cut(np.asarray(_resized(open_image(line), self.size), np.uint8))


@dataclasses.dataclass(frozen=True)
class SceneDrawings(ImageFiles):
    """Scenes that are drawn here, by their names; any other line is the path of an image file.

    A name is `scenes:SPLIT:NUMBER`, or `scenes:FAMILY:SPLIT:NUMBER`.
    """

    version: int = scenes.VERSION

    def read(self, line: str) -> np.ndarray:
        name, *rest = line.strip().split(":")
        if name != SCENES:
            return super().read(line)
        if len(rest) not in (2, 3):
            raise UserError(f"{line}: no such scene; its name is {SCENES}:SPLIT:NUMBER or {SCENES}:FAMILY:SPLIT:NUMBER")
        family, split, number = rest if len(rest) == 3 else ("", *rest)
        return self.cut(scenes.scene(split, int(number) if number.isdecimal() else -1, family).draw(self.size))


def scene_name(split: str, number: int, family: str = "") -> str:
    """The line that `SceneDrawings` reads."""
    return ":".join([SCENES, *([family] if family else []), split, str(number)])


def open_image(path: str) -> Any:
    """The first frame of an image file, rotated as its metadata says, in RGB; an image of Pillow.

    Raises UserError, naming the file.
    """
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise UserError("data.kind=image needs Pillow: pip install 'nmt-jax[images]'") from None
    try:
        with path_of(path).open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd metadata, and large images; the largest raise an error
            with Image.open(file) as image:
                return ImageOps.exif_transpose(image).convert("RGB")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except Image.UnidentifiedImageError:
        raise UserError(f"{path}: not an image that Pillow can read; convert it to PNG or JPEG") from None
    except Image.DecompressionBombError:
        raise UserError(f"{path}: more than {2 * (Image.MAX_IMAGE_PIXELS or 0):,} pixels; make it smaller") from None
    except Exception as error:  # decoders raise many kinds of errors for damaged files
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UserError(f"{path}: cannot decode the image: {reason or type(error).__name__}") from None


def _resized(image: Any, size: int) -> Any:
    """An image with sides of `size` pixels."""
    from PIL import Image

    return image.resize((size, size), Image.Resampling.BICUBIC)
