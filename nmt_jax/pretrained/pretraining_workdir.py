"""The encoder of a pretraining or fine-tuning run, from its workdir."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import jax
import numpy as np

from nmt_jax.checkpoints.reading import load_params
from nmt_jax.errors import UserError
from nmt_jax.models.bert import Model
from nmt_jax.models.layers.bert_stack import Bert
from nmt_jax.pretrained.huggingface import Pretrained
from nmt_jax.pretrained.model_files import read_json
from nmt_jax.pretrained.tokenizer import Tokenizer

FINE_TUNED = ("sentences", "tag", "span")  # tasks that fine-tune a pretrained encoder


def load_workdir(
    workdir: str | os.PathLike[str], dtype: str = "float32", checkpoint: str | int | None = None
) -> Pretrained:
    """The encoder of a workdir of task "pretrain", or of a task that fine-tunes an encoder, without its heads.

    If a head for sentences reads the first piece of the last layer, its hidden layer is the pooler. dtype: of the
    matrix products, independent of training. checkpoint: "best" (also None), "last", or n for the mean of the last n.
    Raises UserError if the workdir has another task or no checkpoint, if the model is causal, or if the vocabulary does
    not fit the weights.
    """
    folder = pathlib.Path(workdir).expanduser().absolute()
    config = read_json(folder / "config.json")
    if config.get("task") in FINE_TUNED:
        return _fine_tuned(folder, config, dtype, checkpoint)
    if config.get("task") != "pretrain":
        tasks = ", ".join(map(repr, FINE_TUNED))
        raise UserError(f"{folder}: its task is {config.get('task')!r}, but an encoder needs 'pretrain', {tasks}")
    if config["model"]["causal"]:
        raise UserError(f"{folder}: a causal language model (model.causal=true) is not an encoder")
    params = jax.tree.map(np.asarray, load_params(folder, checkpoint or "best"))["encoder"]
    tokenizer = Tokenizer.load(folder / "vocab")
    pieces = params["embeddings"]["word"].shape[0]
    if len(tokenizer) != pieces:
        raise UserError(
            f"{folder}: vocab/tokenizer.json has {len(tokenizer)} pieces, but the weights have {pieces}: restore the "
            "vocabulary of the training run"
        )
    model = Model(vocab_size=pieces, **{**config["model"], "dtype": dtype, "remat": False}).bert()
    return Pretrained("bert", model, params, tokenizer, min(config["data"]["max_length"], model.max_positions))


def _fine_tuned(folder: pathlib.Path, config: dict[str, Any], dtype: str, checkpoint: str | int | None) -> Pretrained:
    """The encoder of a fine-tuning run."""
    described = read_json(folder / "vocab" / "encoder.json")
    params = jax.tree.map(np.asarray, load_params(folder, checkpoint or "best"))
    reads_first = config["model"].get("pooling") == "first" and config["encoder"]["layers"] == "last"
    pooler = {"pooler_dense": params["hidden"]} if reads_first and "hidden" in params else {}
    model = Bert(**described["fields"], pooler=bool(pooler), dtype=dtype)
    tokenizer = Tokenizer.load(folder / "vocab")
    return Pretrained(described["kind"], model, {**params["encoder"], **pooler}, tokenizer, described["max_length"])
