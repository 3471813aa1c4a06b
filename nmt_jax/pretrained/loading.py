"""Pretrained models by location: a folder, a workdir, an installed package, or the Hugging Face hub."""

from __future__ import annotations

import importlib.util
import os
import pathlib

from nmt_jax.errors import UserError
from nmt_jax.pretrained.huggingface import Pretrained, load_folder

DOWNLOADED = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt")


def load(
    place: str | os.PathLike[str], dtype: str = "float32", download: bool = False, revision: str = "main"
) -> Pretrained:
    """Reads a model from a folder, an installed package that contains one, or, with `download`, the Hugging Face hub.

    The folder is either in Hugging Face's format or the workdir of a pretraining run, whose best checkpoint is read.
    dtype: of the matrix products, float32 or bfloat16. Raises UserError as `load_folder` and `load_workdir` do.
    """
    folder = find_folder(place, download, revision)
    if (folder / "checkpoints").is_dir():
        from nmt_jax.pretrained.pretraining_workdir import (
            load_workdir,
        )  # imports Orbax, which other folders do not need

        return load_workdir(folder, dtype)
    return load_folder(folder, dtype)


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
            if path.with_name("model.safetensors").is_file()
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
        return pathlib.Path(
            huggingface_hub.snapshot_download(str(place), revision=revision, allow_patterns=[*DOWNLOADED])
        )
    except Exception as error:  # network, name or disk
        raise UserError(f"{place}: cannot be downloaded: {error}".split("\n")[0]) from error
