"""Runs of `nmt-jax` that benchmarks need. What is done is not repeated, so an interrupted benchmark goes on."""

import argparse
import pathlib
import subprocess
import sys
from collections.abc import Mapping

from benchmarks import measure


def nmt_jax(*arguments: object) -> None:
    """Run `nmt-jax` with its output on stderr; raises CalledProcessError if it fails."""
    command = [sys.executable, "-m", "nmt_jax", *map(str, arguments)]
    subprocess.run(command, stdout=sys.stderr, check=True, cwd=measure.ROOT)


def parser(seeds: str = "0,1") -> argparse.ArgumentParser:
    """Return a parser of the flags of all benchmarks that train: a folder, `--seeds=0,1` and `--change=KEY=VALUE`.

    `folder` becomes an absolute path, `seeds` a list of numbers, and `change` a list of keys and values.
    """
    found = argparse.ArgumentParser()
    found.add_argument("folder", type=lambda path: pathlib.Path(path).absolute())
    found.add_argument("--seeds", type=numbers, default=seeds)
    found.add_argument("--change", type=change, action="append", default=[], metavar="KEY=VALUE")
    return found


def numbers(text: str) -> list[int]:
    """Return the numbers of a list separated by commas."""
    return [int(number) for number in text.split(",")]


def change(text: str) -> tuple[str, str]:
    """Return the key and the value of KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text}: write KEY=VALUE")
    return key, value


def train(workdir: pathlib.Path, page: str, keys: Mapping[str, object], marker: str = "done") -> None:
    """Train a page of `configs`, such as `glue.py:task=cola`, with some keys changed, unless that is done.

    The file `marker` of the workdir says that it is done.
    """
    if not (workdir / marker).exists():
        flags = [f"--config.{key}={value}" for key, value in keys.items()]
        nmt_jax("train", f"--config={measure.ROOT / 'configs' / page}", f"--workdir={workdir}", *flags)
        (workdir / marker).touch()


def translated(workdir: pathlib.Path, source: pathlib.Path, *search: str) -> list[str]:
    """Return the translations of a file, made with some flags of `nmt-jax translate` unless they exist."""
    output = workdir / "".join([source.name, *search, ".translated"])
    if not output.exists():
        nmt_jax("translate", f"--workdir={workdir}", f"--input={source}", f"--output={output}", *search)
    return read(output)


def read(path: pathlib.Path) -> list[str]:
    """Return the lines of a file."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]
