"""The encoder of a pretraining run, from its workdir."""

from __future__ import annotations

import os
import pathlib

import jax
import numpy as np

from nmt_jax.checkpoint import load_params
from nmt_jax.errors import UserError
from nmt_jax.models.bert import Model
from nmt_jax.pretrained.folder import Pretrained
from nmt_jax.pretrained.tokenizer import Tokenizer, read_json


def load_workdir(
    workdir: str | os.PathLike[str], dtype: str = "float32", checkpoint: str | int | None = None
) -> Pretrained:
    """The encoder that a workdir of task "pretrain" has trained, without the heads.

    dtype: of the products, whatever it was trained in. checkpoint: "best", "last", or n for the mean of the last n;
    None is "best". UserError, one line, for a workdir of another task or without a checkpoint, for a model that reads
    from left to right, and for a vocabulary that is not the one the weights were trained with.
    """
    folder = pathlib.Path(workdir).expanduser().absolute()
    config = read_json(folder / "config.json")
    if config.get("task") != "pretrain":
        raise UserError(f"{folder}: its task is {config.get('task')!r}: an encoder comes of 'pretrain'")
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
