"""Sentence pairs to align: two parallel files, or one stream of pairs."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nmt_jax.alignment.bitext import LONGEST
from nmt_jax.data.lines import find
from nmt_jax.errors import UserError

SEPARATOR = "|||"
BLOCK = 512  # pairs that a neural model reads together


class SentencePairs(NamedTuple):
    """The words of each sentence on both sides; a sentence may be empty."""

    source: list[list[str]]
    target: list[list[str]]


def read_files(source: str, target: str) -> SentencePairs:
    """Reads two files of which line n is a translation of line n. Raises UserError for unequal numbers of lines."""
    from nmt_jax.data.readers.parallel_text import TextCorpus  # imported late, since it takes a second

    return _checked(TextCorpus((find(source),), find(target)), source)


def read_pairs(lines: Iterable[str], name: str) -> SentencePairs:
    """Reads lines SOURCE ||| TARGET, or with a tab between them; name: of the file, for errors."""
    return _checked(_split(lines, name), name)


def lengths(pairs: SentencePairs) -> list[tuple[int, int]]:
    """Returns the numbers of words of each pair."""
    return [(len(one), len(other)) for one, other in zip(*pairs, strict=True)]


def _split(lines: Iterable[str], name: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, start=1):
        yield split_pair(line, f"{name}:{number}")


def split_pair(line: str, where: str) -> tuple[str, str]:
    """Returns the two sides of a line; where: FILE:LINE. Raises UserError if it has not two."""
    sides = line.split(SEPARATOR if SEPARATOR in line else "\t")
    if len(sides) != 2:
        raise UserError(f"{where}: not a sentence pair; write SOURCE {SEPARATOR} TARGET, or use a tab")
    return sides[0], sides[1]


def _checked(pairs: Iterable[tuple[str, str]], name: str) -> SentencePairs:
    found = SentencePairs([], [])
    for number, pair in enumerate(pairs, start=1):
        for side, text in zip(found, pair, strict=True):
            words = text.split()
            if len(words) > LONGEST:
                limit = f"at most {LONGEST:,} are aligned; split the text into sentences"
                raise UserError(f"{name}:{number}: a sentence of {len(words):,} words; {limit}")
            side.append(words)
    if not any(one and other for one, other in zip(*found, strict=True)):
        raise UserError(f"{name}: no sentence pair has words on both sides; there is nothing to align")
    return found
