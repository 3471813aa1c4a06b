"""`nmt-jax sweep`: trains the points of the sweep of a config file, and prints a table of their results."""

import itertools
import shlex
import sys
from collections.abc import Container, Sequence

from absl import flags

from nmt_jax import config as configs
from nmt_jax.commands import streams
from nmt_jax.commands.shared_flags import define_override_flag, overrides
from nmt_jax.errors import UserError
from nmt_jax.reporting.sweep_table import WRITERS, collect
from nmt_jax.schema.number_flags import define_integer
from nmt_jax.storage.paths import local_path_of
from nmt_jax.sweeps.runs import Run, find_runs, has_finished, name
from nmt_jax.sweeps.train_sweep import points, train_runs, training_command
from nmt_jax.workdir import Workdir


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax sweep`."""
    flags.DEFINE_string("config", None, "Config file with a sweep(add): FILE.py or FILE.py:ARGUMENT.", flag_values)
    flags.DEFINE_string("workdir", None, "Folder of the sweep; it contains the workdirs of the runs.", flag_values)
    define_override_flag(flag_values)
    flags.DEFINE_multi_string("only", [], "KEY=VALUE: train only the points with this value of KEY.", flag_values)
    help_text = "Train every point with seeds 0 … N-1; 0: with the seed of the config."
    define_integer(flag_values, "seeds", 0, help_text, low=0, high=1000)
    help_text = "Number of runs at a time; if more than 1, their output is only in RUN/log.txt."
    define_integer(flag_values, "parallel", 1, help_text, low=1, high=1000)
    flags.DEFINE_bool("dry_run", False, "Print the training commands without running them.", flag_values)
    help_text = "Print the table without training; without --config, of all runs in --workdir."
    flags.DEFINE_bool("collect", False, help_text, flag_values)
    help_text = "Columns: dev/bleu or other keys of metrics.jsonl, steps, minutes, parameters."
    flags.DEFINE_list("measures", [], help_text, flag_values)
    flags.DEFINE_enum("format", "markdown", list(WRITERS), "Format of the table.", flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Train the runs that have not finished, and print the table."""
    streams.check_no_arguments("sweep", positional, "--config=FILE")
    if not (flag_values.workdir and (flag_values.config or flag_values.collect)):
        raise UserError("nmt-jax sweep needs --config=FILE with a sweep(add) and --workdir=FOLDER for its runs")
    folder, spec = local_path_of(flag_values.workdir), flag_values.config
    if not spec:
        _print_table(find_runs(folder), flag_values)
        return 0
    changes = overrides(flag_values)
    only = dict(configs.split_override(text) for text in flag_values.only)
    if flag_values.seeds and "seed" in changes:
        raise UserError("--seeds and --config.seed cannot be used together")
    chosen = points(spec, only, flag_values.seeds)
    # Resolved before anything is trained, so that errors are reported at once.
    settings = [configs.load(spec, {**changes, **point}) for point in chosen]
    runs = [Run(point, Workdir(folder / name(point))) for point in chosen]
    for one, other in itertools.combinations(runs, 2):
        if one.workdir.path == other.workdir.path:
            raise UserError(
                f"{spec}: the points {one.point} and {other.point} would both be trained in {one.workdir.path}; "
                "choose values that differ in more than / and -"
            )
    commands = [training_command(spec, folder, changes, point) for point in chosen]
    if flag_values.dry_run:
        print("\n".join(shlex.join(["nmt-jax", *arguments]) for arguments in commands))
        return 0
    failed = {} if flag_values.collect else train_runs(runs, settings, commands, flag_values.parallel)
    _print_table(runs, flag_values, failed)
    for run, error in failed.items():
        print(f"nmt-jax: {run}: {error}", file=sys.stderr)
    if failed:
        raise UserError(
            f"{folder}: {len(failed)} of {len(runs)} runs failed: {', '.join(failed)}; the same command retries them"
        )
    return 0


def _print_table(runs: Sequence[Run], flag_values: flags.FlagValues, failed: Container[str] = ()) -> None:
    """Print the table, and on stderr the runs that have neither finished nor failed."""
    print(WRITERS[flag_values.format](collect(runs, flag_values.measures)))
    names = [run.workdir.path.name for run in runs if not has_finished(run)]
    if rest := [name for name in names if name not in failed]:
        print(f"nmt-jax: {len(rest)} of {len(runs)} runs have not finished: {', '.join(rest)}", file=sys.stderr)
