"""The runs of a sweep: what they are called, what they change, and which of them differ in the seed alone."""

import dataclasses
import pathlib
import re
from collections.abc import Mapping, Sequence

from nmt_jax import config as configs
from nmt_jax.errors import UserError
from nmt_jax.workdir import Workdir

Point = Mapping[str, str]
BASE = "base"  # the folder of a point that changes nothing


@dataclasses.dataclass(frozen=True)
class Run:
    """One point of a sweep, with its seed where the sweep has seeds, and the folder that it is trained in."""

    point: Point
    workdir: Workdir

    @property
    def setting(self) -> Point:
        """What the point changes, but for the seed."""
        return {key: value for key, value in self.point.items() if key != "seed"}

    @property
    def log(self) -> pathlib.Path:
        """What training printed."""
        return self.workdir.path / "log.txt"


def name(point: Point) -> str:
    """The folder of a point: `score=dot,attention=global`."""
    changes = (f"{key.rpartition('.')[2]}={value}" for key, value in point.items())
    return ",".join(changes).replace("/", "-") or BASE


def find_runs(folder: pathlib.Path) -> list[Run]:
    """The runs in the folder of a sweep, by what they are called; UserError where there is none.

    Their keys are those that the folder's name names, and the values those of its config. Where a run failed before it
    had one, they are taken from the name.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; `nmt-jax sweep --config=FILE --workdir={folder}` makes one")
    workdirs = [
        Workdir(path)
        for path in sorted(folder.iterdir(), key=lambda path: _natural(path.name))
        if ("=" in path.name or path.name == BASE)
        and ((path / "config.json").is_file() or (path / "log.txt").is_file())
    ]
    if not workdirs:
        raise UserError(f"{folder}: not the folder of a sweep: no run such as d_model=512 is in it")
    flat = [_flat(workdir) for workdir in workdirs]
    known = {key: [config[key] for config in flat if key in config] for config in flat for key in config}
    runs = []
    for workdir, config in zip(workdirs, flat, strict=True):
        point = {}
        for tail, value in _changes(workdir.path.name):
            key = _full_key(tail, value, config, known)
            point[key] = config.get(key, value)
        runs.append(Run(point, workdir))
    return runs


def keys_of(runs: Sequence[Run]) -> list[str]:
    """Every key that a run changes, but for the seed."""
    return list(dict.fromkeys(key for run in runs for key in run.setting))


def base_values(runs: Sequence[Run]) -> dict[str, str]:
    """The value of each key where a run leaves it alone; without the keys that all of them change."""
    flat = [(run, _flat(run.workdir)) for run in runs]
    values = {
        key: [config[key] for run, config in flat if key not in run.point and key in config] for key in keys_of(runs)
    }
    return {key: own[0] for key, own in values.items() if own}


def by_setting(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs that differ in the seed alone, together; by the name of their point without it."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(name(run.setting), []).append(run)
    return groups


def _changes(folder: str) -> list[tuple[str, str]]:
    """`score=dot,attention=global` -> its pairs; a comma in a value is no new one unless a name and = follow."""
    return re.findall(r"(?:^|,)(\w+)=(.*?)(?=,\w+=|$)", folder)


def _full_key(tail: str, value: str, config: Mapping[str, str], known: Mapping[str, Sequence[str]]) -> str:
    """The config's key that ends in `tail`; of several the one that has the value, and differs between runs."""
    keys = [key for key in known if key.rpartition(".")[2] == tail]
    fits = [key for key in keys if config.get(key, "").replace("/", "-") == value] or keys
    varied = [key for key in fits if len(set(known[key])) > 1] or fits
    return varied[0] if varied else tail


def _flat(workdir: Workdir) -> dict[str, str]:
    """The config of a run by its dotted keys, values as a sweep writes them; empty where there is none."""
    if not workdir.config_file.is_file():
        return {}
    return {key: configs.format_value(value) for key, value in configs.flatten(workdir.config()).items()}


def _natural(text: str) -> list[tuple[bool, float, str]]:
    """Numbers in their own order: 8 before 16."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    return [(number, float(part) if number else 0.0, part) for k, part in enumerate(parts) for number in (k % 2 == 1,)]
