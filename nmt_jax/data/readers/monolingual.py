"""Text of one language, as lines or as documents: text files or the embedded grammar."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any

from nmt_jax.data.lines import chunks, find, read_lines, sha256_of
from nmt_jax.data.readers.parallel_text import HELD_OUT, GrammarCorpus
from nmt_jax.data.readers.splits import SPLITS, FingerprintedCorpus, corpus_folder
from nmt_jax.errors import UserError

KINDS = ("grammar", "text")
SENTENCES = 8  # in a document of the embedded grammar

Lines = FingerprintedCorpus[str]
Documents = FingerprintedCorpus[list[str]]


def open_lines(data: Any, split: str) -> Lines:
    """The split ("train", "dev" or "test") of the text that `config.data` describes, line by line.

    A split without its own file is taken from the end of the training file: the last `test_share` of its lines are the
    test split, the `dev_share` before them the development split, and the training split lacks both. Raises UserError
    if a split has neither file nor share.
    """
    directory = corpus_folder(data, split, KINDS, "the text")
    if directory is None:
        return GrammarLines(GrammarCorpus.of(data, split, HELD_OUT))
    if split != "train" and data[split]:
        return FileLines(find(directory / data[split]))
    shares = {other: 0.0 if data[other] else data[f"{other}_share"] for other in ("dev", "test")}
    if min(shares.values()) < 0 or sum(shares.values()) >= 1:
        raise UserError(
            "config.data.dev_share, config.data.test_share: both must be at least 0, and their sum less than 1"
        )
    if not shares.get(split, 1):
        raise UserError(
            f"config.data.{split}: name a file, or hold out the end of the training file with "
            f"config.data.{split}_share=0.1"
        )
    path = find(directory / data.train)
    if not any(shares.values()):
        return FileLines(path)
    count = sum(1 for _ in read_lines(path))
    dev, test = (round(count * share) for share in shares.values())
    ends = [0, count - dev - test, count - test, count]
    first, last = ends[SPLITS.index(split) :][:2]
    if first == last:
        raise UserError(f"{path}: {count} lines are too few to hold out {dev} for dev and {test} for test")
    return FileLines(path, first, last)


@dataclasses.dataclass(frozen=True)
class FileLines:
    """Lines `first` to `last` - 1, counted from 0, of a file, plain or .gz; up to the end if `last` is None."""

    path: pathlib.Path
    first: int = 0
    last: int | None = None

    @property
    def name(self) -> str:
        """Path and lines, counted from 1 as in editors."""
        return f"{self.path}" if self.last is None else f"{self.path}, lines {self.first + 1} to {self.last}"

    def __iter__(self) -> Iterator[str]:
        return itertools.islice(read_lines(self.path), self.first, self.last)

    def fingerprint(self) -> str:
        return hashlib.sha256(f"{sha256_of(self.path)} {self.first} {self.last}".encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class GrammarLines:
    """The German sentences of the embedded grammar."""

    corpus: GrammarCorpus

    @property
    def name(self) -> str:
        return f"{self.corpus.name}, German"

    def __iter__(self) -> Iterator[str]:
        return (german for _, german in self.corpus)

    def fingerprint(self) -> str:
        return hashlib.sha256(f"{self.corpus.fingerprint()} de".encode()).hexdigest()


def open_documents(data: Any, split: str) -> Documents:
    """The split ("train" or "dev") of the text that `config.data` describes, as documents: lists of lines.

    In the files `data.train`, a blank line ends a document. In those of `data.running`, running text such as a book, it
    ends a paragraph: a line of the result is a paragraph, and a document is `data.paragraphs` of them. The last of
    every 1 / `data.dev_share` documents belongs to the development split, whatever its file. Raises UserError if no
    file is named, or a setting is out of range.
    """
    directory = corpus_folder(data, split, KINDS, "the text")
    if directory is None:
        return GrammarDocuments(GrammarCorpus.of(data, split, HELD_OUT))
    if not (data.train or data.running):
        raise UserError(
            "config.data.train, config.data.running: name at least one file of documents separated by blank lines, or "
            "of running text"
        )
    if not 0 < data.dev_share < 1:
        raise UserError(f"config.data.dev_share={data.dev_share} must be more than 0 and less than 1")
    if data.paragraphs < 2:
        raise UserError(f"config.data.paragraphs={data.paragraphs} must be at least 2")
    train, running = (tuple(find(directory / name) for name in names) for names in (data.train, data.running))
    return FileDocuments(train, running, data.paragraphs, data.dev_share, split == "dev")


@dataclasses.dataclass(frozen=True)
class FileDocuments:
    """A share of the documents of files, plain or .gz, if `held_out`; otherwise all others. See `open_documents`."""

    files: tuple[pathlib.Path, ...]
    running: tuple[pathlib.Path, ...]
    paragraphs: int
    share: float
    held_out: bool

    @property
    def name(self) -> str:
        return ", ".join(path.name for path in (*self.files, *self.running))

    def __iter__(self) -> Iterator[list[str]]:
        for number, document in enumerate(self._all()):
            if (int((number + 1) * self.share) > int(number * self.share)) == self.held_out:
                yield document

    def _all(self) -> Iterator[list[str]]:
        for path in self.files:
            yield from _paragraphs(read_lines(path))
        for path in self.running:
            yield from chunks((" ".join(lines) for lines in _paragraphs(read_lines(path))), self.paragraphs)

    def fingerprint(self) -> str:
        hashes = [sha256_of(path) for path in (*self.files, *self.running)]
        settings = [hashes, len(self.files), self.paragraphs, self.share, self.held_out]
        return hashlib.sha256(json.dumps(settings).encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class GrammarDocuments:
    """Sentences of the embedded grammar; documents are English and German in turn."""

    corpus: GrammarCorpus

    @property
    def name(self) -> str:
        return self.corpus.name

    def __iter__(self) -> Iterator[list[str]]:
        for number, pairs in enumerate(chunks(iter(self.corpus), SENTENCES)):
            yield [pair[number % 2] for pair in pairs]

    def fingerprint(self) -> str:
        return hashlib.sha256(f"{self.corpus.fingerprint()} {SENTENCES}".encode()).hexdigest()


def _paragraphs(lines: Iterable[str]) -> Iterator[list[str]]:
    """Runs of lines without a blank line."""
    for blank, group in itertools.groupby(lines, key=lambda line: not line.strip()):
        if not blank:
            yield list(group)
