"""The trained models of BLEURT and RUSE: pair scorers and regressors, from workdirs or Hugging Face folders."""

from __future__ import annotations

import functools
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from metrics_jax.embedding.bleurt import PairRow, PairScorer
from metrics_jax.embedding.encoder import Encoder
from metrics_jax.embedding.ruse import Regressor
from nmt_jax.data.batching.encoder_rows import RowReader
from nmt_jax.errors import UserError
from nmt_jax.models.layers.bert_stack import Bert
from nmt_jax.models.sentence_head import Model
from nmt_jax.pretrained.bert_encoder import load_encoder
from nmt_jax.pretrained.loading import find_folder, load, read_run, trained_params
from nmt_jax.pretrained.model_files import read_json, read_tensors
from nmt_jax.pretrained.reproducibility import exact_products, fingerprint
from nmt_jax.pretrained.tokenizer import Tokenizer


def load_bleurt(
    place: str | os.PathLike[str], dtype: str = "float32", download: bool = False, revision: str = "main"
) -> PairScorer:
    """A pair scorer for BLEURT; arguments and errors as for `load`.

    A Hugging Face folder must contain a BERT with a pooler and the tensors `classifier`; its "gelu" is the tanh
    approximation, as in the program that trained it. A workdir must have task "sentences" with scores of pairs; its
    best checkpoint is read, the first text of a pair is the reference, and scores are in standard deviations of the
    training scores.
    """
    folder = find_folder(place, download, revision)
    if (folder / "checkpoints").is_dir():
        return _load_workdir(folder, dtype)
    found = load(folder, dtype)
    if "pooler_dense" not in found.params:
        raise UserError(f"{folder}: no tensor pooler.dense.weight, from which BLEURT computes its score")
    width = found.model.d_model
    kernel, bias = "classifier.weight", "classifier.bias"
    head = read_tensors(folder / "model.safetensors", {kernel: (1, width), bias: (1,)})
    activation = "gelu" if found.model.activation == "gelu_erf" else found.model.activation
    params = dict(found.params)
    output = {"kernel": head[kernel].T, "bias": head[bias]}
    params = {"hidden": params.pop("pooler_dense"), "output": output, "encoder": params}
    encoder = found.model.clone(activation=activation, pooler=False)
    return make_scorer(Model(encoder, num_outputs=1, pooling="first"), params, found.tokenizer, found.max_length)


def _load_workdir(folder: pathlib.Path, dtype: str) -> PairScorer:
    """The scorer of a run that reads reference and candidate as one row and predicts one number."""
    config = read_json(folder / "config.json")
    data = config.get("data", {})
    if config.get("task") != "sentences" or not data.get("scores") or len(data.get("texts", [])) != 2:
        raise UserError(
            f"{folder}: --bleurt needs a workdir of task 'sentences' with scores of pairs, as trained by "
            "configs/bleurt.py"
        )
    if config["model_name"] != "sentence_head":
        raise UserError(
            f"{folder}: {config['model_name']} encodes the two texts separately; BLEURT needs model 'sentence_head'"
        )
    if "," in data["label"]:
        raise UserError(
            f"{folder}: predicts several numbers ({data['label']}), but BLEURT needs one score; train on ratings from "
            f"these weights: --config.encoder.place={folder}"
        )
    settings = config["encoder"]
    encoder = Bert(**read_json(folder / "vocab" / "encoder.json")["fields"], pooler=False, dtype=settings["dtype"])
    head = Model(encoder.clone(dtype=dtype), num_outputs=1, layers=settings["layers"], **config["model"])
    params = trained_params(folder.absolute())
    return make_scorer(head, params, Tokenizer.load(folder / "vocab"), data["max_length"])


def make_scorer(model: Model, params: dict[str, Any], tokenizer: Tokenizer, max_length: int) -> PairScorer:
    """A pair scorer of a model with one output; max_length: in pieces, special pieces included."""
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

    # Settings that no parameter shape reveals.
    fields = [getattr(encoder, field) for field in ("num_heads", "first_position", "activation", "epsilon", "dtype")]
    shared = [encoder.num_layers] if encoder.share_layers else []
    settings = repr([*fields, model.pooling, model.layers, max_length, *shared])
    score = jax.tree_util.Partial(_scoring(model), jax.device_put(params))
    hashed = fingerprint((tokenizer.model + settings).encode(), params)
    return PairScorer(tokenize, score, max_length, hashed, encoder.dtype)


@functools.cache
def _scoring(model: Model) -> Callable[..., jax.Array]:
    """The compiled scoring function of a model; the same function for equal models."""

    @jax.jit
    def score(params: dict[str, Any], ids: jax.Array, mask: jax.Array, segments: jax.Array) -> jax.Array:
        with exact_products(model.encoder.dtype):
            outputs = model.apply({"params": params}, ids, mask, segments)
        return jnp.asarray(outputs)[:, 0]

    return score


def load_ruse(workdir: str | os.PathLike[str], dtype: str = "float32") -> Regressor:
    """The regressor of the best checkpoint of a workdir of task "ruse".

    dtype: of the encoders' matrix products. Raises UserError if the workdir has another task or no checkpoint.
    """
    folder, config = read_run(workdir, ["ruse"], "--ruse needs 'ruse', as configs/ruse.py trains it")
    params = trained_params(folder)
    names = [*(f"hidden_{number}" for number in range(len(params) - 1)), "output"]
    layers = tuple((params[name]["kernel"], params[name]["bias"]) for name in names)
    settings = config["encoders"]
    return Regressor(read_encoders(folder, dtype), layers, settings["normalize"], tuple(settings["layers"]))


def read_encoders(folder: pathlib.Path, dtype: str = "float32") -> tuple[Encoder, ...]:
    """The encoders in `vocab/` of a workdir, in order."""
    places = sorted((folder / "vocab").glob("encoder_[0-9]*"), key=lambda place: int(place.name.split("_")[1]))
    return tuple(load_encoder(place, dtype) for place in places)
