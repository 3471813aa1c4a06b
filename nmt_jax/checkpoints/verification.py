"""What a checkpoint is verified against: checksums of its files, and names and shapes of its arrays."""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax

from nmt_jax.files import whole_file

FILE = "sums.json"


def write_sums(path: Path) -> None:
    """Write the size and CRC-32 of every file below `path` to `path/sums.json`."""
    # Without unfinished sums of another writer.
    files = (file for file in sorted(path.rglob("*")) if file.is_file() and FILE not in file.name)
    sums = {str(file.relative_to(path)): _sum(file) for file in files}
    with whole_file(path / FILE) as file:
        file.write(json.dumps(sums).encode())


def check_sums(path: Path) -> None:
    """Raise ValueError if a file below `path` has changed since `write_sums`.

    Orbax does not verify checksums, and it restores a smaller tree if a file is missing. A checkpoint without sums,
    because the process was killed between writing the two, is left to Orbax.
    """
    if not (path / FILE).exists():
        return
    for name, size_and_sum in json.loads((path / FILE).read_bytes()).items():
        if not (path / name).is_file():
            raise ValueError(f"{name} is missing")
        if _sum(path / name) != size_and_sum:
            raise ValueError(f"{name} is truncated or changed")


def _sum(file: Path) -> list[int]:
    size = checksum = 0
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            size, checksum = size + len(block), zlib.crc32(block, checksum)
    return [size, checksum]


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
