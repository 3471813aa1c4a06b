"""The regressor of RUSE and its sentence encoders, from a workdir."""

from __future__ import annotations

import os
import pathlib

import jax
import numpy as np

from metrics_jax.embedding.encoder import Encoder
from metrics_jax.embedding.ruse import Regressor
from nmt_jax.checkpoints.reading import load_params
from nmt_jax.errors import UserError
from nmt_jax.pretrained.bert_encoder import load_encoder
from nmt_jax.pretrained.model_files import read_json


def load_ruse(workdir: str | os.PathLike[str], dtype: str = "float32") -> Regressor:
    """The regressor of the best checkpoint of a workdir of task "ruse".

    dtype: of the encoders' matrix products. Raises UserError if the workdir has another task or no checkpoint.
    """
    folder = pathlib.Path(workdir).expanduser().absolute()
    config = read_json(folder / "config.json")
    if config.get("task") != "ruse":
        raise UserError(
            f"{folder}: its task is {config.get('task')!r}, but --ruse needs 'ruse', as configs/ruse.py trains it"
        )
    params = jax.tree.map(np.asarray, load_params(folder, "best"))
    names = [*(f"hidden_{number}" for number in range(len(params) - 1)), "output"]
    layers = tuple((params[name]["kernel"], params[name]["bias"]) for name in names)
    settings = config["encoders"]
    return Regressor(read_encoders(folder, dtype), layers, settings["normalize"], tuple(settings["layers"]))


def read_encoders(folder: pathlib.Path, dtype: str = "float32") -> tuple[Encoder, ...]:
    """The encoders in `vocab/` of a workdir, in order."""
    places = sorted((folder / "vocab").glob("encoder_[0-9]*"), key=lambda place: int(place.name.split("_")[1]))
    return tuple(load_encoder(place, dtype) for place in places)
