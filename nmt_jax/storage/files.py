"""Atomic writing of files and folders, here and in object stores, and checksums of files.

A folder in an object store cannot appear at once. It counts as complete when it has the file `sums.json`, which is
written last and deleted first.
"""

import contextlib
import errno
import hashlib
import json
import os
import pathlib
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO, cast

from nmt_jax.storage.paths import RemotePath, is_remote

SUMS = "sums.json"  # size and checksum of each file of a folder


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
    if is_remote(path):
        with tempfile.NamedTemporaryFile(prefix="nmt-jax-") as copy:
            yield cast(BinaryIO, copy)
            copy.flush()
            with _remote(path).store() as store:
                store.put_file(copy.name, str(path))
        return
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
    if is_remote(path):
        with tempfile.TemporaryDirectory(prefix="nmt-jax-") as copy:
            yield pathlib.Path(copy)
            if path.exists():
                raise FileExistsError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(path))
            upload(pathlib.Path(copy), path)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = pathlib.Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        with naming(path):
            yield temporary
        temporary.chmod(0o755)
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def is_complete(folder: pathlib.Path) -> bool:
    """Returns whether a folder with sums is there; in an object store, whether it was written to its end."""
    return (folder / SUMS).is_file() if is_remote(folder) else folder.is_dir()


def upload(folder: pathlib.Path, target: pathlib.Path) -> None:
    """Copies all files of a local folder to the folder `target` in an object store."""
    names = _marker_last(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    with _remote(target).store() as store:
        for group in filter(None, names):
            store.put([str(folder / name) for name in group], [f"{target}/{name}" for name in group])


@contextlib.contextmanager
def local_copy(folder: pathlib.Path, pattern: str = "*") -> Iterator[pathlib.Path]:
    """Yields the folder itself, or a temporary copy of a folder in an object store.

    pattern: of the names of the files that are needed.
    """
    if not is_remote(folder):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="nmt-jax-") as place:
        copy = pathlib.Path(place, folder.name)
        names = [str(path.relative_to(folder)) for path in folder.rglob(pattern)]
        for name in names:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if names:
            with _remote(folder).store() as store:
                store.get([f"{folder}/{name}" for name in names], [str(copy / name) for name in names])
        yield copy


def remove_folder(folder: pathlib.Path) -> None:
    """Deletes a folder if it is there; errors are ignored."""
    if not is_remote(folder):
        shutil.rmtree(folder, ignore_errors=True)
        return
    with contextlib.suppress(OSError), _remote(folder).store() as store:
        (folder / SUMS).unlink(missing_ok=True)
        store.rm(str(folder), recursive=True)


def move_folder(folder: pathlib.Path, target: pathlib.Path) -> None:
    """Renames a folder with sums, after deleting `target`; in an object store it is copied, then deleted.

    At any moment, one of the two is complete.
    """
    remove_folder(target)
    if not is_remote(folder):
        folder.rename(target)
        return
    names = _marker_last(str(path.relative_to(folder)) for path in folder.rglob("*"))
    with _remote(folder).store() as store:
        for group in filter(None, names):
            for name in group:
                store.cp_file(f"{folder}/{name}", f"{target}/{name}")
    remove_folder(folder)


def _marker_last(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The names of files, and then that of the sums, if they are there."""
    ordered = sorted(names)
    return [name for name in ordered if name != SUMS], [name for name in ordered if name == SUMS]


def _remote(path: pathlib.Path) -> RemotePath:
    return cast(RemotePath, path)


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
