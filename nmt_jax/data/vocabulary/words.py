"""The vocabulary of word vectors: words, their frequencies, and the character n-grams of unseen words."""

from __future__ import annotations

import collections
import dataclasses
import functools
import hashlib
import itertools
import os
from collections.abc import Iterable, Sequence

import numpy as np

from nmt_jax.data.lines import read_lines
from nmt_jax.errors import UserError
from nmt_jax.storage.files import whole_file
from nmt_jax.storage.paths import path_of

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
        with whole_file(path_of(path)) as file:
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


def ngrams(word: str, min_n: int, max_n: int) -> list[str]:
    """The n-grams of "<" + word + ">" with min_n <= n <= max_n characters, in order of their position.

    "<" and ">" distinguish prefixes and suffixes from other n-grams (Bojanowski et al., 2017, section 3.2). They are
    not n-grams on their own.
    """
    marked = f"<{word}>"
    return [
        marked[start : start + n]
        for start in range(len(marked))
        for n in range(min_n, min(max_n, len(marked) - start) + 1)
        if n > 1 or 0 < start < len(marked) - 1
    ]


def bucket(ngram: str, num_buckets: int) -> int:
    """The bucket of an n-gram: the 32-bit FNV-1a hash of its UTF-8 bytes, modulo `num_buckets`.

    Bojanowski et al. (2017), section 3.2. As in the authors' program, bytes are signed.
    """
    value = 2166136261
    for byte in ngram.encode("utf-8"):
        value = ((value ^ (byte | 0xFFFFFF00 if byte > 127 else byte)) * 16777619) & 0xFFFFFFFF
    return value % num_buckets


def buckets(words: Sequence[str], *, min_n: int, max_n: int, num_buckets: int) -> tuple[np.ndarray, np.ndarray]:
    """Buckets of all n-grams of the words: the index of the word and the bucket, int32[P] each, in order of words."""
    known: dict[str, int] = {}
    indices: list[int] = []
    numbers: list[int] = []
    for index, word in enumerate(words):
        for ngram in ngrams(word, min_n, max_n):
            if (number := known.get(ngram)) is None:
                number = known[ngram] = bucket(ngram, num_buckets)
            indices.append(index)
            numbers.append(number)
    return np.array(indices, np.int32), np.array(numbers, np.int32)
