"""A file that appears whole or not at all, whoever else writes it at the same time."""

import contextlib
import os
import pathlib
import tempfile
from collections.abc import Iterator
from typing import BinaryIO


@contextlib.contextmanager
def whole_file(path: pathlib.Path) -> Iterator[BinaryIO]:
    """A file beside `path` to write to, which takes its place at the end, and vanishes where writing fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, unfinished = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            yield file
        os.chmod(unfinished, 0o644)
        os.replace(unfinished, path)
    finally:
        pathlib.Path(unfinished).unlink(missing_ok=True)
