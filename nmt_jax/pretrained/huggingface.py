"""BERT and its kin in a Hugging Face folder -> model, parameters and tokenizer, and back."""

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
from nmt_jax.pretrained.tokenizer import Tokenizer, longest_text, read_json
from nmt_jax.pretrained.weight_names import pad_id, read_config, tensor_name, write_config
from nmt_jax.pretrained.weights import read_tensors, tensor_names, write_tensors

UNUSED_IDS = 1024  # rows that a word table may have beyond its vocabulary, rounded up or kept for later


@dataclasses.dataclass(frozen=True, eq=False)
class Pretrained:
    """A model of a `kind` (`model_type`), its parameters, its tokenizer, and the longest row that it reads."""

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
        raise UserError(f"{weights}: {len(prefixes)} tensors {word}: not the weights of one {kind} model")
    prefix = prefixes[0]
    try:
        model = Bert(**{"pooler": f"{prefix}pooler.dense.weight" in names, **fields}, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise UserError(f"{path}: {error}") from error
    tokenizer = Tokenizer.load(folder)
    if not 0 <= model.vocab_size - len(tokenizer) < UNUSED_IDS:
        raise UserError(
            f"{folder}: the tokenizer has {len(tokenizer)} pieces and the weights {model.vocab_size}: they are not of "
            "the same model"
        )
    pad = tokenizer.pieces([pad_id(config)])[0]
    if "pad" not in pad.lower():
        raise UserError(f"{folder}: {pad!r} is where a {kind} model pads: the tokenizer is of another model")
    params = _read_params(weights, kind, prefix, names, model)
    return Pretrained(kind, model, params, tokenizer, int(min(model.max_positions, longest_text(folder))))


def save(pretrained: Pretrained, folder: str | os.PathLike[str]) -> None:
    """Writes a folder that `load` and Hugging Face's `AutoModel` and `AutoTokenizer` read; parameters as float32."""
    folder = pathlib.Path(folder)
    config = write_config(pretrained.kind, pretrained.model)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    pretrained.tokenizer.save(folder, pretrained.max_length)
    tensors = {
        tensor_name(pretrained.kind, name): _turned(name, np.asarray(value, np.float32))
        for name, value in flax.traverse_util.flatten_dict(pretrained.params, sep="/").items()
    }
    write_tensors(folder / "model.safetensors", tensors)


def _turned(name: str, value: np.ndarray) -> np.ndarray:
    """Kernels are [in, out] here and [out, in] there."""
    return value.T if name.endswith("/kernel") else value


def _read_params(path: pathlib.Path, kind: str, prefix: str, names: list[str], model: Bert) -> dict[str, Any]:
    """The parameters of a model; UserError for those that are missing, of another shape, or left over."""
    ids = jax.ShapeDtypeStruct((1, 1), np.int32)
    shapes = jax.eval_shape(model.init, jax.random.key(0), ids, jax.ShapeDtypeStruct((1, 1), bool))["params"]
    flat = flax.traverse_util.flatten_dict(shapes, sep="/")
    old = {"weight": "gamma", "bias": "beta"}  # of norms, in files converted from TensorFlow
    known, tensors = set(names), {}
    for name in flat:
        tensor = prefix + tensor_name(kind, name)
        stem, _, leaf = tensor.rpartition(".")
        tensors[name] = f"{stem}.{old[leaf]}" if tensor not in known and f"{stem}.{old[leaf]}" in known else tensor
    body = tuple(prefix + part for part in ("embeddings.", "encoder.", "transformer."))
    left = {name for name in names if name.startswith(body)} - set(tensors.values())
    left -= {f"{prefix}embeddings.{buffer}" for buffer in ("position_ids", "token_type_ids")}
    if left:
        raise UserError(f"{path}: {min(left)} and {len(left) - 1} more have no place in the model of config.json")
    wanted = {
        tensors[name]: shape.shape[::-1] if name.endswith("/kernel") else shape.shape for name, shape in flat.items()
    }
    values = read_tensors(path, wanted)
    params = {name: np.ascontiguousarray(_turned(name, values[tensors[name]])) for name in flat}
    return flax.traverse_util.unflatten_dict(params, sep="/")
