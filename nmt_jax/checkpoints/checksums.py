"""Size and CRC-32 of every file of a folder, so that damage is found before anything is read from it."""

import json
import zlib
from pathlib import Path


def write_sums(path: Path) -> None:
    """Write `path/sums.json`: size and CRC-32 of every file below `path`."""
    unfinished = path / "sums.json.tmp"
    unfinished.write_text(json.dumps({name: _sum(path / name) for name in _files(path)}))
    unfinished.replace(path / "sums.json")


def check_sums(path: Path) -> None:
    """Raise ValueError if a file below `path` is not as `write_sums` found it.

    Orbax checks no sums, and of a lost file it makes a smaller tree. A checkpoint without sums (the kill came in the
    moment between the two) is left to Orbax.
    """
    sums = path / "sums.json"
    if not sums.exists():
        return
    for name, size_and_sum in json.loads(sums.read_bytes()).items():
        if not (path / name).is_file():
            raise ValueError(f"{name} is missing")
        if _sum(path / name) != size_and_sum:
            raise ValueError(f"{name} is cut short or changed")


def _files(path: Path) -> list[str]:
    found = (file.relative_to(path) for file in sorted(path.rglob("*")) if file.is_file())
    return [str(name) for name in found if not name.name.startswith("sums.json")]


def _sum(file: Path) -> list[int]:
    size = checksum = 0
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            size, checksum = size + len(block), zlib.crc32(block, checksum)
    return [size, checksum]
