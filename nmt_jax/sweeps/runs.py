"""The runs of a sweep: names, the keys they change, groups that differ only in the seed, and results."""

import dataclasses
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nmt_jax import config as configs
from nmt_jax.errors import UserError
from nmt_jax.training.record import best_step, has_ended, read_record
from nmt_jax.workdir import Workdir

Point = Mapping[str, str]
Log = Sequence[dict[str, Any]]
BASE = "base"  # name of a point that changes no key


@dataclasses.dataclass(frozen=True)
class Run:
    """One point of a sweep, including the seed if the sweep has several, and its workdir."""

    point: Point
    workdir: Workdir

    @property
    def setting(self) -> Point:
        """The changed keys and their values, without the seed."""
        return {key: value for key, value in self.point.items() if key != "seed"}

    @property
    def log(self) -> pathlib.Path:
        """The output of training."""
        return self.workdir.path / "log.txt"


def name(point: Point) -> str:
    """Returns the name of the folder of a point: `score=dot,attention=global`."""
    changes = (f"{key.rpartition('.')[2]}={value}" for key, value in point.items())
    return ",".join(changes).replace("/", "-") or BASE


def find_runs(folder: pathlib.Path) -> list[Run]:
    """Returns the runs in the folder of a sweep, sorted by name. Raises UserError if there is none.

    The changed keys are those in the name of a run, their values those of its config, or those in the name if the run
    failed before it had a config.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; create it with `nmt-jax sweep --config=FILE --workdir={folder}`")
    workdirs = [
        Workdir(path)
        for path in sorted(folder.iterdir(), key=lambda path: natural(path.name))
        if ("=" in path.name or path.name == BASE)
        and ((path / "config.json").is_file() or (path / "log.txt").is_file())
    ]
    if not workdirs:
        raise UserError(f"{folder}: not the folder of a sweep; it contains no run with a name like d_model=512")
    flat = [flat_config(workdir) for workdir in workdirs]
    known = {key: [config[key] for config in flat if key in config] for config in flat for key in config}
    runs = []
    for workdir, config in zip(workdirs, flat, strict=True):
        # Splits `score=dot,attention=global`; values may contain commas that no `name=` follows.
        changes = re.findall(r"(?:^|,)(\w+)=(.*?)(?=,\w+=|$)", workdir.path.name)
        keys = {_full_key(tail, value, config, known): value for tail, value in changes}
        runs.append(Run({key: config.get(key, value) for key, value in keys.items()}, workdir))
    return runs


def keys_of(runs: Sequence[Run]) -> list[str]:
    """Returns all keys that any run changes, without the seed."""
    return list(dict.fromkeys(key for run in runs for key in run.setting))


def base_values(runs: Sequence[Run]) -> dict[str, str]:
    """Returns the value of each key in runs that do not change it; keys that all runs change are omitted."""
    flat = [(run, flat_config(run.workdir)) for run in runs]
    values = {
        key: [config[key] for run, config in flat if key not in run.point and key in config] for key in keys_of(runs)
    }
    return {key: found[0] for key, found in values.items() if found}


def by_setting(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Groups runs that differ only in the seed, by the name of their point without the seed."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(name(run.setting), []).append(run)
    return groups


def main_measure(runs: Sequence[Run]) -> str:
    """Returns the metric that chooses the best checkpoint, `dev/…`, or `dev` if no run has started."""
    for run in runs:
        if run.workdir.config_file.is_file():
            return f"dev/{run.workdir.config().train.early_stopping_metric}"
    return "dev"


def has_finished(run: Run) -> bool:
    """Returns whether a run has reached the end set by its config."""
    return run.workdir.config_file.is_file() and has_ended(run.workdir.config(), read_record(run.workdir))


def read_log(run: Run) -> Log:
    """Returns the rows of a run's `metrics.jsonl`, none if it has not started."""
    return run.workdir.metrics() if run.workdir.metrics_file.is_file() else []


def measured(run: Run, log: Log, measure: str) -> float | None:
    """Returns the value of a measure in one run, or None if it has none yet."""
    if measure == "steps":
        return float(max((row["step"] for row in log), default=0))
    if measure == "minutes":
        return max((row.get("seconds") or 0.0 for row in log), default=0.0) / 60 if log else None
    if measure == "parameters":
        record = read_record(run.workdir)
        return float(record.parameters) if record else None
    if measure.endswith("_per_second"):
        speeds = [row[measure] for row in log if row.get(measure)]
        return float(np.median(speeds)) if speeds else None
    best = best_step(log, main_measure([run]))
    return next((row[measure] for row in reversed(log) if row["step"] <= best and row.get(measure) is not None), None)


def flat_config(workdir: Workdir) -> dict[str, str]:
    """Returns the config of a run as text by dotted keys; empty if it has none."""
    if not workdir.config_file.is_file():
        return {}
    return {key: configs.format_value(value) for key, value in configs.flatten(workdir.config()).items()}


def natural(text: str) -> list[tuple[bool, float, str]]:
    """Returns a sort key that orders numbers by value: 8 before 16."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    return [(number, float(part) if number else 0.0, part) for k, part in enumerate(parts) for number in (k % 2 == 1,)]


def _full_key(tail: str, value: str, config: Mapping[str, str], known: Mapping[str, Sequence[str]]) -> str:
    """Returns the config key that ends in `tail`; prefers keys that have the value, then keys that vary."""
    keys = [key for key in known if key.rpartition(".")[2] == tail]
    matching = [key for key in keys if config.get(key, "").replace("/", "-") == value] or keys
    varied = [key for key in matching if len(set(known[key])) > 1] or matching
    return varied[0] if varied else tail
