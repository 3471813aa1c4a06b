"""A SLURM job, or a job array for a sweep or for shares of the input, that saves before its limit and requeues itself.

The job is a shell script, which `--dry_run` prints and which can be edited and submitted by hand. A library such as
submitit would submit a pickled Python call instead, which cannot be read or changed.
"""

import pathlib
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence

from absl import flags

from nmt_jax import config as configs
from nmt_jax.distributed.parts import Parts
from nmt_jax.errors import UserError
from nmt_jax.launchers.names import NAME, OPTION, check_one_line, checked, value_of
from nmt_jax.storage.paths import is_remote, path_of

REQUEUE = 138  # exit code of a run ended by SIGUSR1: 128 + 10

SCRIPT = """#!/bin/bash
{settings}
# Written by `nmt-jax launch --on=slurm`. Submit it again to continue an interrupted run.
{command}

srun --kill-on-bad-exit=1 "${{command[@]}}" &
srun=$!
trap 'kill -USR1 "$srun"' USR1  # time limit, or scancel --signal=USR1 --batch: save
wait "$srun"
code=$?
while kill -0 "$srun" 2>/dev/null; do  # the trap interrupted the first wait
    wait "$srun"
    code=$?
done
if [ "$code" -eq {requeue} ]; then
    scontrol requeue "${{SLURM_ARRAY_JOB_ID:+${{SLURM_ARRAY_JOB_ID}}_}}${{SLURM_ARRAY_TASK_ID:-$SLURM_JOB_ID}}"
fi
exit "$code"
"""


def launch(flag_values: flags.FlagValues, command: Sequence[str]) -> int:
    """Submits the script of `command`; sbatch prints the number of the job."""
    script = write_script(flag_values, command)
    if flag_values.dry_run:
        print(script, end="")
        return 0
    output = value_of("output", command) if flag_values.array else None
    if output and Parts(path_of(output), {}).is_complete():  # the jobs cannot tell whether one of them wrote it
        raise UserError(f"{output}: exists and is complete; delete it, or use another --output")
    pathlib.Path(_logs(command)).parent.mkdir(parents=True, exist_ok=True)
    try:
        finished = subprocess.run(["sbatch"], input=script, text=True, capture_output=True, check=False)
    except FileNotFoundError:
        raise UserError("nmt-jax launch --on=slurm: sbatch not found; run this on a host of the cluster") from None
    if finished.returncode:
        raise UserError(f"sbatch: {finished.stderr.strip() or finished.stdout.strip()}")
    print(finished.stdout.strip())
    return 0


def write_script(flag_values: flags.FlagValues, command: Sequence[str]) -> str:
    """Returns the batch script: a job with one task per node, or an array.

    The array of a sweep has one job per point, that of `--array` one job per share of the lines.
    """
    is_array = command[0] == "sweep" or bool(flag_values.array)
    given = {checked("sbatch", key, OPTION): value for key, value in map(configs.split_override, flag_values.sbatch)}
    settings = {
        "job-name": checked("name", flag_values.name, NAME),
        "nodes": str(flag_values.processes),
        "ntasks": str(flag_values.processes),
        "signal": f"B:USR1@{flag_values.grace}",
        "open-mode": "append",
        "output": _logs(command).replace("%", "%%") + ("-%A_%a.log" if is_array else "-%j.log"),
        **given,
    }
    if "nodes" not in given and ("ntasks" in given or "ntasks-per-node" in given):
        del settings["nodes"]
    lines = [f"#SBATCH --{key}={_quoted(value)}" if value else f"#SBATCH --{key}" for key, value in settings.items()]
    lines.append("#SBATCH --requeue")
    text = f"command=({shlex.join(['nmt-jax', *command])})"
    if flag_values.array:
        lines.insert(1, f"#SBATCH --array=0-{flag_values.array - 1}")
        text = f'{text[:-1]} --processes={flag_values.array} --process="$SLURM_ARRAY_TASK_ID")'
    elif command[0] == "sweep":
        points = _points(command)
        lines.insert(1, f"#SBATCH --array=0-{len(points) - 1}")
        rows = [f"    {number}) command=({shlex.join(['nmt-jax', *point])}) ;;" for number, point in enumerate(points)]
        text = "\n".join(['case "$SLURM_ARRAY_TASK_ID" in', *rows, "esac"])
    return SCRIPT.format(settings="\n".join(lines), command=text, requeue=REQUEUE)


def _quoted(value: str) -> str:
    """Return the value of an option as sbatch reads it: with blanks, quotes or # only in double quotes."""
    if re.fullmatch(r"[^\s\"'\\#]*", value):
        return value
    return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'


def _points(command: Sequence[str]) -> list[list[str]]:
    """Returns the training command of each point of a sweep, as `nmt-jax sweep --dry_run` prints them."""
    process = [sys.executable, "-m", "nmt_jax", *command, "--dry_run"]
    finished = subprocess.run(process, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise UserError(finished.stderr.strip().removeprefix("nmt-jax: error: "))
    lines = re.split(r"\n(?=nmt-jax train )", finished.stdout.removesuffix("\n"))
    check_one_line(lines)
    return [shlex.split(line)[1:] for line in lines]


def _logs(command: Sequence[str]) -> str:
    """Returns where logs begin: `slurm` in the workdir of a training, or the output of another verb and `.slurm`.

    It is `slurm` in the current folder if these are in an object store.
    """
    output = value_of("output", command) if command[0] not in ("train", "sweep") else None
    if place := output or value_of("workdir", command):
        if is_remote(place):
            return f"{pathlib.Path.cwd()}/slurm"
        return f"{pathlib.Path(place).absolute()}{'.slurm' if output else '/slurm'}"
    raise UserError(f"nmt-jax launch: the command needs --workdir=FOLDER: {shlex.join(command)}")
