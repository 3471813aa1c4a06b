"""Folders in Hugging Face's format: reading the models of `families`, and writing encoders."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import flax.linen as nn
import flax.traverse_util
import jax
import numpy as np

from nmt_jax.errors import UserError
from nmt_jax.models.layers.encoder_stack import EncoderStack
from nmt_jax.pretrained.families import ENCODERS
from nmt_jax.pretrained.family import Family
from nmt_jax.pretrained.model_files import read_json, read_tensors, tensor_names, write_tensors
from nmt_jax.pretrained.tokenizer import Tokenizer, longest_text
from nmt_jax.pretrained.weight_names import candidates, family_of, pad_id, read_config, write_config
from nmt_jax.storage.files import whole_file

UNUSED_IDS = 1024  # rows that a word table may have beyond the vocabulary, as padding or in reserve


@dataclasses.dataclass(frozen=True, eq=False)
class Pretrained:
    """A model with its parameters and tokenizer; kind: `model_type`; max_length: of a row, in tokens."""

    kind: str
    model: Any  # an EncoderStack; `Bert`, where its fields are read
    params: dict[str, Any]
    tokenizer: Tokenizer
    max_length: int

    def first_layers(self, count: int) -> Pretrained:
        """The same encoder with its first `count` layers only, at least 1, and without a pooler.

        Raises UserError if it has fewer layers.
        """
        have = self.model.num_layers
        if count > have:
            raise UserError(f"the encoder has {have} layers; keep at most {have}")
        kept = {name: value for name, value in self.params.items() if name != "pooler_dense"}
        kept = {name: value for name, value in kept.items() if _layer_number(name) < count}
        fields = {"num_layers": count} | ({"pooler": False} if hasattr(self.model, "pooler") else {})
        return dataclasses.replace(self, model=self.model.clone(**fields), params=kept)


def _layer_number(name: str) -> int:
    """The number of the layer that a group of parameters belongs to; -1 for others."""
    group, _, number = name.rpartition("_")
    return int(number) if group == "layers" else -1


def load_folder(folder: pathlib.Path, dtype: str = "float32") -> Pretrained:
    """Reads config.json, model.safetensors, and the tokenizer of an encoder.

    dtype: of the matrix products, float32 or bfloat16. Raises UserError if a file is missing or damaged, if a tensor
    has an unexpected shape, or if the files do not belong together.
    """
    return read_folder(folder, ENCODERS, dtype)[0]


def read_folder(folder: pathlib.Path, families: Mapping[str, Family], dtype: str) -> tuple[Pretrained, dict[str, Any]]:
    """A model of one of the families, and the content of config.json; arguments and errors as for `load_folder`."""
    path, weights = folder / "config.json", folder / "model.safetensors"
    config = read_json(path)
    family = family_of(config, families, str(path))
    fields, kind = read_config(config, family, str(path)), config["model_type"]
    names = tensor_names(weights)
    prefix = _prefix(weights, family, kind, names)
    known = set(names)
    for field, (parameter, value) in family.present.items():
        found = any(name in known for name in candidates(family, parameter, prefix))
        fields[field] = value if found else not value
    try:
        model = family.module(**fields, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise UserError(f"{path}: {error}") from error
    layers = max(value for field, value in fields.items() if field in ("num_layers", "num_decoder_layers"))
    if layers > len(names):  # before a program with that many layers is traced
        raise UserError(f"{path}: {layers} layers, but {weights.name} has only {len(names)} tensors")
    tokenizer = Tokenizer.load(folder, kind)
    if not 0 <= fields["vocab_size"] - len(tokenizer) < UNUSED_IDS:
        raise UserError(
            f"{folder}: the tokenizer has {len(tokenizer)} pieces, but the weights have {fields['vocab_size']}: they "
            "are not of the same model"
        )
    pad = tokenizer.pieces([pad_id(config, family)])[0]
    if "pad" not in pad.lower():
        raise UserError(
            f"{folder}: the padding id of the {kind} model is piece {pad!r}: the tokenizer is of another model"
        )
    params = _read_params(weights, family, prefix, known, model)
    max_length = int(min(fields["max_positions"], longest_text(folder)))
    return Pretrained(kind, model, params, tokenizer, max_length), config


def save(pretrained: Pretrained, folder: str | os.PathLike[str]) -> None:
    """Writes a folder that `load_folder`, and Hugging Face's `AutoModel` and `AutoTokenizer`, read; in float32."""
    folder, family = pathlib.Path(folder), ENCODERS[pretrained.kind]
    config = write_config(pretrained.kind, family, pretrained.model)
    with whole_file(folder / "config.json") as file:
        file.write(json.dumps(config, indent=2).encode())
    pretrained.tokenizer.save(folder, pretrained.max_length)
    tensors = {
        candidates(family, name)[0]: _transposed(name, np.asarray(value, np.float32))
        for name, value in flax.traverse_util.flatten_dict(pretrained.params, sep="/").items()
    }
    write_tensors(folder / "model.safetensors", tensors)


def _prefix(weights: pathlib.Path, family: Family, kind: str, names: list[str]) -> str:
    """What precedes the names of the model's tensors: "bert." below a head. Raises UserError if they are not there."""
    word = next(name for name in family.tensors if name.endswith("embeddings/word"))
    tables = candidates(family, word)
    for table in tables:
        prefixes = [name.removesuffix(table) for name in names if name == table or name.endswith(f".{table}")]
        if len(prefixes) == 1:
            return prefixes[0]
        if prefixes:
            break
    raise UserError(
        f"{weights}: {len(prefixes)} tensors named {tables[0]}, expected one: not the weights of a {kind} model"
    )


def _transposed(name: str, value: np.ndarray) -> np.ndarray:
    """Converts between our kernels [in, out] and PyTorch's weights [out, in]; other arrays stay as they are."""
    return value.T if name.endswith("/kernel") else value


def _read_params(path: pathlib.Path, family: Family, prefix: str, known: set[str], model: nn.Module) -> dict[str, Any]:
    """The parameters of a model. Raises UserError if any are missing, have another shape, or are left over."""
    ids, mask = jax.ShapeDtypeStruct((1, 1), np.int32), jax.ShapeDtypeStruct((1, 1), bool)
    inputs = (ids, mask) if isinstance(model, EncoderStack) else (ids, mask, ids)
    flat = flax.traverse_util.flatten_dict(jax.eval_shape(model.init, jax.random.key(0), *inputs)["params"], sep="/")
    tensors = {}
    for name in flat:
        possible = candidates(family, name, prefix)
        tensors[name] = next((one for one in possible if one in known), possible[0])
    body = tuple(prefix + part for part in ("embeddings.", "encoder.", "decoder.", "transformer."))
    if isinstance(model, EncoderStack):
        body = tuple(part for part in body if not part.endswith("decoder."))
    left = {name for name in known if name.startswith(body) and not name.endswith(family.ignored)}
    left -= set(tensors.values())
    if left:
        raise UserError(f"{path}: {min(left)} and {len(left) - 1} more do not belong to the model in config.json")
    expected = {
        tensors[name]: shape.shape[::-1] if name.endswith("/kernel") else shape.shape for name, shape in flat.items()
    }
    values = read_tensors(path, expected)
    params = {name: np.ascontiguousarray(_transposed(name, values[tensors[name]])) for name in flat}
    return flax.traverse_util.unflatten_dict(params, sep="/")
