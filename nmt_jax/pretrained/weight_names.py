"""Our parameters and hyperparameters in Hugging Face's files: reading and writing config.json, names of tensors."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import flax.linen as nn

from nmt_jax.errors import UserError
from nmt_jax.models.layers.bert_stack import Bert
from nmt_jax.pretrained.families import ENCODERS
from nmt_jax.pretrained.family import Family, Tensors

OLD = {".weight": ".gamma", ".bias": ".beta"}  # names in norms of files converted from TensorFlow
LEAVES = {"kernel": "weight", "scale": "weight", "bias": "bias"}

REAL = {"dropout", "attention_dropout", "init_stddev", "epsilon"}  # hyperparameters that need not be whole numbers

# Hyperparameters of training or of this machine, which any config.json leaves open.
OPEN = REAL | {"dtype", "remat", "scan_layers", "first_position"}


def family_of(config: Mapping[str, Any], families: Mapping[str, Family], where: str) -> Family:
    """The family that config.json names. Raises UserError if it is not supported."""
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in families:
        raise UserError(f"{where}: model_type {kind!r} is not supported; supported are {', '.join(families)}")
    return families[kind]


def read_config(config: Mapping[str, Any], family: Family, where: str) -> dict[str, Any]:
    """The fields of the module from the content of config.json; `where` names the file in errors.

    Raises UserError if the content is incomplete, invalid, or describes an unsupported variant.
    """
    given = {key: value for key, value in config.items() if value is not None or key not in family.defaults}
    kind, config = config["model_type"], {**family.defaults, **given}
    for key, other in family.same.items():
        if config.get(key) is None and other in config:
            config[key] = config[other]
    for key, ordinary in family.ordinary.items():
        if config.get(key, ordinary) != ordinary:
            raise UserError(f"{where}: {key} {config[key]!r} is not supported, only {ordinary!r}")
    if missing := [key for key in [*family.fields.values(), *family.choices] if key not in config]:
        raise UserError(f"{where}: {', '.join(missing)} missing: the configuration of the {kind} model is incomplete")
    for field, key in family.fields.items():
        if type(config[key]) not in (int, float):
            raise UserError(f"{where}: {key} {config[key]!r} is not a number")
        if type(config[key]) is not int and field not in REAL:
            raise UserError(f"{where}: {key} {config[key]!r} is not a whole number")
        if field not in REAL and abs(config[key]) >= 2**31:
            raise UserError(f"{where}: {key} {config[key]} is too large")
    for key in ("pad_token_id", "decoder_start_token_id"):
        number = config.get(key)
        if number is not None and (type(number) is not int or not 0 <= number < config["vocab_size"]):
            raise UserError(f"{where}: {key} {number!r} is not an id")
    fields = {field: config[key] for field, key in family.fields.items()} | dict(family.constant)
    for key, choices in family.choices.items():
        value = "|".join(map(str, config[key])) if isinstance(config[key], list) else config[key]
        if isinstance(value, dict) or value not in choices:
            name = "activation" if "activation" in next(iter(choices.values())) else key
            known = ", ".join(map(str, choices))
            raise UserError(f"{where}: {name} {config[key]!r} is not supported; supported are {known}")
        fields |= choices[value]
    if fields.get("embedding_width") == fields["d_model"] and not family.projects:
        fields["embedding_width"] = 0  # no projection
    if family.counts_from_pad:
        fields["first_position"] = pad_id(config, family) + 1
        fields["max_positions"] -= fields["first_position"]
    return fields


def tensor_name(tensors: Tensors, parameter: str) -> str:
    """The name of the tensor that holds a parameter, without prefix; `tensors` are those of a family."""
    module, _, leaf = parameter.rpartition("/")
    if parameter in tensors:
        return str(tensors[parameter])
    number = re.search(r"layers_(\d+)", module)
    name = str(tensors[re.sub(r"layers_\d+", "layers_{}", module)])
    return f"{name.format(*number.groups() if number else ())}.{LEAVES[leaf]}"


def pad_id(config: Mapping[str, Any], family: Family) -> int:
    """The padding id in the content of a config.json that `read_config` accepts."""
    number = config.get("pad_token_id")
    return family.pad_id if number is None else number


def write_config(kind: str, family: Family, model: nn.Module) -> dict[str, Any]:
    """The content of config.json for a model. Raises UserError if a model of this `kind` cannot have these fields."""
    fields = {field.name: getattr(model, field.name) for field in dataclasses.fields(model)}
    wrong = [field for field, value in family.constant.items() if fields[field] != value]
    if isinstance(model, Bert) and bool(model.first_position) != family.counts_from_pad:
        wrong.append("first_position")
    if not fields.get("num_segments", 1) and "num_segments" in family.fields:
        wrong.append("num_segments")
    chosen = {}
    for key, choices in family.choices.items():
        fitting = [value for value, means in choices.items() if means.items() <= fields.items()]
        wrong += [field for field in next(iter(choices.values())) if not fitting]
        chosen[key] = fitting[0] if fitting else None
    known = {*OPEN, *family.fields, *family.constant, *family.present, "parent", "name"}
    known |= {field for choices in family.choices.values() for means in choices.values() for field in means}
    wrong += [field.name for field in dataclasses.fields(model) if field.name not in known and _changed(model, field)]
    if wrong:
        values = ", ".join(f"{field}={fields[field]}" for field in wrong)
        raise UserError(f"a {kind} model cannot have {values}; save it as another kind: {', '.join(ENCODERS)}")
    if fields.get("embedding_width") == 0:
        fields["embedding_width"] = fields["d_model"]
    first = fields.get("first_position", 0)
    fields["max_positions"] += first
    return {
        "model_type": kind,
        "architectures": [family.architecture],
        **{key: fields[field] for field, key in family.fields.items()},
        **chosen,
        **{key: value for key, value in family.ordinary.items() if key in family.defaults},
        "pad_token_id": first - 1 if family.counts_from_pad else family.pad_id,
        "torch_dtype": "float32",
    }


def _changed(model: nn.Module, field: dataclasses.Field[Any]) -> bool:
    """Whether a field has another value than by default."""
    return field.default is not dataclasses.MISSING and getattr(model, field.name) != field.default


def candidates(family: Family, parameter: str, prefix: str = "") -> tuple[str, ...]:
    """The names that the tensor of a parameter may have, the usual one first.

    `encoder.layer.0.attention.self.query.weight` for `layers_0/query/kernel` of BERT; prefix: before it.
    """
    module, _, leaf = parameter.rpartition("/")
    whole, layer = (re.sub(r"layers_\d+(?=/|$)", "layers_{}", name) for name in (parameter, module))
    names = family.tensors[whole if whole in family.tensors else layer]
    number = re.search(r"layers_(\d+)/", parameter)
    ending = "" if whole in family.tensors else f".{LEAVES[leaf]}"
    found = []
    for name in (names,) if isinstance(names, str) else names:
        stem = name.removeprefix("/") if name.startswith("/") else prefix + name
        found.append(stem.format(*number.groups() if number else ()))
    if "norm" in module:
        return tuple(name + old for name in found for old in (ending, OLD[ending]))
    return tuple(name + ending for name in found)
