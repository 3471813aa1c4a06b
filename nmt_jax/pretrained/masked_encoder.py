"""Masked language models for InfoLM: encoders with their head, from Hugging Face folders or workdirs."""

from __future__ import annotations

import functools
import os
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from metrics_jax.embedding.infolm import MaskedEncoder
from nmt_jax.errors import UserError
from nmt_jax.models.layers.encoder_stack import EncoderStack
from nmt_jax.models.layers.masked_token_head import MaskedTokenHead
from nmt_jax.pretrained.bert_encoder import hidden_states, settings_of
from nmt_jax.pretrained.comet_programs import compiled_module
from nmt_jax.pretrained.huggingface import Pretrained
from nmt_jax.pretrained.loading import find_folder, load, read_run, trained_params
from nmt_jax.pretrained.model_files import read_tensors, tensor_names
from nmt_jax.pretrained.reproducibility import fingerprint
from nmt_jax.pretrained.tokenizer import SPECIAL
from nmt_jax.pretrained.weight_names import OLD

OWN = ("transform", "transform_norm", "output_bias")  # parameters of the head in a workdir


class _Names(NamedTuple):
    """Tensors of a head: the layer, its norm, the names that the bias may have, and a table other than the encoder's.

    activation: of the layer, None for that of the encoder.
    """

    dense: str
    norm: str
    bias: tuple[str, ...]
    table: str
    activation: str | None = None


_ROBERTA = _Names(
    "lm_head.dense",
    "lm_head.layer_norm",
    ("lm_head.bias", "lm_head.decoder.bias"),
    "lm_head.decoder.weight",
    "gelu_erf",
)
HEADS = {  # by `model_type`
    "bert": _Names(
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        ("cls.predictions.bias", "cls.predictions.decoder.bias"),
        "cls.predictions.decoder.weight",
    ),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "mpnet": _ROBERTA,
    "distilbert": _Names("vocab_transform", "vocab_layer_norm", ("vocab_projector.bias",), "vocab_projector.weight"),
    "albert": _Names(
        "predictions.dense",
        "predictions.LayerNorm",
        ("predictions.bias", "predictions.decoder.bias"),
        "predictions.decoder.weight",
    ),
}


def load_masked_encoder(
    place: str | os.PathLike[str], dtype: str = "float32", download: bool = False, revision: str = "main"
) -> MaskedEncoder:
    """A masked language model; arguments and errors as for `load`.

    The folder has the head of one of `HEADS` beside the encoder, the workdir is of task "pretrain".
    """
    folder = find_folder(place, download, revision)
    pretrained = load(folder, dtype)
    params = {name: value for name, value in pretrained.params.items() if not name.startswith("pooler")}
    table = params["embeddings"]["word"]
    activation = pretrained.model.activation
    if (folder / "checkpoints").is_dir():
        path, _ = read_run(folder, ("pretrain",), "InfoLM needs 'pretrain'")
        trained = trained_params(path)
        head = {name: trained[name] for name in OWN}
    else:
        head, table, own = _read_head(folder, pretrained, table)
        activation = own or activation
    tokenizer = pretrained.tokenizer
    mask_id = next((found for piece in SPECIAL["mask_token"] if (found := tokenizer.id(piece)) is not None), None)
    if mask_id is None:
        raise UserError(f"{folder}: its tokenizer has no piece {' or '.join(SPECIAL['mask_token'])}")
    model = pretrained.model.clone(pooler=False) if hasattr(pretrained.model, "pooler") else pretrained.model
    module = MaskedTokenHead(activation, model.epsilon, model.dtype)
    weights = {"encoder": params, "head": head, "table": table}
    settings = repr([*settings_of(model, pretrained.max_length), activation, mask_id])
    hashed = fingerprint((tokenizer.model + settings).encode(), weights)
    logits = jax.tree_util.Partial(_masked_logits(model, module), jax.device_put(weights))
    return MaskedEncoder(tokenizer, logits, mask_id, pretrained.max_length, hashed, model.dtype)


def _read_head(
    folder: pathlib.Path, pretrained: Pretrained, table: np.ndarray
) -> tuple[dict[str, Any], np.ndarray, str | None]:
    """The parameters of a head, the table of its last product, and its activation, if it is not the encoder's."""
    path = folder / "model.safetensors"
    if pretrained.kind not in HEADS:
        raise UserError(
            f"{folder}: the head of a {pretrained.kind} model is not supported; supported are {', '.join(HEADS)}"
        )
    names, known = HEADS[pretrained.kind], set(tensor_names(path))

    def first(*possible: str) -> str:
        return next((name for name in possible if name in known), possible[0])

    scale, shift = (first(names.norm + ending, names.norm + OLD[ending]) for ending in (".weight", ".bias"))
    kernel, offset, bias = f"{names.dense}.weight", f"{names.dense}.bias", first(*names.bias)
    if kernel not in known:
        raise UserError(f"{path}: no tensor {kernel}: the folder has an encoder without the head of a masked model")
    width, size = table.shape[1], table.shape[0]
    shapes = {kernel: (width, pretrained.model.d_model), scale: (width,), shift: (width,), offset: (width,)}
    shapes[bias] = (size,)
    if names.table in known:
        shapes[names.table] = table.shape
    found = read_tensors(path, shapes)
    head = {
        "transform": {"kernel": found[kernel].T, "bias": found[offset]},
        "transform_norm": {"scale": found[scale], "bias": found[shift]},
        "output_bias": found[bias],
    }
    return head, found.get(names.table, table), names.activation


@functools.cache
def _masked_logits(model: EncoderStack, head: MaskedTokenHead) -> Callable[..., jax.Array]:
    """A function that returns the logits at one position of each row, float32[B, V]; the same for equal models."""
    states, compiled = hidden_states(model), compiled_module(head)

    def logits(weights: dict[str, Any], ids: jax.Array, mask: jax.Array, positions: jax.Array) -> jax.Array:
        *_, last = states(weights["encoder"], ids, mask)
        return compiled(weights["head"], last, weights["table"], positions)

    return logits
