"""The encoder of a run that pretrained or fine-tuned one, from its workdir."""

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
from nmt_jax.pretrained.tokenizer import Tokenizer, read_json

FINE_TUNED = ("sentences", "tag", "span")  # tasks with a pretrained encoder


def load_workdir(
    workdir: str | os.PathLike[str], dtype: str = "float32", checkpoint: str | int | None = None
) -> Pretrained:
    """The encoder that a workdir of task "pretrain" has trained, or of one with a head over it, without the heads.

    Where a head of sentences reads the first piece of the last layer, its hidden product is the pooler.
    dtype: of the products, whatever it was trained in. checkpoint: "best", "last", or n for the mean of the last n;
    None is "best". UserError, one line, for a workdir of another task or without a checkpoint, for a model that reads
    from left to right, and for a vocabulary that is not the one the weights were trained with.
    """
    folder = pathlib.Path(workdir).expanduser().absolute()
    config = read_json(folder / "config.json")
    if config.get("task") in FINE_TUNED:
        return _fine_tuned(folder, config, dtype, checkpoint)
    if config.get("task") != "pretrain":
        tasks = ", ".join(map(repr, FINE_TUNED))
        raise UserError(f"{folder}: its task is {config.get('task')!r}: an encoder comes of 'pretrain', or of {tasks}")
    if config["model"]["causal"]:
        raise UserError(f"{folder}: trained from left to right (model.causal=true): an encoder reads both ways")
    params = jax.tree.map(np.asarray, load_params(folder, checkpoint or "best"))["encoder"]
    tokenizer = Tokenizer.load(folder / "vocab")
    pieces = params["embeddings"]["word"].shape[0]
    if len(tokenizer) != pieces:
        raise UserError(
            f"{folder}: vocab/tokenizer.json has {len(tokenizer)} pieces and the weights {pieces}: put back the "
            "vocabulary that they were trained with"
        )
    model = Model(vocab_size=pieces, **{**config["model"], "dtype": dtype, "remat": False}).bert()
    return Pretrained("bert", model, params, tokenizer, min(config["data"]["max_length"], model.max_positions))


def _fine_tuned(folder: pathlib.Path, config: dict[str, Any], dtype: str, checkpoint: str | int | None) -> Pretrained:
    """The encoder below a head."""
    described = read_json(folder / "vocab" / "encoder.json")
    params = jax.tree.map(np.asarray, load_params(folder, checkpoint or "best"))
    reads_first = config["model"].get("pooling") == "first" and config["encoder"]["layers"] == "last"
    pooler = {"pooler_dense": params["hidden"]} if reads_first and "hidden" in params else {}
    model = Bert(**described["fields"], pooler=bool(pooler), dtype=dtype)
    tokenizer = Tokenizer.load(folder / "vocab")
    return Pretrained(described["kind"], model, {**params["encoder"], **pooler}, tokenizer, described["max_length"])
