"""Export of the parameters of any model to a safetensors file, and reading them back."""

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
    """Writes FOLDER/model.safetensors; tensors have dotted parameter names, such as `encoder_0.ffn.hidden.kernel`."""
    flat = flax.traverse_util.flatten_dict(jax.tree.map(np.asarray, params), sep=".")
    write_tensors(folder / FILE, flat)


def load(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The parameters in FOLDER/model.safetensors as a nested dict. Raises UserError if the file is damaged."""
    path = pathlib.Path(folder) / FILE
    tensor_names(path)
    return flax.traverse_util.unflatten_dict(safetensors.numpy.load_file(path), sep=".")
