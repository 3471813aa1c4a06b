"""Atomic writing of files and folders, and checksums of files."""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO


@contextlib.contextmanager
def naming(path: pathlib.Path) -> Iterator[None]:
    """Within this context, an OSError that names no file, such as that of a full disk while writing, gets `path`."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextlib.contextmanager
def whole_file(path: pathlib.Path) -> Iterator[BinaryIO]:
    """Yields a temporary file that replaces `path` at the end, or is deleted if writing fails.

    Readers see the old file or the complete new one, even if several processes write at the same time.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with naming(path), open(descriptor, "wb") as file:
            yield file
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    finally:
        pathlib.Path(temporary).unlink(missing_ok=True)


@contextlib.contextmanager
def whole_folder(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields a temporary folder that becomes `path` at the end, or is deleted if writing fails.

    Raises OSError if `path` already exists and is not empty; it is not changed then.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = pathlib.Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        with naming(path):
            yield temporary
        temporary.chmod(0o755)
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def sha256(path: pathlib.Path) -> str:
    """Returns the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_sums(sums: pathlib.Path, files: Iterable[pathlib.Path] | None = None) -> None:
    """Write the size and CRC-32 of `files`, by default of all files in the folder of `sums`, to the file `sums`."""
    if files is None:
        # Without unfinished sums of another writer.
        files = [file for file in sorted(sums.parent.rglob("*")) if file.is_file() and sums.name not in file.name]
    entries = {str(file.relative_to(sums.parent)): _sum(file) for file in files}
    with whole_file(sums) as stream:
        stream.write(json.dumps(entries).encode())


def check_sums(sums: pathlib.Path, newer_only: bool = False) -> None:
    """Raise ValueError if a file has changed since `write_sums`.

    newer_only: of files that were not modified after `sums` was written, only the size is compared, which is fast.
    """
    entries = json.loads(sums.read_bytes())
    if not isinstance(entries, dict):
        raise ValueError(f"{sums.name} is damaged")
    written = sums.stat().st_mtime_ns
    for name, entry in entries.items():
        file = sums.parent / name
        if not file.is_file():
            raise ValueError(f"{name} is missing")
        status = file.stat()
        trusted = newer_only and status.st_mtime_ns <= written and isinstance(entry, list)
        if entry[:1] != [status.st_size] if trusted else entry != _sum(file):
            raise ValueError(f"{name} is truncated or changed")


def _sum(file: pathlib.Path) -> list[int]:
    size = checksum = 0
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            size, checksum = size + len(block), zlib.crc32(block, checksum)
    return [size, checksum]
