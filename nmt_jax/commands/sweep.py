"""`nmt-jax sweep`: the points of a page's `sweep(add)`, trained so many at a time, and their table."""

import datetime
import pathlib
import shlex
import signal
import sys
import time
from collections.abc import Container, Sequence
from typing import Any

from absl import flags
from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.errors import UserError
from nmt_jax.interrupts import SIGNALS, Interrupted
from nmt_jax.reporting.sweep_table import WRITERS, collect, has_finished, main_measure, measured, read_log
from nmt_jax.sweeps.jobs import Job, last_line, run_jobs
from nmt_jax.sweeps.runs import Point, Run, find_runs, name
from nmt_jax.training.record import has_ended, read_record
from nmt_jax.workdir import Workdir


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax sweep`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("config", None, "The experiment with a sweep(add): FILE.py or FILE.py:ARGUMENT.", **given)
    flags.DEFINE_string("workdir", None, "The folder of the sweep: a run's workdir a point in it.", **given)
    flags.DEFINE_multi_string(
        "override", [], "KEY=VALUE changes a key at every point; --config.KEY=VALUE is the same.", **given
    )
    flags.DEFINE_multi_string("only", [], "KEY=VALUE leaves out the points that change KEY to something else.", **given)
    flags.DEFINE_integer(
        "seeds", 0, "Train every point with seeds 0 … N-1; 0: with the page's.", lower_bound=0, **given
    )
    flags.DEFINE_integer(
        "parallel",
        1,
        "So many points at a time; above 1, what they print is in POINT/log.txt only.",
        lower_bound=1,
        **given,
    )
    flags.DEFINE_bool("dry_run", False, "Print the training commands and run nothing.", **given)
    flags.DEFINE_bool(
        "collect", False, "Train nothing: the table, without --config of every run in --workdir.", **given
    )
    flags.DEFINE_list(
        "measures", [], "The table's: dev/bleu, any key of metrics.jsonl, steps, minutes, parameters.", **given
    )
    flags.DEFINE_enum("format", "markdown", list(WRITERS), "Of the table.", **given)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, runs and a table out."""
    if positional:
        raise UserError(f"nmt-jax sweep takes no {positional[0]!r}: the experiment is --config=FILE")
    if not (flag_values.workdir and (flag_values.config or flag_values.collect)):
        raise UserError("nmt-jax sweep needs --config=FILE with a sweep(add) and --workdir=FOLDER for its runs")
    folder = pathlib.Path(flag_values.workdir)
    if not flag_values.config:
        runs = find_runs(folder)
        _show(runs, flag_values)
        return 0
    overrides = dict(configs.split_override(text) for text in flag_values.override)
    only = dict(configs.split_override(text) for text in flag_values.only)
    if flag_values.seeds and "seed" in overrides:
        raise UserError("--seeds and --config.seed exclude each other: the seeds are 0 … N-1, or the one given")
    chosen = points(flag_values.config, only, flag_values.seeds)
    # A mistake is told before hours of training.
    settings = [configs.load(flag_values.config, {**overrides, **point}) for point in chosen]
    runs = [Run(point, Workdir(folder / name(point))) for point in chosen]
    commands = [command(flag_values.config, folder, overrides, point) for point in chosen]
    if flag_values.dry_run:
        print("\n".join(shlex.join(["nmt-jax", *arguments]) for arguments in commands))
        return 0
    failed = {} if flag_values.collect else train(runs, settings, commands, flag_values.parallel)
    _show(runs, flag_values, failed)
    for point, error in failed.items():
        print(f"nmt-jax: {point}: {error}", file=sys.stderr)
    if failed:
        raise UserError(
            f"{folder}: {len(failed)} of {len(runs)} runs failed: {', '.join(failed)}; the same command tries again"
        )
    return 0


def points(spec: str, only: Point | None = None, seeds: int = 0) -> list[Point]:
    """The points of the page `spec` that have the values of `only`, each with the seeds 0 … `seeds` - 1 if any.

    UserError where that leaves none, or where the sweep itself varies the seed.
    """
    chosen: list[Point] = list(select(configs.load_sweep(spec), only or {}))
    if not seeds:
        return chosen
    if any("seed" in point for point in chosen):
        raise UserError(f"--seeds={seeds}: the sweep of {spec} varies the seed itself")
    return [{**point, "seed": str(seed)} for point in chosen for seed in range(seeds)]


def select(points: Sequence[Point], only: Point) -> list[Point]:
    """The points that change the keys of `only` to its values; UserError where that leaves none."""
    for key in only:
        if not any(key in point for point in points):
            raise UserError(f"--only={key}: the sweep varies {', '.join(dict.fromkeys(k for p in points for k in p))}")
    selected = [point for point in points if all(point.get(key) == value for key, value in only.items())]
    if not selected:
        raise UserError(f"--only={only}: no point of the sweep is left")
    return selected


def command(spec: str, folder: pathlib.Path, overrides: Point, point: Point) -> list[str]:
    """The arguments of `nmt-jax` that train a point, or go on with it."""
    changes = [f"--config.{key}={value}" for key, value in {**overrides, **point}.items()]
    return ["train", f"--config={spec}", f"--workdir={folder / name(point)}", *changes]


def train(
    runs: Sequence[Run], settings: Sequence[ConfigDict], commands: Sequence[Sequence[str]], parallel: int = 1
) -> dict[str, str]:
    """Train the runs that have not ended yet, `parallel` at a time -> the errors of those that failed, by name.

    Each is a process of its own, whose output is added to its `log.txt`. SIGINT and SIGTERM save all that run, and
    raise Interrupted.
    """
    jobs, by_name = [], {}
    for run, config, arguments in zip(runs, settings, commands, strict=True):
        if not _is_done(run.workdir, config):
            by_name[run.workdir.path.name] = run
            jobs.append(Job(run.workdir.path.name, [sys.executable, "-m", "nmt_jax", *arguments], run.log))
    if len(jobs) < len(runs):
        print(f"{len(runs) - len(jobs)} of {len(runs)} runs have ended already", file=sys.stderr)
    failed: dict[str, str] = {}
    count, began = 0, time.monotonic()

    def ended(job: Job, code: int) -> None:
        nonlocal count
        count += 1
        outcome = _outcome(by_name[job.name])
        if code:
            reason = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            failed[job.name] = f"{last_line(job.log) or 'it printed nothing'} ({reason}; {job.log})"
            outcome = "interrupted" if code - 128 in SIGNALS else "failed"
        left = datetime.timedelta(seconds=round((time.monotonic() - began) / count * (len(jobs) - count)))
        print(f"[{count}/{len(jobs)}] {job.name}: {outcome}; {left} left", file=sys.stderr, flush=True)

    try:
        run_jobs(jobs, parallel, ended)
    except Interrupted:
        print(f"{count} of {len(jobs)} runs were begun; the same command goes on with the sweep", file=sys.stderr)
        raise
    return failed


def _is_done(workdir: Workdir, config: ConfigDict) -> bool:
    """Whether training a workdir with this config would do nothing; says what it was trained with if that differs."""
    if not workdir.config_file.is_file() or not has_ended(config, read_record(workdir)):
        return False
    old = workdir.config()
    try:
        configs.check_same_model(old, config)
    except UserError:
        return False  # to be told by training
    before, now = configs.flatten(old), configs.flatten(config)
    for key in before:
        if key in now and before[key] != now[key] and not key.startswith("train."):
            print(f"nmt-jax: {workdir.path}: was trained with {key}={before[key]}, not {now[key]}", file=sys.stderr)
    return True


def _outcome(run: Run) -> str:
    """What a run came to, and how long it took."""
    log, metric = read_log(run), main_measure([run])
    value, minutes = measured(run, log, metric), measured(run, log, "minutes")
    return f"{metric} {'unknown' if value is None else f'{value:.4g}'} after {minutes or 0:.1f} minutes"


def _show(runs: Sequence[Run], flag_values: flags.FlagValues, failed: Container[str] = ()) -> None:
    """The table on stdout, and on stderr which runs it shows before their end, but for those that failed."""
    print(WRITERS[flag_values.format](collect(runs, flag_values.measures)))
    names = [run.workdir.path.name for run in runs if not has_finished(run)]
    unfinished = [name for name in names if name not in failed]
    if unfinished:
        print(
            f"nmt-jax: {len(unfinished)} of {len(runs)} runs have not ended: {', '.join(unfinished)}", file=sys.stderr
        )
