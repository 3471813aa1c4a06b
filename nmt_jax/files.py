"""Atomic writing of files and folders."""

import contextlib
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator
from typing import BinaryIO


@contextlib.contextmanager
def whole_file(path: pathlib.Path) -> Iterator[BinaryIO]:
    """Yields a temporary file that replaces `path` at the end, or is deleted if writing fails.

    Readers see the old file or the complete new one, even if several processes write at the same time.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
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
        yield temporary
        temporary.chmod(0o755)
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
