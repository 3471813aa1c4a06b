"""Tensors in a safetensors file: names, shapes and types are checked before any is read; nothing is unpickled."""

import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
import safetensors
import safetensors.numpy

from nmt_jax.errors import UserError

TYPES = ("F32", "F16", "BF16")


def read_tensors(path: pathlib.Path, wanted: Mapping[str, Sequence[int]]) -> dict[str, np.ndarray]:
    """The float32 values of the tensors of a file that are wanted, by name, with their shapes.

    UserError for a damaged file, and for a tensor that is missing, of another shape, or not of 16 or 32 bit floats.
    """
    with _open(path) as file:
        names = set(file.keys())
        for name, shape in wanted.items():
            if name not in names:
                raise UserError(
                    f"{path}: no tensor {name}: the weights are not of the model that config.json describes"
                )
            tensor = file.get_slice(name)
            if tensor.get_dtype() not in TYPES:
                raise UserError(f"{path}: {name} is of type {tensor.get_dtype()}: save it as one of {', '.join(TYPES)}")
            if tensor.get_shape() != list(shape):
                raise UserError(f"{path}: {name} is {tensor.get_shape()}, but config.json makes it {list(shape)}")
        return {name: file.get_tensor(name).astype(np.float32) for name in wanted}


def tensor_names(path: pathlib.Path) -> list[str]:
    """What a file holds; UserError if it is damaged."""
    with _open(path) as file:
        return list(file.keys())


def write_tensors(path: pathlib.Path, tensors: Mapping[str, np.ndarray]) -> None:
    """Writes a file, whole or not at all."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    contiguous = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    safetensors.numpy.save_file(contiguous, unfinished, metadata={"format": "pt"})
    unfinished.replace(path)


def _open(path: pathlib.Path) -> safetensors.safe_open:
    """UserError for a file that is missing, pickled, in parts, or damaged."""
    if not path.is_file():
        others = sorted(
            other.name for other in path.parent.glob("*") if other.suffix in (".bin", ".pt", ".pth", ".ckpt")
        )
        if others:
            raise UserError(
                f"{path.parent / others[0]}: pickled weights can run code and are not read: convert them once, where "
                "transformers is installed, by AutoModel.from_pretrained(FOLDER).save_pretrained(FOLDER)"
            )
        if path.with_name(f"{path.name}.index.json").is_file():
            raise UserError(f"{path.parent}: weights in several files: save them as one (max_shard_size)")
        raise UserError(f"{path}: no weights")
    try:
        return safetensors.safe_open(path, framework="numpy")
    except (safetensors.SafetensorError, OSError) as error:
        raise UserError(f"{path}: cut short or damaged ({error}): copy it anew") from error
