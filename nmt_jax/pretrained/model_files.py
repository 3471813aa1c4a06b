"""Files of models: JSON and safetensors. Names, shapes and types are checked first; nothing is unpickled."""

import json
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
import safetensors
import safetensors.numpy

from nmt_jax.errors import UserError
from nmt_jax.storage.files import whole_file

TYPES = ("F32", "F16", "BF16")


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
    """Tensors of a file as float32, by name; `shapes` gives the names and the expected shapes.

    Raises UserError if the file is damaged, or if a tensor is missing, has another shape, or is not of 16-bit or 32-bit
    floats.
    """
    with _open(path) as file:
        names = set(file.keys())
        for name, shape in shapes.items():
            if name not in names:
                raise UserError(f"{path}: no tensor {name}: the weights do not match config.json")
            tensor = file.get_slice(name)
            if tensor.get_dtype() not in TYPES:
                raise UserError(f"{path}: {name} is of type {tensor.get_dtype()}; save it as {' or '.join(TYPES)}")
            if tensor.get_shape() != list(shape):
                raise UserError(f"{path}: {name} has shape {tensor.get_shape()}, but config.json implies {list(shape)}")
        return {name: file.get_tensor(name).astype(np.float32) for name in shapes}


def tensor_names(path: pathlib.Path) -> list[str]:
    """The names of the tensors in a file. Raises UserError if it is damaged."""
    with _open(path) as file:
        return list(file.keys())


def write_tensors(path: pathlib.Path, tensors: Mapping[str, np.ndarray]) -> None:
    """Writes a file atomically."""
    contiguous = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    with whole_file(path) as file:
        file.write(safetensors.numpy.save(contiguous, metadata={"format": "pt"}))


def _open(path: pathlib.Path) -> safetensors.safe_open:
    """Opens a file. Raises UserError if it is missing, damaged, or has another format."""
    if not path.is_file():
        if pickled := sorted(one for one in path.parent.glob("*") if one.suffix in (".bin", ".pt", ".pth", ".ckpt")):
            raise UserError(
                f"{pickled[0]}: pickled weights can run code and are not read; convert them once, where "
                "transformers is installed, with AutoModel.from_pretrained(FOLDER).save_pretrained(FOLDER)"
            )
        if path.with_name(f"{path.name}.index.json").is_file():
            raise UserError(f"{path.parent}: the weights are in several files; save them as one (max_shard_size)")
        raise UserError(f"{path}: no such file")
    try:
        return safetensors.safe_open(path, framework="numpy")
    except (safetensors.SafetensorError, OSError) as error:
        raise UserError(f"{path}: truncated or damaged ({error}): copy it again") from error
