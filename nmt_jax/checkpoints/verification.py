"""What a checkpoint is verified against: checksums of its files, and names and shapes of its arrays."""

import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax

from nmt_jax.storage.files import SUMS, check_sums

SECONDS_TO_SUMS = 1.0  # another process may be about to write them


def check_checkpoint(path: Path) -> None:
    """Raise ValueError if a file of the checkpoint `path` has changed since `write_sums`.

    Orbax does not verify checksums, and it restores a smaller tree if a file is missing. A checkpoint without sums,
    because the process was killed between writing the two or the file was removed, is left to Orbax, with a warning.
    """
    deadline = time.monotonic() + SECONDS_TO_SUMS
    while not (path / SUMS).exists():
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such checkpoint")
        if time.monotonic() > deadline:
            advice = "restore the file from a copy, or train on: the next checkpoint has one"
            warnings.warn(f"{path}: has no {SUMS}, so that damage cannot be noticed; {advice}", stacklevel=2)
            return
        time.sleep(0.05)
    check_sums(path / SUMS)


def report_average(directory: Path, used: int, count: int) -> None:
    """Report on stderr that there are fewer checkpoints than `count` to average."""
    if used < count:
        print(f"nmt-jax: {directory}: averaging {used} checkpoints instead of {count}", file=sys.stderr)


def name_differences(expected: Any, found: Any) -> str:
    """The names of arrays that are missing, unexpected or of another shape in `found`; empty if the trees agree."""
    return shape_differences(tree_shapes(expected), tree_shapes(found))


def tree_shapes(tree: Any) -> dict[str, list[int]]:
    """The shape of every array of a tree by its name, such as "layer/kernel"."""
    return {
        jax.tree_util.keystr(path, simple=True, separator="/"): list(leaf.shape)
        for path, leaf in jax.tree.leaves_with_path(tree)
    }


def shape_differences(expected: Mapping[str, list[int]], found: Mapping[str, list[int]]) -> str:
    """The differences between two results of `tree_shapes`, as one line."""
    lists = {
        "missing": [name for name in expected if name not in found],
        "unexpected": [name for name in found if name not in expected],
        "of another shape": [
            f"{name} {found[name]} instead of {expected[name]}"
            for name in expected
            if name in found and list(found[name]) != expected[name]
        ],
    }
    return "; ".join(f"{what}: {_first(names)}" for what, names in lists.items() if names)


def _first(names: list[str], count: int = 8) -> str:
    return ", ".join(names[:count]) + (f" and {len(names) - count} more" if len(names) > count else "")
