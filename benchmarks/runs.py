"""Runs of `nmt-jax` that benchmarks need. What is done is not repeated, so an interrupted benchmark goes on."""

import argparse
import json
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

    The file `marker` of the workdir says that it is done, with which page and keys. Exits if these were others.
    """
    options = {"page": page, **keys}
    if not _is_done(workdir / marker, options):
        flags = [f"--config.{key}={value}" for key, value in keys.items()]
        nmt_jax("train", f"--config={measure.ROOT / 'configs' / page}", f"--workdir={workdir}", *flags)
        _write(workdir / marker, options)


def keep_options(folder: pathlib.Path, **options: object) -> None:
    """Note the options that the data of a benchmark depend on; exits if its folder was begun with other ones."""
    folder.mkdir(parents=True, exist_ok=True)
    if not _is_done(folder / "options.json", options):
        _write(folder / "options.json", options)


def _is_done(marker: pathlib.Path, options: Mapping[str, object]) -> bool:
    """Return whether the file exists; exits if it has other options. Those of older versions are empty."""
    if not marker.exists():
        return False
    text = marker.read_text(encoding="utf-8")
    now = _as_text(marker.parent, options)
    before = json.loads(text) if text else now
    if differing := [key for key in {**before, **now} if before.get(key) != now.get(key)]:
        raise SystemExit(f"{marker.parent}: made with other values of {', '.join(differing)}; use another folder")
    return True


def _write(marker: pathlib.Path, options: Mapping[str, object]) -> None:
    marker.write_text(f"{json.dumps(_as_text(marker.parent, options), indent=1)}\n", encoding="utf-8")


def _as_text(place: pathlib.Path, options: Mapping[str, object]) -> dict[str, str]:
    """Return options as text, with paths in the parent of `place` relative to it, since the folder may be moved."""
    return {key: str(value).replace(f"{place.parent}/", "") for key, value in options.items()}


def translated(workdir: pathlib.Path, source: pathlib.Path, *search: str) -> list[str]:
    """Return the translations of a file, made with some flags of `nmt-jax translate` unless they exist."""
    output = workdir / "".join([source.name, *search, ".translated"])
    if not output.exists():
        nmt_jax("translate", f"--workdir={workdir}", f"--input={source}", f"--output={output}", *search)
    return read(output)


def read(path: pathlib.Path) -> list[str]:
    """Return the lines of a file."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]
