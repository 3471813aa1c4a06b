"""A text as one stream of piece ids, an end after each line, for models that read on from line to line."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np

from nmt_jax.data.lines import find, read_lines
from nmt_jax.data.prepared.parallel import cache_directory
from nmt_jax.data.readers.corpora import HELD_OUT, SPLITS, GrammarCorpus
from nmt_jax.data.vocabulary.vocab import EOS, UNK, Vocab
from nmt_jax.errors import UserError
from nmt_jax.files import whole_file
from nmt_jax.progress import track

FORMAT = 1  # raise it whenever what lies in a prepared file changes
KINDS = ("grammar", "text")


class Lines(Protocol):
    """Text of one language: iterating gives its lines in order, each time from the start."""

    @property
    def name(self) -> str:
        """What people call it."""

    def __iter__(self) -> Iterator[str]: ...

    def fingerprint(self) -> str:
        """SHA-256 of the content."""


def open_lines(data: Any, split: str) -> Lines:
    """The split ("train", "dev" or "test") of the text that `config.data` describes.

    A split without a file of its own is the end of the train file, which then lacks it: its last `test_share` of the
    lines, and before them its last `dev_share`. Raises UserError where there is neither file nor share.
    """
    if split not in SPLITS:
        raise ValueError(f"split {split!r} is not one of {', '.join(SPLITS)}")
    if data.corpus == "grammar":
        return GrammarLines(GrammarCorpus(split, data.size if split == "train" else HELD_OUT))
    if data.corpus not in KINDS:
        raise UserError(f"config.data.corpus: {data.corpus!r} is not one of {', '.join(KINDS)}")
    if not data.directory:
        raise UserError("config.data.directory: name the folder that holds the text")
    directory = pathlib.Path(data.directory).expanduser()
    if split != "train" and data[split]:
        return FileLines(find(directory / data[split]))
    held_out = {other: 0.0 if data[other] else data[f"{other}_share"] for other in ("dev", "test")}
    if min(held_out.values()) < 0 or sum(held_out.values()) >= 1:
        raise UserError(
            "config.data.dev_share, config.data.test_share: shares are at least 0, and less than 1 together"
        )
    if not held_out.get(split, 1):
        raise UserError(
            f"config.data.{split}: name a file, or hold out the end of the train file: config.data.{split}_share=0.1"
        )
    path = find(directory / data.train)
    if not any(held_out.values()):
        return FileLines(path)
    count = sum(1 for _ in read_lines(path))
    dev, test = (round(count * held_out[other]) for other in ("dev", "test"))
    borders = {
        "train": (0, count - dev - test),
        "dev": (count - dev - test, count - test),
        "test": (count - test, count),
    }
    first, last = borders[split]
    if first == last:
        raise UserError(f"{path}: {count} lines are too few to hold out {dev} for dev and {test} for test")
    return FileLines(path, first, last)


@dataclasses.dataclass(frozen=True)
class FileLines:
    """Lines `first` to `last` - 1, counted from 0, of a file, plain or .gz; of the whole file if there is no last."""

    path: pathlib.Path
    first: int = 0
    last: int | None = None

    @property
    def name(self) -> str:
        """Path and lines, counted from 1 as editors do."""
        return f"{self.path}" if self.last is None else f"{self.path}, lines {self.first + 1} to {self.last}"

    def __iter__(self) -> Iterator[str]:
        return itertools.islice(read_lines(self.path), self.first, self.last)

    def fingerprint(self) -> str:
        """SHA-256 of the file as it lies on the disk, and of which lines."""
        try:
            with open(self.path, "rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise UserError(f"{self.path}: cannot read it: {error.strerror}") from error
        return hashlib.sha256(f"{content} {self.first} {self.last}".encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class GrammarLines:
    """The German sentences of the embedded grammar."""

    corpus: GrammarCorpus

    @property
    def name(self) -> str:
        """The grammar and the split."""
        return f"{self.corpus.name}, German"

    def __iter__(self) -> Iterator[str]:
        return (german for _, german in self.corpus)

    def fingerprint(self) -> str:
        """SHA-256 of the pairs and the side."""
        return hashlib.sha256(f"{self.corpus.fingerprint()} de".encode()).hexdigest()


def encode(lines: Iterable[str], vocab: Vocab) -> Iterator[list[int]]:
    """The ids of each line, and EOS."""
    for line in lines:
        yield [*vocab.encode(line), EOS]


@dataclasses.dataclass(frozen=True)
class Stream:
    """N piece ids int32[N], mapped from the disk; the last one is EOS."""

    ids: np.ndarray
    name: str

    @functools.cached_property
    def report(self) -> str:
        """How much there is, in one line."""
        lines, unknown = (int(np.count_nonzero(self.ids == special)) for special in (EOS, UNK))
        line = f"{self.name}: {len(self.ids):,} tokens with the ends of {lines:,} lines"
        return f"{line}; {unknown / len(self.ids):.1%} unknown" if unknown else line


def prepare(data: Any, split: str, vocab: Vocab) -> Stream:
    """Encodes a split of `config.data`, or finds it done.

    The file is named by the content and the vocabulary, and appears whole or not at all. Raises UserError where there
    is nothing but empty lines, or the disk is full.
    """
    lines = open_lines(data, split)
    key = json.dumps([FORMAT, lines.fingerprint(), vocab.fingerprint])
    path = cache_directory(data) / f"{split}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.int32"
    if not path.exists():
        try:
            _write(lines, vocab, path)
        except OSError as error:
            raise UserError(
                f"{path.parent}: cannot write the prepared text: {error.strerror or error}; "
                "name another folder with config.data.cache"
            ) from error
    return Stream(np.memmap(path, np.int32, "r"), f"{split}: {lines.name}")


def _write(lines: Lines, vocab: Vocab, path: pathlib.Path) -> None:
    """Writes the ids; UserError where there are none."""
    words = 0
    with whole_file(path) as file:
        for ids in encode(track(lines, f"preparing {lines.name}"), vocab):
            words += len(ids) - 1
            file.write(np.array(ids, np.int32).tobytes())
        if not words:
            raise UserError(f"{lines.name}: no text, only empty lines")
