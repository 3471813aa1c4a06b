"""Checkpoints of PyTorch and Lightning as folders that this project reads: safetensors, config.json, tokenizer."""

from __future__ import annotations

import contextlib
import itertools
import json
import pathlib
import shutil
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml

from nmt_jax.errors import UserError
from nmt_jax.pretrained.model_files import read_json, write_tensors
from nmt_jax.pretrained.torch_files import SUFFIXES, TorchFile, TorchTensor, shards, tensors_of
from nmt_jax.pretrained.vocabulary_files import SENTENCEPIECE
from nmt_jax.storage.files import whole_folder

# Files of Hugging Face's trainer, which hold no weights.
OTHER_FILES = ("training_args.bin", "optimizer.pt", "optimizer.bin", "scheduler.pt", "scaler.pt", "rng_state.pth")
CARDS = ("README.md", "LICENSE", "LICENSE.txt", "LICENSE.md")
TOKENIZERS = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", *SENTENCEPIECE),
)
MOST_DEEP, MOST_VALUES = 8, 100_000  # levels and values of nested settings, in which a list can occur many times


class Conversion(NamedTuple):
    """What was converted: the number of tensors, the licence that the model card states, and the skipped objects."""

    tensors: int
    licence: str | None
    skipped: list[str]


def convert(source: pathlib.Path, output: pathlib.Path, base: pathlib.Path | None = None) -> Conversion:
    """Write the model in a file or folder to the new folder `output`, without running any code of the checkpoint.

    source: a file of PyTorch, an index of several files, or a folder with one of these, or with checkpoints/*.ckpt.
    base: the folder of the encoder that the model was made from; its config.json and tokenizer are used if the folder
    of the model has none, as with COMET. Floats become float32. Raises UserError if a file is missing, damaged or
    contains anything else than tensors among the weights, and OSError if `output` is not empty.
    """
    files = _files(source)
    folder = files[0].parent.parent if files[0].parent.name == "checkpoints" else files[0].parent
    skipped: set[str] = set()
    with contextlib.ExitStack() as stack:
        tensors: dict[str, TorchTensor] = {}
        settings: dict[str, Any] = {}
        for path in files:
            file = stack.enter_context(contextlib.closing(TorchFile(path)))
            content = file.content
            if isinstance(content, dict) and isinstance(content.get("state_dict"), dict):
                settings |= _plain(content.get("hyper_parameters", {}), skipped, path)
                content = content["state_dict"]
            tensors |= tensors_of(file, content)
        config = _config(folder, settings, base)
        with whole_folder(output) as target:
            write_tensors(target / "model.safetensors", tensors)
            if config:
                (target / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
            for name in (*TOKENIZERS, *CARDS):
                places = [folder, *([base] if base and name in TOKENIZERS else [])]
                if found := next((place / name for place in places if (place / name).is_file()), None):
                    shutil.copyfile(found, target / name)
    return Conversion(len(tensors), _licence(folder / "README.md"), sorted(skipped))


def _files(source: pathlib.Path) -> list[pathlib.Path]:
    """The files with the weights of a model. Raises UserError if there are none, or if it is unclear which."""
    if source.name.endswith(".index.json") and source.is_file():
        return shards(source)
    if not source.is_dir():
        if not source.is_file():
            raise UserError(f"{source}: no such file or folder")
        return [source]
    if indexes := sorted(source.glob("*.bin.index.json")):
        return shards(indexes[0])
    folders = (source, source / "checkpoints")
    found = [path for folder in folders for path in sorted(folder.glob("*")) if path.suffix in SUFFIXES]
    found = [path for path in found if path.name not in OTHER_FILES]
    if len(found) != 1:
        names = ", ".join(path.name for path in found[:5]) or "none"
        raise UserError(f"{source}: {len(found)} files of PyTorch ({names}), expected one: name the file with --input")
    return found


def _config(folder: pathlib.Path, settings: dict[str, Any], base: pathlib.Path | None) -> dict[str, Any] | None:
    """The content of config.json: that of the model or its base, and under "comet" the settings of a COMET model."""
    described = _read_yaml(folder / "hparams.yaml")
    if described.get("layer_transformation") == "sparsemax_patch":  # trained with softmax, whatever the checkpoint says
        settings = {**settings, "layer_transformation": "softmax"}
    settings = {**described, **settings}
    if "class_identifier" in described:
        settings["class_identifier"] = described["class_identifier"]
    path = next(
        (place / "config.json" for place in (folder, base) if place and (place / "config.json").is_file()), None
    )
    if "encoder_model" not in settings:
        return read_json(path) if path else None
    if path is None:
        name = settings.get("pretrained_model", "its encoder")
        raise UserError(
            f"{folder}: a checkpoint of COMET has neither the configuration nor the tokenizer of its encoder: "
            f"--base=FOLDER, a folder with config.json and tokenizer.json of {name}"
        )
    return {**read_json(path), "comet": settings}


def _read_yaml(path: pathlib.Path) -> dict[str, Any]:
    """The plain values of a YAML file; {} if there is none."""
    if not path.is_file():
        return {}
    try:
        return _plain(yaml.safe_load(path.read_bytes()), set(), path)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: not plain YAML ({error}): copy it again") from error


def _plain(values: Any, skipped: set[str], path: pathlib.Path) -> dict[str, Any]:
    """The settings of a dict that JSON can hold; the classes of all others are added to `skipped`.

    Raises UserError, naming the file, if there are too many values.
    """
    found = {}
    visited = itertools.count(1)
    for name, value in (values if isinstance(values, dict) else {}).items():
        if _is_plain(value, MOST_DEEP, visited, path):
            found[str(name)] = value
        else:
            skipped.add(getattr(value, "name", type(value).__name__))
    return found


def _is_plain(value: Any, depth: int, visited: Iterator[int], path: pathlib.Path) -> bool:
    if next(visited) > MOST_VALUES:
        raise UserError(
            f"{path}: more than {MOST_VALUES:,} values in the settings; remove what the model does not need"
        )
    options = (depth - 1, visited, path)
    if isinstance(value, Mapping):
        return depth > 0 and all(isinstance(key, str) and _is_plain(one, *options) for key, one in value.items())
    if isinstance(value, list | tuple):
        return depth > 0 and len(value) < 1000 and all(_is_plain(one, *options) for one in value)
    return value is None or isinstance(value, str | int | float | bool)


def _licence(card: pathlib.Path) -> str | None:
    """The licence in the header of a model card."""
    if not card.is_file():
        return None
    lines = card.read_text(encoding="utf-8", errors="replace").splitlines()[:100]
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("license:")), None)
