"""A job of SLURM, or an array of them for a sweep, that saves when it is told to end and queues itself again.

The script is a page of shell that `--dry_run` shows and that can be edited and submitted by hand. A library such as
submitit would send a pickled Python call in its place, which can be neither read nor changed.
"""

import itertools
import pathlib
import shlex
import subprocess
import sys
from collections.abc import Sequence

from absl import flags

from nmt_jax import config as configs
from nmt_jax.errors import UserError

REQUEUE = 138  # exit code of a run that SIGUSR1 ended: 128 + 10

SCRIPT = """#!/bin/bash
{settings}
# Written by `nmt-jax launch --on=slurm`. Submitting it again goes on where the run stopped.
{command}

srun --kill-on-bad-exit=1 "${{command[@]}}" &
srun=$!
trap 'kill -USR1 "$srun"' USR1  # the end of the time, or scancel --signal=USR1 --batch: save
wait "$srun"
code=$?
while kill -0 "$srun" 2>/dev/null; do  # the trap ended the first wait
    wait "$srun"
    code=$?
done
if [ "$code" -eq {requeue} ]; then
    scontrol requeue "${{SLURM_ARRAY_JOB_ID:+${{SLURM_ARRAY_JOB_ID}}_}}${{SLURM_ARRAY_TASK_ID:-$SLURM_JOB_ID}}"
fi
exit "$code"
"""


def launch(flag_values: flags.FlagValues, command: Sequence[str]) -> int:
    """Submit the script of `command`; sbatch says the job's number."""
    script = write_script(flag_values, command)
    if flag_values.dry_run:
        print(script, end="")
        return 0
    _logs(command).mkdir(parents=True, exist_ok=True)
    try:
        finished = subprocess.run(["sbatch"], input=script, text=True, capture_output=True, check=False)
    except FileNotFoundError:
        raise UserError("nmt-jax launch --on=slurm: there is no sbatch here: run it on a host of the cluster") from None
    if finished.returncode:
        raise UserError(f"sbatch: {finished.stderr.strip() or finished.stdout.strip()}")
    print(finished.stdout.strip())
    return 0


def write_script(flag_values: flags.FlagValues, command: Sequence[str]) -> str:
    """The batch script: one job of so many tasks, one a node; of a sweep an array of jobs, one a point."""
    own = dict(configs.split_override(text) for text in flag_values.sbatch)
    settings = {
        "job-name": flag_values.name,
        "nodes": str(flag_values.processes),
        "ntasks": str(flag_values.processes),
        "signal": f"B:USR1@{flag_values.grace}",
        "open-mode": "append",
        "output": str(_logs(command) / ("slurm-%A_%a.log" if command[0] == "sweep" else "slurm-%j.log")),
        **own,
    }
    if "nodes" not in own and ("ntasks" in own or "ntasks-per-node" in own):
        del settings["nodes"]
    lines = [f"#SBATCH --{key}={value}" if value else f"#SBATCH --{key}" for key, value in settings.items()]
    lines.append("#SBATCH --requeue")
    if command[0] == "train":
        text = f"command=({shlex.join(['nmt-jax', *command])})"
    else:
        points = _points(command)
        lines.insert(1, f"#SBATCH --array=0-{len(points) - 1}")
        rows = [f"    {number}) command=({shlex.join(['nmt-jax', *point])}) ;;" for number, point in enumerate(points)]
        text = "\n".join(['case "$SLURM_ARRAY_TASK_ID" in', *rows, "esac"])
    return SCRIPT.format(settings="\n".join(lines), command=text, requeue=REQUEUE)


def _points(command: Sequence[str]) -> list[list[str]]:
    """The training command of each point of a sweep, as its own dry run prints them."""
    process = [sys.executable, "-m", "nmt_jax", *command, "--dry_run"]
    finished = subprocess.run(process, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise UserError(finished.stderr.strip().removeprefix("nmt-jax: error: "))
    return [shlex.split(line)[1:] for line in finished.stdout.splitlines()]


def _logs(command: Sequence[str]) -> pathlib.Path:
    """The workdir of the command, where the logs go."""
    for flag, following in itertools.zip_longest(command, command[1:]):
        name, equals, value = flag.lstrip("-").partition("=")
        if flag.startswith("-") and name == "workdir" and (equals or following):
            return pathlib.Path(value if equals else following).absolute()
    raise UserError(f"nmt-jax launch: the command names no --workdir=FOLDER: {shlex.join(command)}")
