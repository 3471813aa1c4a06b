"""Training of a sweep: its points, their training commands, and running those that have not finished."""

import datetime
import pathlib
import signal
import sys
import time
from collections.abc import Mapping, Sequence

from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.errors import UserError
from nmt_jax.interrupts import SIGNALS, Interrupted
from nmt_jax.sweeps.jobs import Job, last_line, run_jobs
from nmt_jax.sweeps.runs import Point, Run, main_measure, measured, name, read_log
from nmt_jax.training.record import has_ended, read_record
from nmt_jax.workdir import Workdir


def points(spec: str, only: Point | None = None, seeds: int = 0) -> list[Point]:
    """Returns the points of the sweep of `spec` with the values of `only`, each with seeds 0 … `seeds` - 1 if any.

    Raises UserError if no point is left, if the sweep itself varies the seed, or if it changes two keys whose last
    parts are equal, which the names of runs do not distinguish.
    """
    found = configs.load_sweep(spec)
    keys: dict[str, str] = {}
    for key in (key for point in found for key in point):
        if (other := keys.setdefault(key.rpartition(".")[2], key)) != key:
            raise UserError(
                f"{spec}: the sweep changes both {other} and {key}, whose last parts must differ; use two sweeps"
            )
    chosen = select(found, only or {})
    if not seeds:
        return chosen
    if any("seed" in point for point in chosen):
        raise UserError(f"--seeds={seeds}: the sweep of {spec} varies the seed itself")
    return [{**point, "seed": str(seed)} for point in chosen for seed in range(seeds)]


def select(points: Sequence[Point], only: Point) -> list[Point]:
    """Returns the points with the values of `only`. Raises UserError if there is none."""
    for key in only:
        if not any(key in point for point in points):
            keys = dict.fromkeys(key for point in points for key in point)
            raise UserError(f"--only={key}: the sweep does not vary this key, but {', '.join(keys)}")
    selected = [point for point in points if all(point.get(key) == value for key, value in only.items())]
    if not selected:
        raise UserError(f"--only={only}: no point of the sweep is left")
    return selected


def training_command(spec: str, folder: pathlib.Path, overrides: Mapping[str, str], point: Point) -> list[str]:
    """Returns the arguments of `nmt-jax` that start or continue the training of a point."""
    changes = [f"--config.{key}={value}" for key, value in {**overrides, **point}.items()]
    return ["train", f"--config={spec}", f"--workdir={folder / name(point)}", *changes]


def train_runs(
    runs: Sequence[Run], settings: Sequence[ConfigDict], commands: Sequence[Sequence[str]], parallel: int = 1
) -> dict[str, str]:
    """Trains the runs that have not finished, `parallel` at a time; returns the errors of failed runs by name.

    Each run is a process whose output is added to its `log.txt`. SIGINT and SIGTERM save all active runs and raise
    Interrupted.
    """
    jobs, by_name = [], {}
    for run, config, arguments in zip(runs, settings, commands, strict=True):
        if not _is_done(run.workdir, config):
            by_name[run.workdir.path.name] = run
            jobs.append(Job(run.workdir.path.name, [sys.executable, "-m", "nmt_jax", *arguments], run.log))
    if len(jobs) < len(runs):
        print(f"{len(runs) - len(jobs)} of {len(runs)} runs have already finished", file=sys.stderr)
    failed: dict[str, str] = {}
    count, began = 0, time.monotonic()

    def report(job: Job, code: int) -> None:
        nonlocal count
        count += 1
        try:
            outcome = _outcome(by_name[job.name])
        except UserError as error:  # a damaged file
            outcome = str(error)
        if code:
            reason = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            failed[job.name] = f"{last_line(job.log) or 'no output'} ({reason}; {job.log})"
            outcome = "interrupted" if code - 128 in SIGNALS else "failed"
        left = datetime.timedelta(seconds=round((time.monotonic() - began) / count * (len(jobs) - count)))
        print(f"[{count}/{len(jobs)}] {job.name}: {outcome}; {left} left", file=sys.stderr, flush=True)

    try:
        run_jobs(jobs, parallel, report)
    except Interrupted:
        print(f"{count} of {len(jobs)} runs were started; the same command continues the sweep", file=sys.stderr)
        raise
    return failed


def _is_done(workdir: Workdir, config: ConfigDict) -> bool:
    """Returns whether training with this config would do nothing; prints keys that differ from those of the run."""
    if not workdir.config_file.is_file() or not has_ended(config, read_record(workdir)):
        return False
    old = workdir.config()
    try:
        configs.check_same_model(old, config)
    except UserError:
        return False  # training reports it
    before, now = configs.flatten(old), configs.flatten(config)
    for key in before:
        if key in now and before[key] != now[key] and not key.startswith("train."):
            print(f"nmt-jax: {workdir.path}: was trained with {key}={before[key]}, not {now[key]}", file=sys.stderr)
    return True


def _outcome(run: Run) -> str:
    """Returns the result and the training time of a run as text."""
    log, metric = read_log(run), main_measure([run])
    value, minutes = measured(run, log, metric), measured(run, log, "minutes")
    return f"{metric} {'unknown' if value is None else f'{value:.4g}'} after {minutes or 0:.1f} minutes"
