"""Words and how often they come: the vocabulary of word vectors, and a text as one stream of their numbers."""

from __future__ import annotations

import collections
import dataclasses
import functools
import hashlib
import itertools
import json
import os
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from metrics_jax.surface.tokenizers import tokenize
from nmt_jax.data.lines import chunks, read_lines
from nmt_jax.data.prepared.parallel import cache_directory
from nmt_jax.data.prepared.segments import open_documents
from nmt_jax.errors import UserError
from nmt_jax.files import whole_file
from nmt_jax.progress import track

FORMAT = 1  # raise it whenever what lies in a prepared file changes
NO_WORD = 0  # ends every text, and fills rows
MANY = 1024  # texts tokenized together


@dataclasses.dataclass(frozen=True)
class Words:
    """Words numbered from 1, the most frequent first, and how often each came; 0 is no word."""

    words: tuple[str, ...]
    counts: tuple[int, ...]

    @classmethod
    def count(cls, texts: Iterable[Iterable[str]], *, min_count: int, size: int) -> Words:
        """At most `size` words that come at least `min_count` times in texts; UserError where none does.

        Of words that come equally often the first in the order of Unicode goes first.
        """
        if min(min_count, size) < 1:
            raise UserError(
                f"config.vocab.min_count={min_count} and config.vocab.size={size} must be at least 1: "
                "how often a word comes, and how many words there are at most"
            )
        found = collections.Counter(itertools.chain.from_iterable(texts))
        kept = sorted((-count, word) for word, count in found.items() if count >= min_count)[:size]
        if not kept:
            raise UserError(
                f"config.vocab.min_count={min_count}: no word of the text comes so often "
                f"({sum(found.values()):,} words, {len(found):,} different ones): lower it, or give more text"
            )
        return cls(tuple(word for _, word in kept), tuple(-count for count, _ in kept))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Words:
        """Reads what `save` wrote; UserError `FILE:LINE` for a line that is no word and count."""
        words, counts = [], []
        for number, line in enumerate(read_lines(path), start=1):
            word, _, count = line.rpartition(" ")
            if not word or not count.isdecimal() or not int(count):
                raise UserError(f"{path}:{number}: not a word, a blank and its count: train again in a new workdir")
            words.append(word)
            counts.append(int(count))
        if len(set(words)) < len(words):
            again = next(place for place, word in enumerate(words) if word in words[:place])
            raise UserError(f"{path}:{again + 1}: {words[again]!r} is there already: train again in a new workdir")
        return cls(tuple(words), tuple(counts))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a word and its count a line, whole or not at all."""
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
        """How often each number came, float64[V]; 0 never."""
        return np.array([0, *self.counts], np.float64)

    def encode(self, text: Iterable[str]) -> list[int]:
        """The numbers of the words of a text, and NO_WORD; words that have none are left out."""
        numbers = self._numbers
        return [*(numbers[word] for word in text if word in numbers), NO_WORD]


def read_texts(data: Any, split: str) -> Iterator[list[str]]:
    """The words of each text of a split of `config.data`; a text is a line, or a paragraph of running text.

    tokenizer, lower_case: what a word is. punctuation: whether what has neither letter nor digit is one. UserError for
    an unknown tokenizer, and for text that cannot be read.
    """
    documents = open_documents(data, split)
    lines = itertools.chain.from_iterable(track(documents, f"reading {documents.name}"))
    for group in chunks(lines, MANY):
        try:
            texts = tokenize(group, data.tokenizer, data.lower_case)
        except ValueError as error:
            raise UserError(f"config.data.tokenizer: {error}") from None
        for text in texts:
            yield text if data.punctuation else [word for word in text if any(map(str.isalnum, word))]


def prepare(data: Any, split: str, words: Words) -> np.ndarray:
    """A split of `config.data` as int32[N], NO_WORD after each text, mapped from the disk; encoded once.

    The file is named by the content and the words, and appears whole or not at all. Raises UserError where no word is
    known, or the disk is full.
    """
    settings = [data.tokenizer, data.lower_case, data.punctuation]
    key = json.dumps([FORMAT, open_documents(data, split).fingerprint(), words.fingerprint, settings])
    path = cache_directory(data) / f"words-{split}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.int32"
    if not path.exists():
        try:
            _write(read_texts(data, split), words, path, split)
        except OSError as error:
            raise UserError(
                f"{path.parent}: cannot write the prepared text: {error.strerror or error}; "
                "name another folder with config.data.cache"
            ) from error
    return np.memmap(path, np.int32, "r")


def _write(texts: Iterable[Iterable[str]], words: Words, path: pathlib.Path, split: str) -> None:
    """Writes the numbers; UserError where there are none."""
    known = 0
    with whole_file(path) as file:
        for text in texts:
            numbers = words.encode(text)
            known += len(numbers) - 1
            file.write(np.array(numbers, np.int32).tobytes() if len(numbers) > 1 else b"")
        if not known:
            raise UserError(f"the {split} text has none of the {len(words) - 1:,} words: raise config.data.dev_share")
