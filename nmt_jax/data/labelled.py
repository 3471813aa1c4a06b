"""Labelled texts: rows of a TSV or JSONL file, or the embedded grammar, each a label and the sentences of a text.

A text has one sentence or many, from one column (field) or several. Where there is no file of development texts, one
fold of the training file is held out.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from nmt_jax.data import grammar
from nmt_jax.data.lines import find, read_lines
from nmt_jax.errors import UserError

KINDS = ("grammar", "files")
SPLITS = ("train", "dev")
HELD_OUT = 200  # development texts of the embedded grammar


class Labelled(NamedTuple):
    """A text as its sentences, what it is, and where it stands (FILE:LINE), for messages."""

    label: str
    sentences: list[str]
    where: str


class LabelledTexts(Protocol):
    """Labelled texts in a fixed order, each time from the start."""

    @property
    def name(self) -> str:
        """What people call it."""

    def __iter__(self) -> Iterator[Labelled]: ...


def open_labelled(data: Any, split: str) -> LabelledTexts:
    """The split ("train" or "dev") of the labelled texts that `config.data` describes.

    Without a file of its own, `data.dev` empty, the development set is fold `data.fold` of the `data.folds` folds of
    the training file. Raises UserError at once where a file is missing, and while reading where it is at fault.
    """
    if split not in SPLITS:
        raise ValueError(f"split {split!r} is not one of {', '.join(SPLITS)}")
    if data.corpus == "grammar":
        return GrammarTexts(split, data.size if split == "train" else HELD_OUT)
    if data.corpus not in KINDS:
        raise UserError(f"config.data.corpus: {data.corpus!r} is not one of {', '.join(KINDS)}")
    if not data.directory:
        raise UserError(f"config.data.directory: name the folder of {data.train or 'the labelled texts'}")
    name = data[split] or data.train
    path = find(pathlib.Path(data.directory).expanduser() / name)
    texts = TextFile(path, data.label, tuple(data.texts))
    if data.dev:
        return texts
    if data.folds < 2 or not 0 <= data.fold < data.folds:
        raise UserError(
            f"config.data.fold={data.fold} of data.folds={data.folds}: take one of 0 … folds-1 of 2 or more"
        )
    return Fold(texts, data.fold, data.folds, split)


# Files


@dataclasses.dataclass(frozen=True)
class TextFile:
    """A .tsv or .jsonl file, plain or .gz; `label` and `texts` name its columns, or the fields of its objects.

    TSV: a header, then rows; fields end at tabs, and a quotation mark is a character like any other. JSONL: an object a
    line; a text is a string, or a list of strings, its sentences.
    """

    path: pathlib.Path
    label: str
    texts: tuple[str, ...]

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    def __iter__(self) -> Iterator[Labelled]:
        """Raises UserError `FILE:LINE: …` for a column that is missing and a row that cannot be read."""
        kinds: dict[str, Callable[[], Iterator[Labelled]]] = {".tsv": self._tsv, ".jsonl": self._jsonl}
        suffix = pathlib.Path(self.name.removesuffix(".gz")).suffix
        if suffix not in kinds:
            raise UserError(f"{self.path}: labelled texts are in {' or '.join(kinds)} files, plain or with .gz")
        if not self.texts:
            raise UserError("config.data.texts: name at least one column (or field) of text")
        return kinds[suffix]()

    def _tsv(self) -> Iterator[Labelled]:
        lines = read_lines(self.path)
        header = next(lines).split("\t")
        for column in (self.label, *self.texts):
            if column not in header:
                raise UserError(f"{self.path}:1: no column {column!r} in the header; it has {', '.join(header)}")
        label, *texts = (header.index(column) for column in (self.label, *self.texts))
        for number, line in enumerate(lines, start=2):
            fields = line.split("\t")
            if len(fields) != len(header):
                raise UserError(
                    f"{self.path}:{number}: {len(fields)} fields between tabs, the header has {len(header)}"
                )
            yield self._labelled(fields[label], [fields[text] for text in texts], number)

    def _jsonl(self) -> Iterator[Labelled]:
        for number, line in enumerate(read_lines(self.path), start=1):
            try:
                row = json.loads(line)
            except ValueError as error:
                raise UserError(f"{self.path}:{number}: not JSON ({error})") from None
            if not isinstance(row, dict):
                raise UserError(f"{self.path}:{number}: not a JSON object")
            for field in (self.label, *self.texts):
                if field not in row:
                    raise UserError(f"{self.path}:{number}: no field {field!r}; it has {', '.join(row)}")
            if not isinstance(row[self.label], str | int):
                raise UserError(f"{self.path}:{number}: {self.label!r} is neither a string nor an integer")
            sentences = []
            for field in self.texts:
                value = [row[field]] if isinstance(row[field], str) else row[field]
                if not isinstance(value, list) or not all(isinstance(sentence, str) for sentence in value):
                    raise UserError(f"{self.path}:{number}: {field!r} is neither a string nor a list of strings")
                sentences += value
            yield self._labelled(str(row[self.label]), sentences, number)

    def _labelled(self, label: str, sentences: list[str], number: int) -> Labelled:
        if not label.strip():
            raise UserError(f"{self.path}:{number}: the label is empty")
        return Labelled(label, sentences, f"{self.path}:{number}")


@dataclasses.dataclass(frozen=True)
class Fold:
    """The texts in fold `fold` of `folds`, for "dev", or all others, for "train".

    The distinct texts of a label, in the order of their SHA-256, are dealt to the folds in turn: folds have equal
    shares of every label whatever the order of the file, and a text that occurs twice is in one fold.
    """

    texts: TextFile
    fold: int
    folds: int
    split: str

    @property
    def name(self) -> str:
        """The path and the fold."""
        return f"{self.texts.name}, {'without ' if self.split == 'train' else ''}fold {self.fold} of {self.folds}"

    def __iter__(self) -> Iterator[Labelled]:
        keys = [(item.label, _digest(item.sentences)) for item in self.texts]
        position: dict[str, Iterator[int]] = {label: itertools.count() for label, _ in keys}
        folds = {(label, digest): next(position[label]) % self.folds for label, digest in sorted(set(keys))}
        for key, item in zip(keys, self.texts, strict=True):
            if (folds[key] == self.fold) == (self.split == "dev"):
                yield item


def _digest(sentences: Sequence[str]) -> bytes:
    return hashlib.sha256("\n".join(sentences).encode()).digest()


# The embedded grammar


@dataclasses.dataclass(frozen=True)
class GrammarTexts:
    """`size` texts of one to three sentences of the embedded grammar, in turn English, "en", and German, "de"."""

    split: str
    size: int

    @property
    def name(self) -> str:
        """The grammar and the split."""
        return f"embedded grammar {self.split}"

    def __iter__(self) -> Iterator[Labelled]:
        pairs = grammar.pairs(self.split, 3 * self.size)
        for number in range(self.size):
            side = number % 2
            sentences = [pair[side] for pair in itertools.islice(pairs, 1 + number % 3)]
            yield Labelled(("en", "de")[side], sentences, f"{self.name}:{number + 1}")
