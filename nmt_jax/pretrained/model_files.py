"""Files of models: JSON and safetensors. Names, shapes and types are checked first; nothing is unpickled."""

import contextlib
import json
import math
import pathlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import safetensors

from nmt_jax.errors import UserError
from nmt_jax.storage.files import whole_file

TYPES = ("F32", "F16", "BF16")
WRITTEN = {  # types of tensors in a file, by NumPy's names
    **{"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "bool": "BOOL", "uint8": "U8"},
    **{f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"U{bits}" for bits in (16, 32, 64)},
}


def read_json(path: pathlib.Path) -> dict:
    """The JSON object in a file. Raises UserError if there is none."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: not the folder of a model") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON ({error}): copy it again") from error
    if not isinstance(content, dict):
        raise UserError(f"{path}: not a JSON object: copy it again")
    return content


def read_tensors(path: pathlib.Path, shapes: Mapping[str, Sequence[int]]) -> dict[str, np.ndarray]:
    """Tensors of a file, or of its parts, as float32, by name; `shapes` gives the names and the expected shapes.

    Raises UserError if a file is damaged, or if a tensor is missing, has another shape, or is not of 16-bit or 32-bit
    floats.
    """
    with contextlib.ExitStack() as stack:
        files = _files(path, stack)
        for name, shape in shapes.items():
            if name not in files:
                raise UserError(f"{path}: no tensor {name}: the weights do not match config.json")
            tensor = files[name].get_slice(name)
            if tensor.get_dtype() not in TYPES:
                raise UserError(f"{path}: {name} is of type {tensor.get_dtype()}; save it as {' or '.join(TYPES)}")
            if tensor.get_shape() != list(shape):
                raise UserError(f"{path}: {name} has shape {tensor.get_shape()}, but config.json implies {list(shape)}")
        return {name: files[name].get_tensor(name).astype(np.float32) for name in shapes}


def tensor_names(path: pathlib.Path) -> list[str]:
    """The names of the tensors in a file, or in its parts. Raises UserError if one is damaged."""
    with contextlib.ExitStack() as stack:
        return list(_files(path, stack))


def has_weights(folder: pathlib.Path) -> bool:
    """Whether a folder has model.safetensors, whole or in parts."""
    path = folder / "model.safetensors"
    return path.is_file() or _index(path).is_file()


def _index(path: pathlib.Path) -> pathlib.Path:
    """The file that says which part has which tensor."""
    return path.with_name(f"{path.name}.index.json")


def _files(path: pathlib.Path, stack: contextlib.ExitStack) -> dict[str, Any]:
    """The opened file of each tensor by name. Raises UserError if a part is missing or the index is wrong."""
    index = _index(path)
    if path.is_file() or not index.is_file():
        file = stack.enter_context(_open(path))
        return dict.fromkeys(file.keys(), file)
    places = read_json(index).get("weight_map")
    if not isinstance(places, dict) or not all(_is_part(part) for part in places.values()):
        raise UserError(f"{index}: no 'weight_map' that names files of this folder: copy it again")
    parts = {part: stack.enter_context(_open(path.with_name(part))) for part in dict.fromkeys(places.values())}
    known = {part: set(file.keys()) for part, file in parts.items()}
    if wrong := [name for name, part in places.items() if name not in known[part]]:
        raise UserError(f"{path.with_name(places[wrong[0]])}: no tensor {wrong[0]}, which {index.name} says it has")
    return {name: parts[part] for name, part in places.items()}


def _is_part(name: object) -> bool:
    """Whether a name is that of a file in the same folder."""
    return isinstance(name, str) and name.endswith(".safetensors") and name == pathlib.PurePath(name).name


def write_tensors(path: pathlib.Path, tensors: Mapping[str, Any]) -> None:
    """Writes a file atomically, tensor by tensor.

    tensors: arrays, or objects with `shape` and `dtype` that become arrays one at a time, by `numpy.asarray`.
    """
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))  # keeps numbers aligned
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name in order:
        dtype, shape, start = tensors[name].dtype, list(tensors[name].shape), end
        end += math.prod(shape) * dtype.itemsize
        header[name] = {"dtype": WRITTEN[dtype.name], "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with whole_file(path) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            file.write(np.ascontiguousarray(tensors[name]).reshape(-1).view(np.uint8).data)


def _open(path: pathlib.Path) -> safetensors.safe_open:
    """Opens a file. Raises UserError if it is missing, damaged, or has another format."""
    if not path.is_file():
        if pickled := sorted(one for one in path.parent.glob("*") if one.suffix in (".bin", ".pt", ".pth", ".ckpt")):
            raise UserError(
                f"{pickled[0]}: pickled weights can run code and are not read here; convert them once: "
                f"nmt-jax convert --input={path.parent} --output=FOLDER"
            )
        raise UserError(f"{path}: no such file")
    try:
        return safetensors.safe_open(path, framework="numpy")
    except (safetensors.SafetensorError, OSError) as error:
        raise UserError(f"{path}: truncated or damaged ({error}): copy it again") from error
