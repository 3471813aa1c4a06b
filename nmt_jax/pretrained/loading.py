"""Pretrained models by location: a folder, a workdir, an installed package, or the Hugging Face hub."""

from __future__ import annotations

import importlib.util
import os
import pathlib
from collections.abc import Collection
from typing import Any

import jax
import numpy as np

from nmt_jax.errors import UserError
from nmt_jax.models.bert import Model
from nmt_jax.models.layers.bert_stack import Bert
from nmt_jax.pretrained.huggingface import Pretrained, load_folder
from nmt_jax.pretrained.model_files import has_weights, read_json
from nmt_jax.pretrained.tokenizer import Tokenizer
from nmt_jax.pretrained.vocabulary_files import SENTENCEPIECE
from nmt_jax.storage.paths import path_of
from nmt_jax.workdir import Workdir, check_manifest

FINE_TUNED = ("sentences", "tag", "span")  # tasks that fine-tune a pretrained encoder
WEIGHTS = ("config.json", "model.safetensors")
DOWNLOADED = (
    *WEIGHTS,
    "model.safetensors.index.json",
    "model-*.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    *SENTENCEPIECE,
)


def load(
    place: str | os.PathLike[str],
    dtype: str = "float32",
    download: bool = False,
    revision: str = "main",
    causal: bool = False,
) -> Pretrained:
    """Reads a model from a folder, an installed package that contains one, or, with `download`, the Hugging Face hub.

    The folder is either in Hugging Face's format or the workdir of a pretraining run, whose best checkpoint is read.
    dtype: of the matrix products, float32 or bfloat16. causal: whether the workdir may be that of a causal model.
    Raises UserError as `load_folder` and `load_workdir` do.
    """
    folder = find_folder(place, download, revision)
    if (folder / "checkpoints").is_dir():
        return load_workdir(folder, dtype, causal=causal)
    return load_folder(folder, dtype)


def load_workdir(
    workdir: str | os.PathLike[str],
    dtype: str = "float32",
    checkpoint: str | int | None = None,
    causal: bool = False,
) -> Pretrained:
    """The encoder of a workdir of task "pretrain", or of a task that fine-tunes an encoder, without its heads.

    If a head for sentences reads the first piece of the last layer, its hidden layer is the pooler. dtype: of the
    matrix products, independent of training. checkpoint: "best" (also None), "last", or n for the mean of the last n.
    causal: whether the model may be causal; metrics need one that reads in both directions. Raises UserError if the
    workdir has another task or no checkpoint, if the model is causal and must not be, or if the vocabulary does not fit
    the weights.
    """
    tasks = ("pretrain", *FINE_TUNED)
    folder, config = read_run(workdir, tasks, f"an encoder needs {', '.join(map(repr, tasks))}")
    if config["model_name"] == "causal_head":
        raise UserError(f"{folder}: a fine-tuned GPT (model_name='causal_head') is not an encoder for other uses")
    fine_tuned = read_json(folder / "vocab" / "encoder.json") if config["task"] in FINE_TUNED else None
    if not causal and (fine_tuned["fields"] if fine_tuned else config["model"]).get("causal"):
        raise UserError(f"{folder}: a causal language model (model.causal=true) is not an encoder")
    heads = trained_params(folder, checkpoint)
    params = heads["encoder"]
    tokenizer = Tokenizer.load(folder / "vocab")
    if fine_tuned:
        reads_first = config["model"].get("pooling") == "first" and config["encoder"]["layers"] == "last"
        pooler = {"pooler_dense": heads["hidden"]} if reads_first and "hidden" in heads else {}
        encoder = Bert(**fine_tuned["fields"], pooler=bool(pooler), dtype=dtype)
        return Pretrained(fine_tuned["kind"], encoder, {**params, **pooler}, tokenizer, fine_tuned["max_length"])
    pieces = params["embeddings"]["word"].shape[0]
    if len(tokenizer) != pieces:
        raise UserError(
            f"{folder}: vocab/tokenizer.json has {len(tokenizer)} pieces, but the weights have {pieces}: restore the "
            "vocabulary of the training run"
        )
    model = Model(vocab_size=pieces, **{**config["model"], "dtype": dtype, "remat": "none"}).bert()
    return Pretrained("bert", model, params, tokenizer, min(config["data"]["max_length"], model.max_positions))


def read_run(
    workdir: str | os.PathLike[str], tasks: Collection[str], needed: str
) -> tuple[pathlib.Path, dict[str, Any]]:
    """The absolute path and the config of a workdir.

    Raises UserError unless its task is one of `tasks`, and if vocabulary or model are not those of the checkpoints.
    """
    folder = path_of(workdir).expanduser().absolute()
    config = Workdir(folder).config()
    if config.task not in tasks:
        raise UserError(f"{folder}: its task is {config.task!r}, but {needed}")
    check_manifest(folder, config)
    return folder, config.to_dict()


def trained_params(folder: pathlib.Path, checkpoint: str | int | None = None) -> dict[str, Any]:
    """The parameters of a workdir as NumPy arrays; arguments as for `load_workdir`."""
    from nmt_jax.checkpoints.reading import load_params  # late: imports Orbax, which other folders do not need

    return jax.tree.map(np.asarray, load_params(folder, checkpoint or "best"))


def find_folder(place: str | os.PathLike[str], download: bool, revision: str) -> pathlib.Path:
    """The folder of a model: `place` itself, or in the installed package of this name, or downloaded.

    Raises UserError if there is none or the download fails.
    """
    folder = pathlib.Path(place)
    if folder.is_dir():
        return folder
    package = str(place).replace("-", "_")
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    if spec and spec.submodule_search_locations:
        found = [
            path.parent
            for location in spec.submodule_search_locations
            for path in sorted(pathlib.Path(location).rglob("config.json"))
            if has_weights(path.parent)
        ]
        if len(found) == 1:
            return found[0]
        raise UserError(f"{place}: the package contains {len(found)} models; give the folder of one of them")
    if not download:
        raise UserError(
            f"{place}: no such folder or installed package; --download (download=True) fetches a model of this name "
            "from the Hugging Face hub"
        )
    import huggingface_hub

    try:
        path = huggingface_hub.snapshot_download(str(place), revision=revision, allow_patterns=[*DOWNLOADED])
        return pathlib.Path(path)
    except Exception as error:  # network, name or disk
        raise UserError(f"{place}: cannot be downloaded: {error}".split("\n")[0]) from error
