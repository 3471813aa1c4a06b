"""The names of our parameters and hyperparameters in Hugging Face's files of BERT and related models."""

import dataclasses
import functools
import re
from collections.abc import Mapping
from typing import Any

from nmt_jax.errors import UserError
from nmt_jax.models.layers.bert_stack import Bert

ACTIVATIONS = {"gelu": "gelu_erf", "gelu_new": "gelu", "gelu_pytorch_tanh": "gelu", "relu": "relu"}

# Tensor names by parameter; `weight` and `bias` are appended, and `{}` stands for the number of the layer.
BERT = {
    "embeddings/word": "embeddings.word_embeddings.weight",
    "embeddings/position": "embeddings.position_embeddings.weight",
    "embeddings/segment": "embeddings.token_type_embeddings.weight",
    "embeddings/norm": "embeddings.LayerNorm",
    "layers_{}/query": "encoder.layer.{}.attention.self.query",
    "layers_{}/key": "encoder.layer.{}.attention.self.key",
    "layers_{}/value": "encoder.layer.{}.attention.self.value",
    "layers_{}/attention_output": "encoder.layer.{}.attention.output.dense",
    "layers_{}/attention_norm": "encoder.layer.{}.attention.output.LayerNorm",
    "layers_{}/ffn_hidden": "encoder.layer.{}.intermediate.dense",
    "layers_{}/ffn_output": "encoder.layer.{}.output.dense",
    "layers_{}/ffn_norm": "encoder.layer.{}.output.LayerNorm",
    "pooler_dense": "pooler.dense",
}
DISTILBERT = {
    "embeddings/word": "embeddings.word_embeddings.weight",
    "embeddings/position": "embeddings.position_embeddings.weight",
    "embeddings/norm": "embeddings.LayerNorm",
    "layers_{}/query": "transformer.layer.{}.attention.q_lin",
    "layers_{}/key": "transformer.layer.{}.attention.k_lin",
    "layers_{}/value": "transformer.layer.{}.attention.v_lin",
    "layers_{}/attention_output": "transformer.layer.{}.attention.out_lin",
    "layers_{}/attention_norm": "transformer.layer.{}.sa_layer_norm",
    "layers_{}/ffn_hidden": "transformer.layer.{}.ffn.lin1",
    "layers_{}/ffn_output": "transformer.layer.{}.ffn.lin2",
    "layers_{}/ffn_norm": "transformer.layer.{}.output_layer_norm",
}
LEAVES = {"kernel": "weight", "scale": "weight", "bias": "bias"}

# Keys of config.json by hyperparameter.
BERT_FIELDS = {
    "vocab_size": "vocab_size",
    "num_layers": "num_hidden_layers",
    "d_model": "hidden_size",
    "d_ff": "intermediate_size",
    "num_heads": "num_attention_heads",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "init_stddev": "initializer_range",
    "epsilon": "layer_norm_eps",
    "num_segments": "type_vocab_size",
}
DISTILBERT_FIELDS = {
    "vocab_size": "vocab_size",
    "num_layers": "n_layers",
    "d_model": "dim",
    "d_ff": "hidden_dim",
    "num_heads": "n_heads",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "init_stddev": "initializer_range",
}


@dataclasses.dataclass(frozen=True)
class Family:
    """The names for one `model_type`: class, tensors, config keys, and the key of the activation."""

    architecture: str
    tensors: Mapping[str, str]
    fields: Mapping[str, str]
    activation: str
    constant: Mapping[str, Any]  # hyperparameters that config.json does not contain
    pad_id: int = 0
    counts_from_pad: bool = False  # the first position is pad_id + 1


_bert = functools.partial(Family, tensors=BERT, fields=BERT_FIELDS, activation="hidden_act", constant={})
_distilbert = {"num_segments": 0, "epsilon": 1e-12, "pooler": False}
FAMILIES = {
    "bert": _bert("BertModel"),
    "roberta": _bert("RobertaModel", pad_id=1, counts_from_pad=True),
    "xlm-roberta": _bert("XLMRobertaModel", pad_id=1, counts_from_pad=True),
    "camembert": _bert("CamembertModel", pad_id=1, counts_from_pad=True),
    "distilbert": Family("DistilBertModel", DISTILBERT, DISTILBERT_FIELDS, "activation", _distilbert),
    "bleurt": _bert("BleurtModel"),
}
ORDINARY = {"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False}


def read_config(config: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields of `Bert` from the content of config.json; `where` names the file in errors.

    Raises UserError if the model is of an unsupported kind or the content is incomplete or invalid.
    """
    kind = config.get("model_type")
    if kind not in FAMILIES:
        raise UserError(f"{where}: model_type {kind!r} is not supported; supported are {', '.join(FAMILIES)}")
    family = FAMILIES[kind]
    for key, ordinary in ORDINARY.items():
        if config.get(key, ordinary) != ordinary:
            raise UserError(f"{where}: {key} {config[key]!r} is not supported, only {ordinary!r}")
    keys = [*family.fields.values(), "max_position_embeddings", family.activation]  # all but the last are numbers
    if missing := [key for key in keys if key not in config]:
        raise UserError(f"{where}: {', '.join(missing)} missing: the configuration of the {kind} model is incomplete")
    if wrong := [key for key in keys[:-1] if type(config[key]) not in (int, float)]:
        raise UserError(f"{where}: {wrong[0]} {config[wrong[0]]!r} is not a number")
    if type(config.get("pad_token_id", 0)) not in (int, type(None)):
        raise UserError(f"{where}: pad_token_id {config['pad_token_id']!r} is not an id")
    if config[family.activation] not in ACTIVATIONS:
        found = config[family.activation]
        raise UserError(f"{where}: activation {found!r} is not supported; supported are {', '.join(ACTIVATIONS)}")
    first = pad_id(config) + 1 if family.counts_from_pad else 0
    return {
        **{field: config[key] for field, key in family.fields.items()},
        **family.constant,
        "activation": ACTIVATIONS[config[family.activation]],
        "max_positions": config["max_position_embeddings"] - first,
        "first_position": first,
    }


def pad_id(config: Mapping[str, Any]) -> int:
    """The padding id in the content of a config.json that `read_config` accepts."""
    number = config.get("pad_token_id")
    return FAMILIES[config["model_type"]].pad_id if number is None else number


def write_config(kind: str, model: Bert) -> dict[str, Any]:
    """The content of config.json for a model. Raises UserError if a model of this `kind` cannot have these fields."""
    family = FAMILIES[kind]
    wrong = [field for field, value in family.constant.items() if getattr(model, field) != value]
    if bool(model.first_position) != family.counts_from_pad:
        wrong.append("first_position")
    if not model.num_segments and "num_segments" in family.fields:
        wrong.append("num_segments")
    if wrong:
        values = ", ".join(f"{field}={getattr(model, field)}" for field in wrong)
        raise UserError(f"a {kind} model cannot have {values}; save it as another kind: {', '.join(FAMILIES)}")
    activations = {name: key for key, name in reversed(ACTIVATIONS.items())}
    return {
        "model_type": kind,
        "architectures": [family.architecture],
        **{key: getattr(model, field) for field, key in family.fields.items()},
        family.activation: activations[model.activation],
        "max_position_embeddings": model.first_position + model.max_positions,
        "pad_token_id": model.first_position - 1 if family.counts_from_pad else family.pad_id,
        "torch_dtype": "float32",
    }


def tensor_name(kind: str, parameter: str) -> str:
    """The tensor of a parameter: `encoder.layer.0.attention.self.query.weight` for `layers_0/query/kernel`."""
    tensors = FAMILIES[kind].tensors
    if parameter in tensors:
        return tensors[parameter]
    module, _, leaf = parameter.rpartition("/")
    number = re.match(r"layers_(\d+)/", module)
    pattern = re.sub(r"^layers_\d+/", "layers_{}/", module)
    return f"{tensors[pattern].format(*number.groups() if number else ())}.{LEAVES[leaf]}"
