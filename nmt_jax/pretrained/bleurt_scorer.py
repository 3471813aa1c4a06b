"""BLEURT: a Hugging Face folder, or a workdir of ours that was trained on pairs and their scores -> a pair scorer."""

from __future__ import annotations

import functools
import hashlib
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import flax.traverse_util
import jax
import jax.numpy as jnp
import numpy as np

from metrics_jax.embedding.bleurt import PairRow, PairScorer
from nmt_jax.checkpoints.reading import load_params
from nmt_jax.data.batching.encoder_rows import RowReader
from nmt_jax.errors import UserError
from nmt_jax.models.layers.bert_stack import Bert
from nmt_jax.models.sentence_head import Model
from nmt_jax.pretrained.loading import find_folder, load
from nmt_jax.pretrained.tokenizer import Tokenizer, read_json
from nmt_jax.pretrained.weights import read_tensors


def load_bleurt(
    place: str | os.PathLike[str], dtype: str = "float32", download: bool = False, revision: str = "main"
) -> PairScorer:
    """What BLEURT reads pairs with, from the places and with the errors of `load`.

    A Hugging Face folder holds a BERT with a pooler and the tensors `classifier`; its "gelu" is the approximation by
    tanh, as in the program that trained it. A workdir is one of task "sentences" with scores of pairs; its best
    checkpoint counts, the first text is the reference, and scores are in standard deviations of the training scores.
    """
    folder = find_folder(place, download, revision)
    if (folder / "checkpoints").is_dir():
        return _load_workdir(folder, dtype)
    found = load(folder, dtype)
    if "pooler_dense" not in found.params:
        raise UserError(f"{folder}: no tensor pooler.dense.weight: a BLEURT reads its score off the pooled [CLS]")
    width = found.model.d_model
    kernel, bias = "classifier.weight", "classifier.bias"
    head = read_tensors(folder / "model.safetensors", {kernel: (1, width), bias: (1,)})
    activation = "gelu" if found.model.activation == "gelu_erf" else found.model.activation
    params = dict(found.params)
    params = {
        "hidden": params.pop("pooler_dense"),
        "output": {"kernel": head[kernel].T, "bias": head[bias]},
        "encoder": params,
    }
    encoder = found.model.clone(activation=activation, pooler=False)
    return make_scorer(Model(encoder, num_outputs=1, pooling="first"), params, found.tokenizer, found.max_length)


def _load_workdir(folder: pathlib.Path, dtype: str) -> PairScorer:
    """The run that reads a reference and a candidate in one row and says one number."""
    config = read_json(folder / "config.json")
    data = config.get("data", {})
    if config.get("task") != "sentences" or not data.get("scores") or len(data.get("texts", [])) != 2:
        raise UserError(
            f"{folder}: a BLEURT is a run of task 'sentences' on the scores of pairs, as configs/bleurt.py trains it"
        )
    if config["model_name"] != "sentence_head":
        raise UserError(f"{folder}: {config['model_name']} reads two texts apart: a BLEURT has model 'sentence_head'")
    if "," in data["label"]:
        raise UserError(
            f"{folder}: it learned {data['label']}: one of several numbers is no score; train on ratings, beginning "
            f"there: --config.encoder.place={folder}"
        )
    settings = config["encoder"]
    encoder = Bert(**read_json(folder / "vocab" / "encoder.json")["fields"], pooler=False, dtype=settings["dtype"])
    head = Model(encoder.clone(dtype=dtype), num_outputs=1, layers=settings["layers"], **config["model"])
    params = jax.tree.map(np.asarray, load_params(folder.absolute(), "best"))
    return make_scorer(head, params, Tokenizer.load(folder / "vocab"), data["max_length"])


def make_scorer(model: Model, params: dict[str, Any], tokenizer: Tokenizer, max_length: int) -> PairScorer:
    """A pair scorer of a head with one output; max_length: pieces of the longest row, special ones included."""
    encoder = model.encoder
    reader = RowReader(tokenizer.model, max_length, encoder.num_segments > 1)

    def tokenize(references: Sequence[str], candidates: Sequence[str]) -> list[PairRow]:
        texts = list(dict.fromkeys([*references, *candidates]))
        pieces = {text: found.ids for text, found in zip(texts, reader.pieces(texts), strict=True)}
        rows = []
        for reference, candidate in zip(references, candidates, strict=True):
            whole = [pieces[reference], pieces[candidate]]
            item, _ = reader.row(*reader.fit(whole))
            segments = item.get("segments", np.zeros_like(item["ids"]))
            rows.append(PairRow(item["ids"], segments, sum(map(len, whole)) + max_length - reader.capacity(2)))
        return rows

    digest = hashlib.sha256(tokenizer.model.encode())
    told = [getattr(encoder, field) for field in ("num_heads", "first_position", "activation", "epsilon", "dtype")]
    digest.update(repr([*told, model.pooling, model.layers, max_length]).encode())  # of what no shape tells
    for name, value in sorted(flax.traverse_util.flatten_dict(params, sep="/").items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(value, np.float32).data)
    score = jax.tree_util.Partial(_scoring(model), jax.device_put(params))
    return PairScorer(tokenize, score, max_length, digest.hexdigest(), encoder.dtype)


@functools.cache
def _scoring(model: Model) -> Callable[..., jax.Array]:
    """The compiled scores of a model, one function for equal ones."""

    @jax.jit
    def score(params: dict[str, Any], ids: jax.Array, mask: jax.Array, segments: jax.Array) -> jax.Array:
        # Accelerators round the operands of float32 products to fewer bits unless told not to.
        with jax.default_matmul_precision("highest" if model.encoder.dtype == "float32" else "default"):
            outputs = model.apply({"params": params}, ids, mask, segments)
        return jnp.asarray(outputs)[:, 0]

    return score
