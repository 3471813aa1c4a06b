"""Several sources of one target: their texts as one line, parted by tabs, and their pieces, parted by EOS.

One source is the common case, and stays what it is: a tab in its text is a character like any other.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.errors import UserError


def languages(source: str) -> list[str]:
    """`config.data.source`: "en", or "en,fr" for two sources -> their names."""
    return source.split(",")


def join(texts: Sequence[str]) -> str:
    """The texts of all sources as one line; a tab within one of several becomes a blank."""
    return texts[0] if len(texts) == 1 else "\t".join(text.replace("\t", " ") for text in texts)


def split(line: str, count: int) -> list[str]:
    """The texts of `count` sources, all empty where the line is; UserError where it has another number of them."""
    if count == 1:
        return [line]
    texts = line.split("\t") if line.strip() else [""] * count
    if len(texts) != count:
        raise UserError(f"{len(texts)} of {count} sources: a line has all of them, and a tab between two")
    return texts


def checked(lines: Iterable[str], count: int, name: str) -> Iterator[str]:
    """The lines of a file of that name; UserError `name:LINE` at one that has not `count` sources."""
    for number, line in enumerate(lines, start=1):
        try:
            split(line, count)
        except UserError as error:
            raise UserError(f"{name}:{number}: {error}") from None
        yield line


def encode(line: str, count: int, encode_text: Callable[[str], list[int]]) -> list[int]:
    """The pieces of each source of a line by `encode_text`, with an EOS between two sources."""
    first, *others = map(encode_text, split(line, count))
    return first + [piece for ids in others for piece in (EOS, *ids)]


def lengths(ids: Sequence[int] | np.ndarray) -> np.ndarray:
    """Pieces of sources, an EOS after each -> how many each has, its EOS included."""
    return np.diff(np.flatnonzero(np.asarray(ids) == EOS), prepend=-1)


def fill(rows: Iterable[Sequence[int] | np.ndarray], shape: tuple[int, int], count: int) -> np.ndarray:
    """Rows of pieces, an EOS after each source -> int32[B, S], of several sources int32[B, N, S]; the rest is PAD."""
    array = np.full((shape[0], count, shape[1]), PAD, np.int32)
    for row, ids in zip(array, rows, strict=False):
        ends = np.cumsum(lengths(ids))
        for source, pieces in zip(row, np.split(ids, ends[:-1]), strict=True):
            source[: len(pieces)] = pieces
    return array if count > 1 else array[:, 0]
