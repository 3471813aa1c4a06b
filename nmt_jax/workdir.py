"""The folder of a run: names of its files, reading of config and metrics, and its manifest.

`manifest.json` ties the vocabulary and the model in the config to the checkpoints.
"""

import dataclasses
import json
import os
import pathlib
import warnings
from typing import Any

from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax import schema
from nmt_jax.errors import UserError
from nmt_jax.storage.files import is_complete, sha256, whole_file
from nmt_jax.storage.paths import path_of

MANIFEST = "manifest.json"


@dataclasses.dataclass(frozen=True, init=False)
class Workdir:
    """The folder of a run. `path` is made absolute, which Orbax requires."""

    path: pathlib.Path
    config_file: pathlib.Path  # the resolved config
    metrics_file: pathlib.Path  # one JSON object per logged step
    vocab: pathlib.Path  # SentencePiece models
    checkpoints: pathlib.Path  # Orbax checkpoints, one folder per step
    tensorboard: pathlib.Path  # TensorBoard event files
    phrases: pathlib.Path  # phrase table, language model and weights of a phrase-based model

    def __init__(self, path: str | os.PathLike[str]) -> None:
        path = path_of(path).expanduser().absolute()
        names = {"config_file": "config.json", "metrics_file": "metrics.jsonl"}
        names |= {name: name for name in ("vocab", "checkpoints", "tensorboard", "phrases")}
        vars(self).update(path=path, **{field: path / name for field, name in names.items()})

    @property
    def started(self) -> bool:
        """Whether there is a finished checkpoint; from then on the model must not change."""
        try:
            # The second name is that of a checkpoint while it is saved again.
            entries = [path for path in self.checkpoints.iterdir() if path.name.removesuffix(".replaced").isdecimal()]
            return any(map(is_complete, entries))
        except (FileNotFoundError, NotADirectoryError):
            return False

    def config(self) -> ConfigDict:
        """Returns the config of the run, with defaults for the keys that an older version did not know.

        Raises UserError if the folder is no workdir, or if the config is invalid.
        """
        if not self.path.is_dir():
            raise UserError(
                f"{self.path}: no such workdir; create it with `nmt-jax train --config=FILE --workdir={self.path}`"
            )
        if not self.config_file.is_file():
            raise UserError(f"{self.path}: not a workdir: it has no config.json; `nmt-jax train` creates workdirs")
        config = configs.read(self.config_file)
        configs.check(config, self.config_file)
        configs.add_missing(config)
        return config

    def trained_config(self, *tasks: str) -> ConfigDict:
        """Returns the config.

        Raises UserError if the task is none of `tasks`, if there is no checkpoint yet, or if the vocabulary or the
        model in the config is not that of the checkpoints.
        """
        config = self.config()
        if config.task == "phrase":
            task = "" if "phrase" in tasks else f" of config.task={tasks[0]}"
            raise UserError(f"{self.path}: a phrase-based model, but this needs a neural model{task}")
        if config.task not in tasks:
            raise UserError(
                f"{self.path}: its task is {config.task!r}, but this needs {' or '.join(map(repr, tasks))}; "
                "`nmt-jax --help` lists the verbs"
            )
        if not self.started:
            raise UserError(f"{self.path}: no checkpoint yet; train first: nmt-jax train --workdir={self.path}")
        check_manifest(self.path, config)
        return config

    def metrics(self) -> list[dict[str, Any]]:
        """Returns the rows of the log. An incomplete last line, left by a crash, is skipped.

        Raises UserError if any other line is not a row, or if there is no log.
        """
        if not self.metrics_file.is_file():
            self.config()  # has a better message if the workdir is missing
            raise UserError(f"{self.metrics_file}: nothing has been logged yet; train first")
        lines = self.metrics_file.read_text(encoding="utf-8", errors="replace").split("\n")
        rows = []
        for number, line in enumerate(lines, start=1):
            row, rest = parse_row(line.strip())
            if row is not None:
                rows.append(row)
            if rest and number < len(lines):
                raise UserError(f"{self.metrics_file}:{number}: not a row of the log: {rest[:40]!r}; delete this line")
        return rows


def parse_row(line: str) -> tuple[dict[str, Any] | None, str]:
    """Returns the row of the log that `line` starts with, if any, and the text after it.

    A row is a JSON object of a step number and, by other names, numbers or null.
    """
    try:
        row, end = json.JSONDecoder().raw_decode(line)
    except (ValueError, RecursionError):
        return None, line
    if not isinstance(row, dict) or type(row.get("step")) is not int:
        return None, line
    if not all(value is None or type(value) in (int, float) for value in row.values()):
        return None, line
    return row, line[end:]


def write_manifest(workdir: pathlib.Path, config: ConfigDict) -> None:
    """Writes the values of the config that define the model, and the SHA-256 of each file in `workdir/vocab`."""
    folder = workdir / "vocab"
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    content = {
        "model": _model_part(config),
        "vocab": {str(path.relative_to(folder)): sha256(path) for path in files},
    }
    with whole_file(workdir / MANIFEST) as file:
        file.write((json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


def check_manifest(workdir: pathlib.Path, config: ConfigDict) -> None:
    """Raises UserError if a file of the vocabulary or a key of the model is not what the checkpoints were trained with.

    A workdir of an older version has no manifest, which is a warning.
    """
    path = workdir / MANIFEST
    if not path.exists():
        advice = "`nmt-jax train` writes one"
        warnings.warn(
            f"{workdir}: has no {MANIFEST}, so its vocabulary and config cannot be verified; {advice}", stacklevel=2
        )
        return
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        model, vocab = dict(content["model"]), dict(content["vocab"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise UserError(f"{path}: not a manifest; restore it from a copy, or delete it to skip the checks") from None
    # A key that the manifest lacks, because an older version wrote it, has its default.
    defaults = _model_part(ConfigDict(schema.defaults(config.model_name, config.task)))
    was_trained, found = defaults | model, defaults | _model_part(config)
    for key in filter(configs.defines_model, was_trained | found):
        was, now = was_trained.get(key, configs.ABSENT), found.get(key, configs.ABSENT)
        if was != now:
            raise UserError(
                f"{workdir / 'config.json'}: {key} was {was!r} when the checkpoints were written, and is {now!r} now; "
                "restore it"
            )
    for name, digest in vocab.items():
        file = workdir / "vocab" / name
        if not file.is_file():
            raise UserError(f"{file}: missing; restore the vocabulary of the checkpoints from a copy")
        if sha256(file) != digest:
            raise UserError(
                f"{file}: is not the vocabulary that the checkpoints were trained with; restore it from a copy"
            )


def _model_part(config: ConfigDict) -> dict[str, Any]:
    """The leaves of a config that must not change, as JSON returns them."""
    leaves = {key: value for key, value in configs.flatten(config).items() if configs.defines_model(key)}
    part: dict[str, Any] = json.loads(json.dumps(leaves))
    return part
