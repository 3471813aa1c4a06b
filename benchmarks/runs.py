"""Runs of `nmt-jax` that benchmarks need. What is done is not repeated, so an interrupted benchmark goes on."""

import pathlib
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks import measure


def nmt_jax(*arguments: object) -> None:
    """Run `nmt-jax` with its output on stderr; raises CalledProcessError if it fails."""
    command = [sys.executable, "-m", "nmt_jax", *map(str, arguments)]
    subprocess.run(command, stdout=sys.stderr, check=True, cwd=measure.ROOT)


def changes(flags: Iterable[str]) -> dict[str, Any]:
    """Return the keys and values of flags `--change=KEY=VALUE`."""
    return dict(flag.split("=", 1) for flag in flags)


def train(workdir: pathlib.Path, page: str, keys: Mapping[str, object], marker: str = "done") -> None:
    """Train a page of `configs`, such as `glue.py:task=cola`, with some keys changed, unless that is done.

    The file `marker` of the workdir says that it is done.
    """
    if not (workdir / marker).exists():
        flags = [f"--config.{key}={value}" for key, value in keys.items()]
        nmt_jax("train", f"--config={measure.ROOT / 'configs' / page}", f"--workdir={workdir}", *flags)
        (workdir / marker).touch()


def translated(workdir: pathlib.Path, source: pathlib.Path) -> list[str]:
    """Return the translations of a file, made unless they exist."""
    output = workdir / f"{source.name}.translated"
    if not output.exists():
        nmt_jax("translate", f"--workdir={workdir}", f"--input={source}", f"--output={output}")
    return read(output)


def read(path: pathlib.Path) -> list[str]:
    """Return the lines of a file."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]
