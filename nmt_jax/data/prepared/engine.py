"""Engines: what does the same work on each of many items, such as the slices of a corpus.

Work on an item writes files and returns nothing. It is done once or more often, in any order, in any process that sees
the files; `written_once` makes the result the same.
"""

import contextlib
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from nmt_jax.storage.files import whole_folder


class Engine(Protocol):
    """Runs work on items."""

    def __call__(self, work: Callable[[Any], None], items: Sequence[Any], folder: pathlib.Path) -> None:
        """Call `work(item)` for each item. Raises the UserError of the first item, in order, that raises one.

        folder: where processes may leave notes for each other.
        """


def this_process(work: Callable[[Any], None], items: Sequence[Any], folder: pathlib.Path) -> None:
    """The engine that works on one item after the other."""
    for item in items:
        work(item)


@contextlib.contextmanager
def written_once(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields a temporary folder that becomes `path`, unless another process was faster, with the same content."""
    try:
        with whole_folder(path) as folder:
            yield folder
    except OSError:
        if not path.exists():
            raise
