"""Slices of a parallel corpus: consecutive pairs that can be read without those before them, by several processes."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np

from nmt_jax.data.lines import decode_lines
from nmt_jax.data.readers import sources

BLOCK = 1 << 24  # bytes read at a time


class Slice(Protocol):
    """Consecutive pairs of a corpus; slices and pairs are numbered from 0."""

    @property
    def number(self) -> int:
        """Number of the slice."""

    @property
    def first(self) -> int:
        """Number of its first pair."""

    @property
    def count(self) -> int:
        """Number of its pairs."""

    def __iter__(self) -> Iterator[tuple[str, str]]: ...


@dataclasses.dataclass(frozen=True)
class TextSlice:
    """A slice of parallel text files; names: of the files in messages; starts: the offset of the slice in each file."""

    number: int
    first: int
    count: int
    paths: tuple[pathlib.Path, ...]
    names: tuple[str, ...]
    starts: tuple[int, ...]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Raises UserError, naming the line, if a line is not UTF-8 or too long."""
        with contextlib.ExitStack() as files:
            readers = []
            for path, name, start in zip(self.paths, self.names, self.starts, strict=True):
                file = files.enter_context(path.open("rb"))
                file.seek(start)
                readers.append(itertools.islice(decode_lines(file, name, self.first + 1), self.count))
            for texts in zip(*readers, strict=True):
                yield sources.join(texts[:-1]), texts[-1]


def bounds(total: int, size: int) -> Iterator[tuple[int, int, int]]:
    """The number, first pair and length of each slice of `size` pairs; the last may be shorter."""
    for number, first in enumerate(range(0, total, size)):
        yield number, first, min(size, total - first)


def text_slices(paths: Sequence[pathlib.Path], names: Sequence[str], size: int) -> list[TextSlice] | None:
    """Slices of uncompressed files; None if their numbers of lines differ, or there are none."""
    starts, totals = zip(*(_line_starts(path, size) for path in paths), strict=True)
    if min(totals) != max(totals) or not totals[0]:
        return None
    return [
        TextSlice(*bound, tuple(paths), tuple(names), offsets)
        for bound, offsets in zip(bounds(totals[0], size), zip(*starts, strict=True), strict=True)
    ]


def written_slices(
    pairs: Iterable[tuple[str, str]], names: Sequence[str], size: int, scratch: pathlib.Path
) -> Sequence[TextSlice]:
    """Slices of copies of a corpus in the folder `scratch`; names: of source and target in messages."""
    paths = [scratch / "source", scratch / "target"]
    with paths[0].open("w", encoding="utf-8") as source, paths[1].open("w", encoding="utf-8") as target:
        for pair in pairs:
            source.write(f"{pair[0]}\n")
            target.write(f"{pair[1]}\n")
    return text_slices(paths, names, size) or []


def _line_starts(path: pathlib.Path, step: int) -> tuple[list[int], int]:
    """The offsets of lines 0, step, 2 * step ... of a file, and its number of lines."""
    starts, lines, offset, last = [0], 0, 0, b"\n"
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
            # Line n starts after n line ends.
            starts += (offset + 1 + ends[step - 1 - lines % step :: step]).tolist()
            lines, offset, last = lines + len(ends), offset + len(block), block[-1:]
    lines += last != b"\n"
    return starts[: -(-lines // step)], lines
