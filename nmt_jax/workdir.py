"""The folder of one run: enough to translate with, to go on from, and to carry to another machine."""

import dataclasses
import json
import pathlib
from typing import Any

from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.errors import UserError


@dataclasses.dataclass(frozen=True)
class Workdir:
    """Names of what lies in a run's folder, and its reading; `path` is made absolute, as Orbax wants it."""

    path: pathlib.Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", pathlib.Path(self.path).expanduser().absolute())

    @property
    def config_file(self) -> pathlib.Path:
        """The resolved config."""
        return self.path / "config.json"

    @property
    def metrics_file(self) -> pathlib.Path:
        """One JSON object a logged step."""
        return self.path / "metrics.jsonl"

    @property
    def vocab(self) -> pathlib.Path:
        """SentencePiece models."""
        return self.path / "vocab"

    @property
    def checkpoints(self) -> pathlib.Path:
        """Orbax checkpoints, a folder a step."""
        return self.path / "checkpoints"

    @property
    def tensorboard(self) -> pathlib.Path:
        """TensorBoard event files."""
        return self.path / "tensorboard"

    @property
    def started(self) -> bool:
        """Whether a checkpoint was finished here: from then on the model may not change."""
        return self.checkpoints.is_dir() and any(entry.name.isdigit() for entry in self.checkpoints.iterdir())

    def config(self) -> ConfigDict:
        """The config of the run that was begun here; UserError where none was."""
        if not self.path.is_dir():
            raise UserError(
                f"{self.path}: no such workdir; `nmt-jax train --config=FILE --workdir={self.path}` makes one"
            )
        if not self.config_file.is_file():
            raise UserError(f"{self.path}: not a workdir (no config.json in it); nmt-jax train makes one")
        return configs.read(self.config_file)

    def trained_config(self, *tasks: str) -> ConfigDict:
        """The config of a run that was trained for one of `tasks`; UserError where nothing was yet, or another."""
        config = self.config()
        if config.task not in tasks:
            raise UserError(
                f"{self.path}: its task is {config.task!r}, this is for {' or '.join(map(repr, tasks))}; "
                "`nmt-jax --help` lists the verbs"
            )
        if not self.started:
            raise UserError(f"{self.path}: no checkpoint yet; train first: nmt-jax train --workdir={self.path}")
        return config

    def metrics(self) -> list[dict[str, Any]]:
        """Rows of the log; a last line cut short by a crash is passed over, any other damage is a UserError."""
        if not self.metrics_file.is_file():
            self.config()  # a missing workdir has the better message
            raise UserError(f"{self.metrics_file}: nothing was logged yet; train first")
        lines = self.metrics_file.read_text(encoding="utf-8", errors="replace").split("\n")
        rows = []
        for number, line in enumerate(lines, start=1):
            try:
                rows += [json.loads(line)] if line else []
            except ValueError:
                if number < len(lines):
                    raise UserError(f"{self.metrics_file}:{number}: not a JSON object; delete the line") from None
        return rows
