"""Several sources of one target: their texts as one line separated by tabs, their tokens separated by EOS.

With one source, the common case, a tab in its text is an ordinary character.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.errors import UserError


def languages(source: str) -> list[str]:
    """The source languages in `config.data.source`: "en", or "en,fr" for two sources."""
    return source.split(",")


def kinds(data: Any) -> list[str]:
    """The kind of each source in `config.data`: one kind for all of them, or one for each, separated by commas."""
    named, count = data.get("kind", "text").split(","), len(languages(data.source))  # old workdirs have no kind
    return named * count if len(named) == 1 else named


def join(texts: Sequence[str]) -> str:
    """The texts of all sources as one line; if there are several, tabs within a text become spaces."""
    return texts[0] if len(texts) == 1 else "\t".join(text.replace("\t", " ") for text in texts)


def split(line: str, count: int) -> list[str]:
    """The texts of `count` sources; all empty for an empty line. Raises UserError for another number of texts."""
    if count == 1:
        return [line]
    texts = line.split("\t") if line.strip() else [""] * count
    if len(texts) != count:
        raise UserError(f"{len(texts)} of {count} sources: each line must have all sources, separated by tabs")
    return texts


def checked(lines: Iterable[str], count: int, name: str) -> Iterator[str]:
    """Yields the lines of the file `name`; raises UserError `name:LINE` if one does not have `count` sources."""
    for number, line in enumerate(lines, start=1):
        try:
            split(line, count)
        except UserError as error:
            raise UserError(f"{name}:{number}: {error}") from None
        yield line


def encode(line: str, count: int, encode_text: Callable[[str], list[int]]) -> list[int]:
    """The token ids of all sources of a line, separated by EOS."""
    first, *others = map(encode_text, split(line, count))
    return first + [piece for ids in others for piece in (EOS, *ids)]


def lengths(ids: Sequence[int] | np.ndarray) -> np.ndarray:
    """The number of tokens of each source, EOS included, given their token ids with EOS after each source."""
    return np.diff(np.flatnonzero(np.asarray(ids) == EOS), prepend=-1)


def fill(rows: Iterable[Sequence[int] | np.ndarray], shape: tuple[int, int], count: int) -> np.ndarray:
    """Token ids with EOS after each source -> int32[B, S], or int32[B, N, S] for several sources, padded with PAD."""
    array = np.full((shape[0], count, shape[1]), PAD, np.int32)
    for row, ids in zip(array, rows, strict=False):
        ends = np.cumsum(lengths(ids))
        for source, pieces in zip(row, np.split(ids, ends[:-1]), strict=True):
            source[: len(pieces)] = pieces
    return array if count > 1 else array[:, 0]
