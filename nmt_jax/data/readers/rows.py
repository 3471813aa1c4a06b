"""Sources that are not text: a line of the source names a file, which is read as rows of features.

`row_reader` returns the reader for a kind of `config.data.kind`; a new kind of source is a class with the same methods.
"""

from __future__ import annotations

import dataclasses
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from nmt_jax.data.readers.audio import SPEECH, AudioFiles, SpokenSentences
from nmt_jax.data.readers.images import SCENES, ImageFiles, SceneDrawings
from nmt_jax.errors import UserError
from nmt_jax.storage.paths import path_of

TEXT = "text"  # the kind of source that has no rows


class RowReader(Protocol):
    """How the file that a line names becomes S rows of F features."""

    @property
    def width(self) -> int:
        """F."""

    @property
    def columns(self) -> int:
        """Columns of the grid that the rows are, read like text; 0 if they are a sequence."""

    @property
    def dtype(self) -> str:
        """Type of the values in prepared corpora."""

    def read(self, line: str) -> np.ndarray:
        """The values [S, F] of the file, as they are stored. Raises UserError that names the file."""

    def features(self, stored: np.ndarray) -> np.ndarray:
        """The features float32[S, F] of stored values [S, F]."""


def row_reader(kind: str, data: Any) -> RowReader | None:
    """The reader of sources of a kind, as `config.data` describes them; None for text."""
    if kind == "image":
        reader = SceneDrawings if data.corpus == SCENES else ImageFiles
        return reader(data.image_size, data.patch_size)
    if kind == "audio":
        return (SpokenSentences if data.corpus == SPEECH else AudioFiles)(data.mels)
    return FeatureFiles(data.feature_width) if kind == "features" else None


def read_line(reader: RowReader, line: str) -> np.ndarray:
    """The values that `reader` reads; no rows for an empty line."""
    return reader.read(line) if line.strip() else np.zeros((0, reader.width), reader.dtype)


def fill(items: Sequence[np.ndarray], shape: tuple[int, int], width: int) -> dict[str, np.ndarray]:
    """Features float32[s, F] of at most B sources -> {"source": float32[B, S, F], "source_lengths": int32[B]}."""
    rows, lengths = np.zeros((*shape, width), np.float32), np.zeros(shape[0], np.int32)
    for number, item in enumerate(items):
        rows[number, : len(item)], lengths[number] = item, len(item)
    return {"source": rows, "source_lengths": lengths}


@dataclasses.dataclass(frozen=True)
class FeatureFiles:
    """NumPy files: an `.npy` array of rows [S, width], or an `.npz` file with one array, or with one named `rows`."""

    width: int
    columns = 0  # a sequence
    dtype = "<f4"

    def read(self, line: str) -> np.ndarray:
        array = _load(line)
        if array.ndim != 2 or array.dtype.kind not in "fiu":
            raise UserError(f"{line}: an array {array.dtype}{list(array.shape)}; rows of numbers [S, F] are needed")
        if not len(array):
            raise UserError(f"{line}: the array has no rows; remove the file from the list")
        if array.shape[1] != self.width:
            raise UserError(
                f"{line}: rows of {array.shape[1]} features, but config.data.feature_width={self.width}; all files "
                "need the same width"
            )
        with np.errstate(over="ignore"):  # such numbers are found below
            rows = array.astype(self.dtype)
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            raise UserError(f"{line}: row {int(finite.argmin())} has NaN or infinity; rows must be finite in float32")
        return rows

    def features(self, stored: np.ndarray) -> np.ndarray:
        return stored.astype(np.float32)


def _load(path: str) -> np.ndarray:
    """The array of an `.npy` or `.npz` file; pickled objects are never read."""
    try:
        with path_of(path).open("rb") as file:
            content = np.load(file, allow_pickle=False)
            if not isinstance(content, np.lib.npyio.NpzFile):
                return np.asarray(content)
            names = content.files
            if len(names) > 1 and "rows" not in names:
                raise UserError(f"{path}: has the arrays {', '.join(names)}; name the one to read `rows`")
            return np.asarray(content["rows" if len(names) > 1 else names[0]])
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot read the file: {error.strerror or error}") from None
    except (ValueError, EOFError, IndexError, KeyError, SyntaxError, zipfile.BadZipFile, zlib.error, MemoryError):
        raise UserError(f"{path}: empty, damaged, or not an array that np.save or np.savez wrote") from None
