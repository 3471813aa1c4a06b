"""Estimators of COMET that were trained here: from workdirs of task "sentences" with model "estimator_head"."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import jax

from metrics_jax.embedding.comet import SentenceEstimator, TextRow
from nmt_jax.data.batching.encoder_rows import RowReader
from nmt_jax.errors import UserError
from nmt_jax.models.layers.bert_stack import Bert
from nmt_jax.models.layers.comet import Estimator, LayerChoice, SentenceHead
from nmt_jax.pretrained.bert_encoder import settings_of
from nmt_jax.pretrained.comet_programs import compiled_module, with_head
from nmt_jax.pretrained.loading import trained_params
from nmt_jax.pretrained.model_files import read_json
from nmt_jax.pretrained.reproducibility import fingerprint
from nmt_jax.pretrained.tokenizer import Tokenizer

TEXTS = {"comet": 3, "cometqe": 2}  # that the estimator of a metric reads
POOLING = {"mean": "avg", "first": "cls"}  # of estimator_head, and as COMET calls it


def load_workdir(folder: pathlib.Path, dtype: str, metric: str) -> SentenceEstimator:
    """The estimator of the best checkpoint of a workdir, for `comet` or `cometqe`.

    dtype: of the encoder's matrix products. Scores are in standard deviations of the training scores. Raises UserError
    if the workdir has another task or model, or reads other texts.
    """
    config = read_json(folder / "config.json")
    if (config.get("task"), config.get("model_name")) != ("sentences", "estimator_head"):
        raise UserError(f"{folder}: --{metric} needs a workdir of configs/comet.py, with model 'estimator_head'")
    data, settings, model = config["data"], config["encoder"], config["model"]
    if len(data["texts"]) != TEXTS[metric] or "," in data["label"]:
        wanted = "translation, reference and source" if metric == "comet" else "translation and source"
        raise UserError(
            f"{folder}: reads {', '.join(data['texts'])} and predicts {data['label']}, but --{metric} needs an "
            f"estimator that reads {wanted} and predicts one score"
        )
    if settings["layers"] not in ("last", "mixture"):
        raise UserError(
            f"{folder}: encoder.layers={settings['layers']}: --{metric} reads the last layer or a mixture of all; "
            "train with --config.encoder.layers=mixture"
        )
    encoder = Bert(**read_json(folder / "vocab" / "encoder.json")["fields"], pooler=False, dtype=dtype)
    params, tokenizer = trained_params(folder.absolute()), Tokenizer.load(folder / "vocab")
    reader = RowReader(tokenizer.model, data["max_length"], encoder.num_segments > 1)

    def tokenize(texts: Sequence[str]) -> list[TextRow]:
        special = reader.max_length - reader.capacity(1)
        return [
            TextRow(reader.row(*reader.fit([text.ids]))[0]["ids"], len(text.ids) + special)
            for text in reader.pieces(texts)
        ]

    choice, choice_params = LayerChoice(encoder.num_layers), {}
    if settings["layers"] == "mixture":
        mixture = {"weights": params["mixture_weights"], "gamma": params["mixture_scale"].reshape(1)}
        choice, choice_params = LayerChoice(), {"mixture": mixture}
    head = SentenceHead(choice, POOLING[model["pooling"]])
    estimator = Estimator(tuple(model["hidden_sizes"]))
    parts: dict[str, Any] = {"encoder": params["encoder"], "head": {"choice": choice_params}}
    estimator_params = {name: params[name] for name in params if name.startswith("hidden_") or name == "output"}
    embed = jax.tree_util.Partial(with_head(encoder, head), jax.device_put(parts))
    estimate = jax.tree_util.Partial(compiled_module(estimator), jax.device_put(estimator_params))
    # Settings that no parameter shape reveals.
    text = tokenizer.model + repr([*settings_of(encoder, reader.max_length), head.pooling, settings["layers"]])
    hashed = fingerprint(text.encode(), {**parts, "estimator": estimator_params})
    return SentenceEstimator(tokenize, embed, estimate, reader.max_length, hashed, dtype)
