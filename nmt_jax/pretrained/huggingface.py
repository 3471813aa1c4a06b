"""Folders in Hugging Face's format: reading and writing BERT, RoBERTa, DistilBERT and related models."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
from typing import Any

import flax.traverse_util
import jax
import numpy as np

from nmt_jax.errors import UserError
from nmt_jax.models.layers.bert_stack import Bert
from nmt_jax.pretrained.model_files import read_json, read_tensors, tensor_names, write_tensors
from nmt_jax.pretrained.tokenizer import Tokenizer, longest_text
from nmt_jax.pretrained.weight_names import pad_id, read_config, tensor_name, write_config
from nmt_jax.storage.files import whole_file

UNUSED_IDS = 1024  # rows that a word table may have beyond the vocabulary, as padding or in reserve


@dataclasses.dataclass(frozen=True, eq=False)
class Pretrained:
    """A model with its parameters and tokenizer; kind: `model_type`; max_length: of a row, in tokens."""

    kind: str
    model: Bert
    params: dict[str, Any]
    tokenizer: Tokenizer
    max_length: int


def load_folder(folder: pathlib.Path, dtype: str = "float32") -> Pretrained:
    """Reads config.json, model.safetensors, and tokenizer.json or vocab.txt.

    dtype: of the matrix products, float32 or bfloat16. Raises UserError if a file is missing or damaged, if a tensor
    has an unexpected shape, or if the files do not belong together.
    """
    path = folder / "config.json"
    config = read_json(path)
    fields = read_config(config, str(path))
    kind, weights = config["model_type"], folder / "model.safetensors"
    names = tensor_names(weights)
    word = tensor_name(kind, "embeddings/word")
    prefixes = [name.removesuffix(word) for name in names if name.endswith(word)]  # "bert." below a head
    if len(prefixes) != 1:
        raise UserError(
            f"{weights}: {len(prefixes)} tensors named {word}, expected one: not the weights of a {kind} model"
        )
    prefix = prefixes[0]
    try:
        model = Bert(**{"pooler": f"{prefix}pooler.dense.weight" in names, **fields}, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise UserError(f"{path}: {error}") from error
    if model.num_layers > len(names):  # before a program with that many layers is traced
        raise UserError(f"{path}: {model.num_layers} layers, but {weights.name} has only {len(names)} tensors")
    tokenizer = Tokenizer.load(folder)
    if not 0 <= model.vocab_size - len(tokenizer) < UNUSED_IDS:
        raise UserError(
            f"{folder}: the tokenizer has {len(tokenizer)} pieces, but the weights have {model.vocab_size}: they are "
            "not of the same model"
        )
    pad = tokenizer.pieces([pad_id(config)])[0]
    if "pad" not in pad.lower():
        raise UserError(
            f"{folder}: the padding id of the {kind} model is piece {pad!r}: the tokenizer is of another model"
        )
    params = _read_params(weights, kind, prefix, names, model)
    return Pretrained(kind, model, params, tokenizer, int(min(model.max_positions, longest_text(folder))))


def save(pretrained: Pretrained, folder: str | os.PathLike[str]) -> None:
    """Writes a folder that `load_folder`, and Hugging Face's `AutoModel` and `AutoTokenizer`, read; in float32."""
    folder = pathlib.Path(folder)
    config = write_config(pretrained.kind, pretrained.model)
    with whole_file(folder / "config.json") as file:
        file.write(json.dumps(config, indent=2).encode())
    pretrained.tokenizer.save(folder, pretrained.max_length)
    tensors = {
        tensor_name(pretrained.kind, name): _transposed(name, np.asarray(value, np.float32))
        for name, value in flax.traverse_util.flatten_dict(pretrained.params, sep="/").items()
    }
    write_tensors(folder / "model.safetensors", tensors)


def _transposed(name: str, value: np.ndarray) -> np.ndarray:
    """Converts between our kernels [in, out] and PyTorch's weights [out, in]; other arrays stay as they are."""
    return value.T if name.endswith("/kernel") else value


def _read_params(path: pathlib.Path, kind: str, prefix: str, names: list[str], model: Bert) -> dict[str, Any]:
    """The parameters of a model. Raises UserError if any are missing, have another shape, or are left over."""
    ids = jax.ShapeDtypeStruct((1, 1), np.int32)
    shapes = jax.eval_shape(model.init, jax.random.key(0), ids, jax.ShapeDtypeStruct((1, 1), bool))["params"]
    flat = flax.traverse_util.flatten_dict(shapes, sep="/")
    old = {"weight": "gamma", "bias": "beta"}  # names in norms of files converted from TensorFlow
    known, tensors = set(names), {}
    for name in flat:
        tensor = prefix + tensor_name(kind, name)
        stem, _, leaf = tensor.rpartition(".")
        tensors[name] = f"{stem}.{old[leaf]}" if tensor not in known and f"{stem}.{old[leaf]}" in known else tensor
    body = tuple(prefix + part for part in ("embeddings.", "encoder.", "transformer."))
    left = {name for name in names if name.startswith(body)} - set(tensors.values())
    left -= {f"{prefix}embeddings.{buffer}" for buffer in ("position_ids", "token_type_ids")}
    if left:
        raise UserError(f"{path}: {min(left)} and {len(left) - 1} more do not belong to the model in config.json")
    expected = {
        tensors[name]: shape.shape[::-1] if name.endswith("/kernel") else shape.shape for name, shape in flat.items()
    }
    values = read_tensors(path, expected)
    params = {name: np.ascontiguousarray(_transposed(name, values[tensors[name]])) for name in flat}
    return flax.traverse_util.unflatten_dict(params, sep="/")
