"""`nmt-jax sweep`: the points of a page's `sweep(add)`, trained one after the other, and their table."""

import pathlib
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from absl import flags

from nmt_jax import config as configs
from nmt_jax.errors import UserError
from nmt_jax.interrupts import Interrupted
from nmt_jax.workdir import Workdir

Point = Mapping[str, str]


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax sweep`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("config", None, "The experiment with a sweep(add): FILE.py or FILE.py:ARGUMENT.", **given)
    flags.DEFINE_string("workdir", None, "The folder of the sweep: a run's workdir a point in it.", **given)
    flags.DEFINE_multi_string(
        "override", [], "KEY=VALUE changes a key at every point; --config.KEY=VALUE is the same.", **given
    )
    flags.DEFINE_multi_string("only", [], "KEY=VALUE leaves out the points that change KEY to something else.", **given)
    flags.DEFINE_bool("dry_run", False, "Print the training commands and run nothing.", **given)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, runs and a table out."""
    if positional:
        raise UserError(f"nmt-jax sweep takes no {positional[0]!r}: the experiment is --config=FILE")
    if not (flag_values.config and flag_values.workdir):
        raise UserError("nmt-jax sweep needs --config=FILE with a sweep(add) and --workdir=FOLDER for its runs")
    overrides = dict(configs.split_override(text) for text in flag_values.override)
    only = dict(configs.split_override(text) for text in flag_values.only)
    points = select(configs.load_sweep(flag_values.config), only)
    for point in points:  # a mistake is told before hours of training
        configs.load(flag_values.config, {**overrides, **point})
    folder = pathlib.Path(flag_values.workdir)
    commands = [command(flag_values.config, folder, overrides, point) for point in points]
    if flag_values.dry_run:
        print("\n".join(shlex.join(["nmt-jax", *arguments]) for arguments in commands))
        return 0
    failed = [name(point) for point, arguments in zip(points, commands, strict=True) if _train(arguments)]
    print(table(folder, points))
    if failed:
        raise UserError(
            f"{folder}: {len(failed)} of {len(points)} runs failed: {', '.join(failed)}; their errors are above"
        )
    return 0


def select(points: Sequence[Point], only: Point) -> list[Point]:
    """The points that change the keys of `only` to its values; UserError where that leaves none."""
    for key in only:
        if not any(key in point for point in points):
            raise UserError(f"--only={key}: the sweep varies {', '.join(dict.fromkeys(k for p in points for k in p))}")
    selected = [point for point in points if all(point.get(key) == value for key, value in only.items())]
    if not selected:
        raise UserError(f"--only={only}: no point of the sweep is left")
    return selected


def name(point: Point) -> str:
    """The folder of a point: `score=dot,attention=global`."""
    return ",".join(f"{key.rpartition('.')[2]}={value}" for key, value in point.items()).replace("/", "-")


def command(spec: str, folder: pathlib.Path, overrides: Point, point: Point) -> list[str]:
    """The arguments of `nmt-jax` that train a point, or go on with it."""
    changes = [f"--config.{key}={value}" for key, value in {**overrides, **point}.items()]
    return ["train", f"--config={spec}", f"--workdir={folder / name(point)}", *changes]


def table(folder: pathlib.Path, points: Sequence[Point]) -> str:
    """Markdown, a row a point: what it changes, steps made, the best dev metric, speed (median), minutes."""
    keys = list(dict.fromkeys(key for point in points for key in point))
    rows = []
    metric, unit = "dev", "tokens"
    for point in points:
        workdir = Workdir(folder / name(point))
        if not workdir.metrics_file.is_file():
            rows.append([*(point.get(key, "") for key in keys), "0", "", "", ""])
            continue
        metric = f"dev/{workdir.config().train.early_stopping_metric}"
        log = workdir.metrics()
        measured = [row[metric] for row in log if row.get(metric) is not None]
        unit = "texts" if any("texts_per_second" in row for row in log) else "tokens"
        speeds = [row[f"{unit}_per_second"] for row in log if row.get(f"{unit}_per_second")]
        best = min if metric in ("dev/loss", "dev/perplexity") else max
        rows.append(
            [
                *(point.get(key, "") for key in keys),
                f"{max((row['step'] for row in log), default=0):,}",
                f"{best(measured):.2f}" if measured else "",
                f"{np.median(speeds):,.0f}" if speeds else "",
                f"{max((row.get('seconds', 0.0) for row in log), default=0.0) / 60:.0f}",
            ]
        )
    header = [*keys, "steps", metric, f"{unit}/s", "minutes"]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows])


def _train(arguments: Sequence[str]) -> int:
    """Train one point in a process of its own, so that what breaks there breaks nothing here -> its exit code."""
    print(shlex.join(["nmt-jax", *arguments]), file=sys.stderr, flush=True)
    process = subprocess.Popen([sys.executable, "-m", "nmt_jax", *arguments])
    try:
        code = process.wait()
    except KeyboardInterrupt:  # the run was told as well, and saves
        process.wait()
        raise Interrupted(signal.SIGINT) from None
    if code in (128 + signal.SIGINT, 128 + signal.SIGTERM):
        raise Interrupted(code - 128)
    return code
