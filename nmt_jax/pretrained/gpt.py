"""GPT (Radford et al., 2018) and GPT-2 (2019) in Hugging Face's format: names of tensors, reading and writing.

The tensors of products have the layout [in, out] of our kernels. Query, key and value are one tensor of three parts.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import flax.traverse_util
import jax
import numpy as np

from nmt_jax.data.vocabulary.vocab import EOS
from nmt_jax.errors import UserError
from nmt_jax.models.gpt import Model
from nmt_jax.pretrained.family import Family
from nmt_jax.pretrained.huggingface import UNUSED_IDS, Pretrained
from nmt_jax.pretrained.model_files import read_json, read_tensors, tensor_names, write_tensors
from nmt_jax.pretrained.tokenizer import Tokenizer, longest_text
from nmt_jax.pretrained.weight_names import family_of, read_config, tensor_name
from nmt_jax.storage.files import whole_file

PREFIX = "transformer."  # of the names below a language-modelling head
BUFFERS = (".attn.bias", ".attn.masked_bias")  # causal masks in older files
PARTS = ("query", "key", "value")
LAYERS = {
    "layers_{}/self_attention/output": "h.{}.attn.c_proj",
    "layers_{}/self_attention_residual/layer_norm": "h.{}.ln_1",
    "layers_{}/ffn/hidden": "h.{}.mlp.c_fc",
    "layers_{}/ffn/output": "h.{}.mlp.c_proj",
    "layers_{}/ffn_residual/layer_norm": "h.{}.ln_2",
    **{f"layers_{{}}/self_attention/{part}": "h.{}.attn.c_attn" for part in PARTS},
}
FIELDS = {
    "vocab_size": "vocab_size",
    "num_layers": "n_layer",
    "d_model": "n_embd",
    "d_ff": "n_inner",
    "num_heads": "n_head",
    "max_positions": "n_positions",
    "epsilon": "layer_norm_epsilon",
}
GELU = {"gelu_pytorch_tanh": {"activation": "gelu"}, "gelu_new": {"activation": "gelu"}, "relu": {"activation": "relu"}}
FAMILIES: dict[str, Family] = {
    "gpt2": Family(
        architecture="GPT2LMHeadModel",
        tensors={**LAYERS, "embedding/table": "wte.weight", "position/table": "wpe.weight", "final_norm": "ln_f"},
        fields=FIELDS,
        choices={"activation_function": {**GELU, "gelu": {"activation": "gelu_erf"}}},
        module=Model,
        constant={"norm": "pre", "scale_embeddings": False},
        ordinary={
            "scale_attn_weights": True,
            "scale_attn_by_inverse_layer_idx": False,
            "add_cross_attention": False,
            "tie_word_embeddings": True,
        },
        defaults={"activation_function": "gelu_new", "layer_norm_epsilon": 1e-5},
    ),
    "openai-gpt": Family(
        architecture="OpenAIGPTLMHeadModel",
        tensors={**LAYERS, "embedding/table": "tokens_embed.weight", "position/table": "positions_embed.weight"},
        fields=FIELDS,
        choices={"afn": {**GELU, "gelu": {"activation": "gelu"}}},
        module=Model,
        constant={"norm": "post", "scale_embeddings": False},
        ordinary={"tie_word_embeddings": True},
        defaults={"afn": "gelu", "layer_norm_epsilon": 1e-5},
    ),
}


def is_gpt(folder: pathlib.Path) -> bool:
    """Whether the config.json of a folder is that of a GPT or GPT-2 in Hugging Face's format."""
    path = folder / "config.json"
    return path.is_file() and read_json(path).get("model_type") in FAMILIES


def load_gpt(folder: pathlib.Path, dtype: str = "float32") -> Pretrained:
    """Reads config.json, model.safetensors, and the tokenizer; arguments and errors as for `load_folder`."""
    path, weights = folder / "config.json", folder / "model.safetensors"
    config = read_json(path)
    family = family_of(config, FAMILIES, str(path))
    if not config.get("n_inner") and isinstance(config.get("n_embd"), int):
        config["n_inner"] = 4 * config["n_embd"]
    fields = read_config(config, family, str(path))
    try:
        model = Model(**fields, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise UserError(f"{path}: {error}") from error
    names = tensor_names(weights)
    if fields["num_layers"] > len(names):  # before a program with that many layers is traced
        raise UserError(f"{path}: {fields['num_layers']} layers, but {weights.name} has only {len(names)} tensors")
    tokenizer = Tokenizer.load(folder, config["model_type"])
    if not 0 <= fields["vocab_size"] - len(tokenizer) < UNUSED_IDS:
        raise UserError(
            f"{folder}: the tokenizer has {len(tokenizer)} pieces, but the weights have {fields['vocab_size']}: they "
            "are not of the same model"
        )
    params = _read_params(weights, family, names, model)
    max_length = int(min(fields["max_positions"], longest_text(folder)))
    return Pretrained(config["model_type"], model, params, tokenizer, max_length)


def save_gpt(found: Pretrained, folder: pathlib.Path) -> None:
    """Writes a model as a folder of GPT-2 that `load_gpt` and Hugging Face's `AutoModelForCausalLM` read; in float32.

    The scale of the embeddings, which GPT-2 lacks, is moved into the table and out of the final norm. Raises UserError
    if a GPT-2 cannot have the fields of the model.
    """
    model, family = found.model, FAMILIES["gpt2"]
    functions = {means["activation"]: name for name, means in family.choices["activation_function"].items()}
    if model.norm != "pre" or model.activation not in functions:
        raise UserError(
            f"a GPT-2 cannot have norm={model.norm!r} with activation={model.activation!r}, only norm='pre' with "
            f"{', '.join(functions)}"
        )
    params = flax.traverse_util.flatten_dict(found.params, sep="/")
    if model.scale_embeddings:
        scale = np.float32(model.d_model**0.5)
        params["embedding/table"] = params["embedding/table"] * scale
        params |= {name: params[name] / scale for name in ("final_norm/scale", "final_norm/bias")}
    tensors: dict[str, np.ndarray] = {}
    for name in sorted(params, key=lambda name: _part(name) or 0):  # query, key and value in this order
        tensor, value = PREFIX + tensor_name(family.tensors, name), np.asarray(params[name], np.float32)
        tensors[tensor] = np.concatenate([tensors[tensor], value], axis=-1) if tensor in tensors else value
    content = {
        "model_type": "gpt2",
        "architectures": [family.architecture],
        **{key: getattr(model, field) for field, key in FIELDS.items()},
        **family.ordinary,
        "activation_function": functions[model.activation],
        "bos_token_id": EOS,
        "eos_token_id": EOS,
        "torch_dtype": "float32",
    }
    with whole_file(folder / "config.json") as file:
        file.write(json.dumps(content, indent=2).encode())
    found.tokenizer.save(folder, found.max_length)
    write_tensors(folder / "model.safetensors", tensors)


def _read_params(path: pathlib.Path, family: Family, names: list[str], model: Model) -> dict[str, Any]:
    """The parameters of a model. Raises UserError if any are missing, have another shape, or are left over."""
    prefix = PREFIX if any(name.startswith(PREFIX) for name in names) else ""
    shapes = jax.eval_shape(model.init, jax.random.key(0), jax.ShapeDtypeStruct((1, 1), np.int32))["params"]
    flat = flax.traverse_util.flatten_dict(shapes, sep="/")
    tensors = {name: prefix + tensor_name(family.tensors, name) for name in flat}
    known = {name for name in names if name.startswith(f"{prefix}h.") and not name.endswith(BUFFERS)}
    if left := known - set(tensors.values()):
        raise UserError(f"{path}: {min(left)} and {len(left) - 1} more do not belong to the model in config.json")
    expected = {
        tensors[name]: (*leaf.shape[:-1], leaf.shape[-1] * (3 if _part(name) is not None else 1))
        for name, leaf in flat.items()
    }
    values = read_tensors(path, expected)
    params = {}
    for name in flat:
        value, part = values[tensors[name]], _part(name)
        params[name] = np.ascontiguousarray(value if part is None else np.split(value, 3, axis=-1)[part])
    return dict(flax.traverse_util.unflatten_dict(params, sep="/"))


def _part(parameter: str) -> int | None:
    """Which part of its tensor a parameter is; None if it is the whole."""
    name = parameter.split("/")[-2]
    return PARTS.index(name) if name in PARTS else None
