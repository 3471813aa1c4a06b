"""Tensors in the files of PyTorch (zip archives with a pickle and raw storages), read without unpickling."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import pathlib
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from nmt_jax.errors import UserError
from nmt_jax.pretrained.model_files import read_json
from nmt_jax.pretrained.pickle_values import PickleError, Unknown, read_pickle

SUFFIXES = (".bin", ".pt", ".pth", ".ckpt")
TYPES = {  # of storages; bfloat16 is the upper half of float32
    "DoubleStorage": "<f8",
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "|i1",
    "ByteStorage": "|u1",
    "BoolStorage": "|b1",
}
COPIES = 16  # of the data of a file that tensors with a common storage may take together
OLD = "is in PyTorch's format before version 1.6, which is not read; load it and save it again with a newer PyTorch"


class _Storage(NamedTuple):
    key: str
    dtype: str
    size: int


@dataclasses.dataclass(frozen=True, eq=False)
class TorchTensor:
    """A tensor in a file, read by `numpy.asarray`: floats as float32, other types as they are."""

    file: TorchFile
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements

    @property
    def dtype(self) -> np.dtype[Any]:
        floats = self.storage.dtype == "bfloat16" or np.dtype(self.storage.dtype).kind == "f"
        return np.dtype(np.float32 if floats else self.storage.dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        values = self.file.storage(self.storage)[self.offset :]
        if self.storage.dtype == "bfloat16":
            values = (values.astype(np.uint32) << 16).view(np.float32)
        strides = [stride * values.itemsize for stride in self.strides]
        with self.file.naming(), np.errstate(over="ignore"):  # a float64 beyond float32
            view = np.lib.stride_tricks.as_strided(values, self.shape, strides, writeable=False)
            return np.array(view, dtype or self.dtype)


class TorchFile:
    """An open file of PyTorch. `content` is what was saved: plain values, `TorchTensor`, and `Unknown` objects.

    Only names within the archive are read, and nothing is decompressed, since PyTorch stores its data as it is. Raises
    UserError if the file is damaged, too old, or contains what PyTorch does not write.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        with self.naming():
            self._archive = zipfile.ZipFile(path)
            names = [one.filename for one in self._archive.infolist()]
            pickles = [name for name in names if name.endswith("/data.pkl") and name.count("/") == 1]
            if len(pickles) != 1 or len(set(names)) != len(names):
                raise UserError(f"{path}: a zip archive, but not one that PyTorch wrote: it needs one data.pkl")
            self._root = pickles[0].removesuffix("data.pkl")
            if f"{self._root}byteorder" in names and self._read(f"{self._root}byteorder") != b"little":
                raise UserError(f"{path}: written by a big-endian machine, which is not supported")
            functions: dict[str, Callable[..., Any]] = {
                "collections.OrderedDict": _ordered,
                "torch._utils._rebuild_tensor_v2": self._tensor,
                "torch._utils._rebuild_parameter": lambda tensor, *_: tensor,
                "torch.Size": tuple,
            }
            self.content = read_pickle(self._read(pickles[0]), functions, self._persistent)
        self._last: tuple[_Storage, np.ndarray] | None = None

    def close(self) -> None:
        self._archive.close()

    def storage(self, storage: _Storage) -> np.ndarray:
        """The elements of a storage; bfloat16 as uint16. The last one is kept, because tensors may share it."""
        if self._last is None or self._last[0] != storage:
            dtype = np.dtype("<u2" if storage.dtype == "bfloat16" else storage.dtype)
            with self.naming():
                data = self._read(f"{self._root}data/{storage.key}")
            if len(data) < storage.size * dtype.itemsize:
                raise UserError(f"{self.path}: storage {storage.key} is truncated: copy the file again")
            self._last = storage, np.frombuffer(data, dtype, storage.size)
        return self._last[1]

    def _read(self, name: str) -> bytes:
        entry = self._archive.getinfo(name)
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > os.path.getsize(self.path):
            raise UserError(f"{self.path}: {name} is compressed, which PyTorch never does: not a file of PyTorch")
        return self._archive.read(entry)

    def _persistent(self, value: Any) -> _Storage:
        kind, dtype, key, _, size = value
        name = getattr(dtype, "name", "").removeprefix("torch.")
        if kind != "storage" or name not in TYPES:
            raise PickleError(f"it has tensors of type {getattr(dtype, 'name', dtype)}, which is not supported")
        if not isinstance(key, str) or type(size) is not int or size < 0:
            raise PickleError("it has a storage without a name or a size")
        return _Storage(key, TYPES[name], size)

    def _tensor(self, storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> TorchTensor:
        numbers = [offset, *shape, *strides]
        if not isinstance(storage, _Storage) or any(type(one) is not int or one < 0 for one in numbers):
            raise PickleError("it has a tensor with a wrong shape")
        last = offset + sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True))
        elements = math.prod(shape)
        if elements and (last >= storage.size or elements > storage.size):
            raise PickleError(f"it has a tensor of shape {tuple(shape)} in a storage of {storage.size} numbers")
        return TorchTensor(self, storage, offset, tuple(shape), tuple(strides))

    @contextlib.contextmanager
    def naming(self) -> Iterator[None]:
        """Turn the errors of a damaged file into UserError."""
        try:
            yield
        except PickleError as error:
            raise UserError(f"{self.path}: {error}") from error
        except zipfile.BadZipFile as error:
            if _is_old(self.path):
                raise UserError(f"{self.path} {OLD}") from error
            raise UserError(f"{self.path}: truncated, damaged or not a file of PyTorch ({error})") from error
        except (KeyError, EOFError, OSError, struct.error, NotImplementedError, RuntimeError, ValueError) as error:
            if isinstance(error, OSError) and error.filename:  # not a wrong position, but a file that cannot be opened
                raise
            raise UserError(f"{self.path}: truncated or damaged ({error}): copy it again") from error


def _ordered(items: Any = ()) -> dict[Any, Any]:
    return {key: value for key, value in items if isinstance(key, str)}


def _is_old(path: pathlib.Path) -> bool:
    """Whether a file begins as PyTorch's files did before zip archives, with the pickle of a magic number."""
    with path.open("rb") as file:
        return bytes.fromhex("1950a86a20f9469cfc6c")[::-1] in file.read(32)


def tensors_of(file: TorchFile, content: Any) -> dict[str, TorchTensor]:
    """The tensors of a dict by name; numbers and texts in it are left out.

    Raises UserError if there are none, and if something else is in the dict, which it names.
    """
    found = {}
    for name, value in (content if isinstance(content, dict) else {}).items():
        if isinstance(value, Unknown):
            raise UserError(
                f"{file.path}: {name} is an object of {value.name}; only tensors and plain values are read, and no "
                "code of a checkpoint is run"
            )
        if isinstance(value, TorchTensor) and isinstance(name, str) and name != "__metadata__":
            found[name] = value
    if sum(math.prod(one.shape) for one in found.values()) > COPIES * os.path.getsize(file.path):
        raise UserError(f"{file.path}: its tensors are far larger than the file: damaged, or made to fill the memory")
    if not found:
        raise UserError(
            f"{file.path}: no tensors by name: neither the weights of a model nor a checkpoint of Lightning"
        )
    return found


def shards(index: pathlib.Path) -> list[pathlib.Path]:
    """The files that an index names, such as pytorch_model.bin.index.json; they lie in the folder of the index."""
    names = read_json(index).get("weight_map")
    if not isinstance(names, Mapping) or not all(isinstance(name, str) for name in names.values()):
        raise UserError(f"{index}: no weight_map with the file of each tensor: copy it again")
    files = sorted(set(names.values()))
    if wrong := [name for name in files if pathlib.PurePath(name).name != name or name == ".."]:
        raise UserError(f"{index}: {wrong[0]!r} is not the name of a file beside it")
    if missing := [name for name in files if not (index.parent / name).is_file()]:
        raise UserError(f"{index}: {missing[0]} and {len(missing) - 1} more of its files are missing")
    return [index.parent / name for name in files]
