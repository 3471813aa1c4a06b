"""The parameters of any model as named tensors in one file (safetensors), to and fro."""

import os
import pathlib
from typing import Any

import flax.traverse_util
import jax
import numpy as np
import safetensors.numpy

from nmt_jax.pretrained.model_files import tensor_names, write_tensors

FILE = "model.safetensors"


def write(params: Any, folder: pathlib.Path) -> None:
    """Writes FOLDER/model.safetensors: each parameter by its dotted name, `encoder_0.ffn.hidden.kernel`, as it is."""
    flat = flax.traverse_util.flatten_dict(jax.tree.map(np.asarray, params), sep=".")
    write_tensors(folder / FILE, flat)


def load(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """FOLDER/model.safetensors -> the parameters, nested as the model has them; UserError for a damaged file."""
    path = pathlib.Path(folder) / FILE
    tensor_names(path)
    return flax.traverse_util.unflatten_dict(safetensors.numpy.load_file(path), sep=".")
