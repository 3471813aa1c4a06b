"""Trained translation models as parts of metrics: workdirs of task "translate"."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from nmt_jax.data.vocabulary.vocab import Vocab
from nmt_jax.errors import UserError
from nmt_jax.models.registry import model_class
from nmt_jax.pretrained.loading import read_run, trained_params
from nmt_jax.pretrained.reproducibility import fingerprint


class TranslationModel(NamedTuple):
    """A model of one source of text, with its parameters and vocabularies.

    longest: pieces of a row, EOS included. fingerprint: SHA-256 of everything that changes its numbers.
    """

    model: Any
    params: dict[str, Any]
    source: Vocab
    target: Vocab
    longest: int
    fingerprint: str


def load_translation_model(workdir: str | os.PathLike[str], dtype: str, user: str) -> TranslationModel:
    """The best checkpoint of a workdir of task "translate" that reads one source of text.

    dtype: of the matrix products. user: what needs the model, for messages. Raises UserError if the workdir has another
    task or no checkpoint, or its model copies words, has a lexicon or reads several sources.
    """
    folder, config = read_run(workdir, ["translate"], f"{user} needs 'translate', as configs/transformer.py trains it")
    if config["data"].get("kind", "text") != "text":
        raise UserError(f"{folder}: {user} needs a model of text, but config.data.kind={config['data']['kind']!r}")
    several = "," in config["data"]["source"] or config["vocab"].get("lexicon")
    if several or config["model"].get("copying", "none") != "none":
        raise UserError(f"{folder}: {user} needs a model of one source, without a lexicon and without copying")
    names = ("joint", "joint") if config["vocab"]["joint"] else ("source", "target")
    source, target = (Vocab.load(folder / "vocab" / f"{name}.model") for name in names)
    sizes = {"source_vocab_size": len(source), "target_vocab_size": len(target)}
    model = model_class(config["model_name"])(**{**config["model"], "dtype": dtype}, **sizes)
    params, longest = trained_params(folder), int(config["data"]["max_length"])
    settings = repr([config["model_name"], sorted(config["model"].items(), key=str), dtype, longest])
    hashed = fingerprint((source.fingerprint + target.fingerprint + settings).encode(), params)
    return TranslationModel(model, params, source, target, longest, hashed)
