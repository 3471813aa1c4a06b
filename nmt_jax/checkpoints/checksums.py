"""Sizes and CRC-32 checksums of the files of a folder, to detect damage before anything is read."""

import json
import zlib
from pathlib import Path

from nmt_jax.files import whole_file

FILE = "sums.json"


def write_sums(path: Path) -> None:
    """Write the size and CRC-32 of every file below `path` to `path/sums.json`."""
    sums = {name: _sum(path / name) for name in _files(path)}
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


def _files(path: Path) -> list[str]:
    found = (file.relative_to(path) for file in sorted(path.rglob("*")) if file.is_file())
    return [str(name) for name in found if FILE not in name.name]  # nor unfinished ones


def _sum(file: Path) -> list[int]:
    size = checksum = 0
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            size, checksum = size + len(block), zlib.crc32(block, checksum)
    return [size, checksum]
