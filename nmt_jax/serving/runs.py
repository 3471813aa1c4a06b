"""The runs below a folder: their state, what differs between their configs, and their curves, while they train."""

import itertools
import math
import os
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from nmt_jax.errors import UserError, explain, one_line
from nmt_jax.sweeps.jobs import last_line
from nmt_jax.sweeps.runs import BASE, flat_config, natural
from nmt_jax.training.lock import is_held
from nmt_jax.training.record import best_step, has_ended, higher_is_better, read_record
from nmt_jax.workdir import Workdir, parse_row

MOST_RUNS = 2000
MOST_LEVELS = 6  # of folders below the folder
MOST_BYTES = 32 << 20  # of a log that are read at once

Rows = Sequence[Mapping[str, Any]]


class Lines(NamedTuple):
    """Whole lines of a log from some position on.

    rows: those that are rows; num_damaged: the number of others. since: where the next lines begin, for `read_log`.
    restarted: whether the log is not the one of `since`, so that the rows are from its beginning.
    """

    rows: Rows
    num_damaged: int
    since: str
    restarted: bool


def read_log(file: pathlib.Path, since: str = "") -> Lines:
    """Return the rows that were added to a log after `since`, "" for its beginning. Raises OSError if it is gone."""
    if not _is_own(file):
        raise FileNotFoundError
    with file.open("rb") as log:
        status = os.fstat(log.fileno())
        identity = f"{status.st_dev:x}.{status.st_ino:x}"
        known, _, digits = since.rpartition("-")
        start = int(digits) if known == identity and re.fullmatch("[0-9]{1,18}", digits) else 0
        restarted = bool(since) and since != f"{identity}-{start}"
        log.seek(max(start - 1, 0))
        if start and log.read(1) != b"\n":  # it was shortened or written again
            start, restarted = 0, True
            log.seek(0)
        data = log.read(MOST_BYTES)
    size = data.rfind(b"\n") + 1 or (len(data) if len(data) == MOST_BYTES else 0)
    found = [parse_row(line.strip()) for line in data[:size].decode("utf-8", "replace").split("\n")]
    rows = [row for row, _ in found if row is not None]
    return Lines(rows, sum(bool(rest) for _, rest in found), f"{identity}-{start + size}", restarted)


class Summary(NamedTuple):
    """What the table shows of a run: its row, its config as text by dotted keys, and the measures that it logged."""

    row: dict[str, Any]
    config: dict[str, str]
    measures: set[str]


class RunFolder:
    """The workdirs below a folder, by their path below it. Nothing outside the folder is read.

    served: names of models by their workdirs, as given to the server.
    """

    def __init__(self, folder: pathlib.Path, served: Mapping[pathlib.Path, str]) -> None:
        self.folder = folder.resolve()
        self._served = {path.resolve(): name for path, name in served.items()}
        self._seen: set[str] = set()
        self._summaries: dict[str, tuple[Any, Summary]] = {}  # with the state of the files they are made of

    def listing(self) -> dict[str, pathlib.Path]:
        """Return the workdirs by name; links are not followed."""
        if _is_workdir(self.folder):
            found = {self.folder.name: self.folder}
        else:
            walk = itertools.islice(self._walk(self.folder, MOST_LEVELS), MOST_RUNS)
            found = {path.relative_to(self.folder).as_posix(): path for path in walk}
        self._seen.update(found)
        return found

    def table(self) -> dict[str, Any]:
        """Return a row for each run, and all measures that any of them logged.

        differs: the keys of a run's config that are not the same in all configs, with their values.
        """
        found = [self._summary(name, path) for name, path in self.listing().items()]
        configs = [one.config for one in found if one.config]
        keys = dict.fromkeys(key for config in configs for key in config)
        varied = [key for key in keys if len({config.get(key) for config in configs}) > 1]
        rows = [one.row | {"differs": {key: one.config[key] for key in varied if key in one.config}} for one in found]
        measures = sorted(set().union(*(one.measures for one in found)))
        return {"folder": self.folder.name, "runs": rows, "measures": measures}

    def curves(self, names: Sequence[str], measures: Sequence[str], since: Sequence[str]) -> list[dict[str, Any]]:
        """Return the points [step, value] of measures that were logged after `since`, for each run.

        Raises UserError for a name that never was one of a run.
        """
        listing = self.listing()
        for name in names:
            if name not in self._seen:
                raise UserError(f"runs: {name!r:.80} is not a run of the folder; /api/runs lists them")
        return [_curve(name, listing.get(name), measures, begin) for name, begin in zip(names, since, strict=True)]

    def _walk(self, folder: pathlib.Path, levels: int) -> Iterator[pathlib.Path]:
        """Yield all workdirs below a folder; inside of workdirs there are none."""
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: natural(entry.name))
        except OSError:
            return
        for entry in entries:
            if entry.name.startswith(".") or not entry.name.isprintable() or not entry.is_dir(follow_symlinks=False):
                continue
            path = pathlib.Path(entry.path)
            if _is_workdir(path):
                yield path
            elif levels:
                yield from self._walk(path, levels - 1)

    def _summary(self, name: str, path: pathlib.Path) -> Summary:
        """Return the summary of a run, read again if its files have changed."""
        running = is_held(path)
        files = ("config.json", "metrics.jsonl", "checkpoints", "log.txt")
        stamp = running, *(_stamp(path / file) for file in files)
        if name not in self._summaries or self._summaries[name][0] != stamp:
            served = {"served": self._served.get(path)}
            self._summaries[name] = stamp, _summarize(name, Workdir(path), running, served, self.folder)
        return self._summaries[name][1]


def _summarize(name: str, workdir: Workdir, running: bool, served: Mapping[str, Any], folder: pathlib.Path) -> Summary:
    """Return the summary of a run; what is damaged or missing is named in its `problem`."""
    row: dict[str, Any] = {"run": name, "folder": name.rpartition("/")[0], "state": "running", "problem": "", **served}
    row |= dict.fromkeys(("task", "model", "parameters", "step", "steps", "changed", "measure", "best", "best_step"))
    config: dict[str, str] = {}
    rows: Rows = []
    try:
        row["changed"] = max(filter(None, (_stamp(file)[1] for file in _files(workdir))), default=None)
        if _is_own(workdir.metrics_file):
            lines = read_log(workdir.metrics_file)
            rows = lines.rows
            row["problem"] = _damage(lines)
            row["step"] = max((one["step"] for one in rows), default=None)
        if not _is_own(workdir.config_file):
            log = workdir.path / "log.txt"
            failed = last_line(log) if _is_own(log) else ""
            return Summary(row | {"state": "failed", "problem": failed or "no config.json"}, {}, _measures(rows))
        settings, record = workdir.config(), read_record(workdir)
        config = flat_config(workdir)
        measure = f"dev/{settings.train.early_stopping_metric}"
        best = best_step(rows, measure)
        values = [one[measure] for one in rows if one["step"] == best and one.get(measure) is not None]
        row |= {
            "task": settings.get("task"),
            "model": settings.get("model_name"),
            "parameters": record.parameters if record else None,
            "steps": settings.train.steps,
            "measure": measure,
            "higher_is_better": higher_is_better(measure),
            "best": values[0] if values else None,
            "best_step": best if values else None,
        }
        if not running:
            row["state"] = "finished" if has_ended(settings, record) else "stopped"
    except (UserError, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        reason = (explain(error) or f"damaged: {error!r}").replace(f"{folder}{os.sep}", "")
        row |= {"state": "running" if running else "damaged", "problem": one_line(reason)[:300]}
    return Summary(row, config, _measures(rows))


def _curve(name: str, path: pathlib.Path | None, measures: Sequence[str], since: str) -> dict[str, Any]:
    """Return the new points of one run; path: None if it was deleted."""
    answer = {"run": name, "since": since, "restarted": False, "problem": "", "points": {}}
    try:
        if path is None:
            raise FileNotFoundError
        lines = read_log(Workdir(path).metrics_file, since)
    except OSError:
        return answer | {"problem": "nothing is logged" if path and path.is_dir() else "was deleted"}
    points = {
        measure: [[row["step"], row[measure]] for row in lines.rows if _is_finite(row.get(measure))]
        for measure in measures
    }
    return answer | {"since": lines.since, "restarted": lines.restarted, "problem": _damage(lines), "points": points}


def _damage(lines: Lines) -> str:
    count = lines.num_damaged
    return f"metrics.jsonl: {count} damaged line{'s' * (count > 1)}" if count else ""


def _measures(rows: Rows) -> set[str]:
    return {key for row in rows for key, value in row.items() if value is not None} - {"step"}


def _is_finite(value: Any) -> bool:
    return value is not None and math.isfinite(value)


def _is_workdir(path: pathlib.Path) -> bool:
    """Whether a folder is a workdir, or a point of a sweep that failed before it had a config."""
    if _is_own(path / "config.json") or _is_own(path / "metrics.jsonl"):
        return True
    return ("=" in path.name or path.name == BASE) and _is_own(path / "log.txt")


def _is_own(path: pathlib.Path) -> bool:
    """Whether a path is a file, and no link to one somewhere else."""
    return path.is_file() and not path.is_symlink()


def _files(workdir: Workdir) -> tuple[pathlib.Path, ...]:
    return workdir.config_file, workdir.metrics_file, workdir.path / "log.txt"


def _stamp(path: pathlib.Path) -> tuple[int, float, int]:
    """The inode, time of change and size of a file or folder; zeros if there is none."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0.0, 0
    return status.st_ino, status.st_mtime, status.st_size
