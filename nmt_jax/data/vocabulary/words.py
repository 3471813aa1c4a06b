"""The vocabulary of word vectors: words and their frequencies."""

from __future__ import annotations

import collections
import dataclasses
import functools
import hashlib
import itertools
import os
import pathlib
from collections.abc import Iterable

import numpy as np

from nmt_jax.data.lines import read_lines
from nmt_jax.errors import UserError
from nmt_jax.files import whole_file

NO_WORD = 0  # ends every text, and pads rows


@dataclasses.dataclass(frozen=True)
class Words:
    """Words numbered from 1 by decreasing frequency, and their counts; 0 stands for no word."""

    words: tuple[str, ...]
    counts: tuple[int, ...]

    @classmethod
    def count(cls, texts: Iterable[Iterable[str]], *, min_count: int, size: int) -> Words:
        """The at most `size` most frequent words that occur at least `min_count` times in `texts`.

        Words of equal frequency are sorted by Unicode code points. Raises UserError if no word is frequent enough.
        """
        if min(min_count, size) < 1:
            raise UserError(f"config.vocab.min_count={min_count} and config.vocab.size={size} must be at least 1")
        found = collections.Counter(itertools.chain.from_iterable(texts))
        kept = sorted((-count, word) for word, count in found.items() if count >= min_count)[:size]
        if not kept:
            raise UserError(
                f"config.vocab.min_count={min_count}: no word occurs that often in the text "
                f"({sum(found.values()):,} words, {len(found):,} distinct): lower it or use more text"
            )
        return cls(tuple(word for _, word in kept), tuple(-count for count, _ in kept))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Words:
        """Reads a file that `save` wrote. Raises UserError `FILE:LINE` for a line that is not a word and its count."""
        counts: dict[str, int] = {}
        for number, line in enumerate(read_lines(path), start=1):
            word, _, count = line.rpartition(" ")
            if not word or not count.isdecimal() or not int(count):
                raise UserError(f"{path}:{number}: not a word and its count: train again in a new workdir")
            if word in counts:
                raise UserError(f"{path}:{number}: duplicate word {word!r}: train again in a new workdir")
            counts[word] = int(count)
        return cls(tuple(counts), tuple(counts.values()))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes one word and its count per line, the whole file or nothing."""
        with whole_file(pathlib.Path(path)) as file:
            file.write(self._text.encode())

    @property
    def _text(self) -> str:
        return "".join(f"{word} {count}\n" for word, count in zip(self.words, self.counts, strict=True))

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of words and counts."""
        return hashlib.sha256(self._text.encode()).hexdigest()

    @functools.cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words, start=1)}

    def __len__(self) -> int:
        return 1 + len(self.words)

    @functools.cached_property
    def frequencies(self) -> np.ndarray:
        """Count of each word number, float64[V]; 0 for NO_WORD."""
        return np.array([0, *self.counts], np.float64)

    def encode(self, text: Iterable[str]) -> list[int]:
        """The numbers of the words of a text, then NO_WORD. Words outside the vocabulary are dropped."""
        numbers = self._numbers
        return [*(numbers[word] for word in text if word in numbers), NO_WORD]
