"""Labelled texts: rows of a TSV or JSONL file, or the embedded grammar, each a label and the sentences of a text.

A text has one sentence or many, from one column (field) or several. Files of a split follow one another, and need not
name their columns alike. Where there is no file of development texts, one fold of the training texts is held out.
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
    """A text as its sentences, what it is, and where it stands (FILE:LINE), for messages.

    columns: where the label comes from; of several columns it has tabs between.
    """

    label: str
    sentences: list[str]
    where: str
    columns: tuple[str, ...] = ("label",)


class LabelledTexts(Protocol):
    """Labelled texts in a fixed order, each time from the start."""

    @property
    def name(self) -> str:
        """What people call it."""

    def __iter__(self) -> Iterator[Labelled]: ...


def open_labelled(data: Any, split: str) -> LabelledTexts:
    """The split ("train" or "dev") of the labelled texts that `config.data` describes.

    Names of several files, and of several columns of the label, have commas between; "score|human_z" is the one of
    these columns that a file has. Without a file of its own, `data.dev` empty, the development set is fold `data.fold`
    of the `data.folds` folds of the training texts. Raises UserError at once where a file is missing, and while reading
    where it is at fault.
    """
    if split not in SPLITS:
        raise ValueError(f"split {split!r} is not one of {', '.join(SPLITS)}")
    if data.corpus == "grammar":
        size = data.size if split == "train" else HELD_OUT
        if not data.get("scores"):
            return GrammarTexts(split, size)
        return GrammarPairs(split, size, tuple(names.split("|")[0] for names in data.label.split(",")))
    if data.corpus not in KINDS:
        raise UserError(f"config.data.corpus: {data.corpus!r} is not one of {', '.join(KINDS)}")
    if not data.directory:
        raise UserError(f"config.data.directory: name the folder of {data.train or 'the labelled texts'}")
    names = (data[split] or data.train).split(",")
    paths = [find(pathlib.Path(data.directory).expanduser() / name) for name in names]
    files = tuple(TextFile(path, data.label, tuple(data.texts)) for path in paths)
    texts = files[0] if len(files) == 1 else Files(files)
    if data.dev:
        return texts
    if data.folds < 2 or not 0 <= data.fold < data.folds:
        raise UserError(
            f"config.data.fold={data.fold} of data.folds={data.folds}: take one of 0 … folds-1 of 2 or more"
        )
    return Fold(texts, data.fold, data.folds, split, by_label=not data.get("scores"))


# Files


@dataclasses.dataclass(frozen=True)
class TextFile:
    """A .tsv or .jsonl file, plain or .gz; `label` and `texts` name its columns, or the fields of its objects.

    label: a column, or several with commas between. "a|b": the first of these that the file has.
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
        labels, texts = self._columns(header, 1, "column")
        places = [header.index(column) for column in (*labels, *texts)]
        for number, line in enumerate(lines, start=2):
            fields = line.split("\t")
            if len(fields) != len(header):
                raise UserError(
                    f"{self.path}:{number}: {len(fields)} fields between tabs, the header has {len(header)}"
                )
            values = [fields[place] for place in places]
            yield self._labelled(values[: len(labels)], values[len(labels) :], number, labels)

    def _jsonl(self) -> Iterator[Labelled]:
        for number, line in enumerate(read_lines(self.path), start=1):
            try:
                row = json.loads(line)
            except ValueError as error:
                raise UserError(f"{self.path}:{number}: not JSON ({error})") from None
            if not isinstance(row, dict):
                raise UserError(f"{self.path}:{number}: not a JSON object")
            labels, texts = self._columns(list(row), number, "field")
            for field in labels:
                if not isinstance(row[field], str | int):
                    raise UserError(f"{self.path}:{number}: {field!r} is neither a string nor an integer")
            sentences = []
            for field in texts:
                value = [row[field]] if isinstance(row[field], str) else row[field]
                if not isinstance(value, list) or not all(isinstance(sentence, str) for sentence in value):
                    raise UserError(f"{self.path}:{number}: {field!r} is neither a string nor a list of strings")
                sentences += value
            yield self._labelled([str(row[field]) for field in labels], sentences, number, labels)

    def _columns(self, header: Sequence[str], number: int, what: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The columns of the label and of the texts; UserError for one that is not there."""

        def find_column(names: str) -> str:
            for name in names.split("|"):
                if name in header:
                    return name
            raise UserError(
                f"{self.path}:{number}: no {what} {names!r}{' in the header' * (what == 'column')}; it has "
                f"{', '.join(header)}"
            )

        return tuple(map(find_column, self.label.split(","))), tuple(map(find_column, self.texts))

    def _labelled(self, label: list[str], sentences: list[str], number: int, columns: tuple[str, ...]) -> Labelled:
        if not all(value.strip() for value in label):
            raise UserError(f"{self.path}:{number}: the label is empty")
        return Labelled("\t".join(label), sentences, f"{self.path}:{number}", columns)


@dataclasses.dataclass(frozen=True)
class Files:
    """The texts of several files, one file after another."""

    files: tuple[TextFile, ...]

    @property
    def name(self) -> str:
        """The first path, and how many follow."""
        return f"{self.files[0].name} and {len(self.files) - 1} more"

    def __iter__(self) -> Iterator[Labelled]:
        return itertools.chain.from_iterable(self.files)


@dataclasses.dataclass(frozen=True)
class Fold:
    """The texts in fold `fold` of `folds`, for "dev", or all others, for "train".

    The distinct texts of a label, in the order of their SHA-256, are dealt to the folds in turn: folds have equal
    shares of every label whatever the order of the file, and a text that occurs twice is in one fold. Not by_label, as
    scores want it: all texts are dealt together.
    """

    texts: LabelledTexts
    fold: int
    folds: int
    split: str
    by_label: bool = True

    @property
    def name(self) -> str:
        """The path and the fold."""
        return f"{self.texts.name}, {'without ' if self.split == 'train' else ''}fold {self.fold} of {self.folds}"

    def __iter__(self) -> Iterator[Labelled]:
        keys = [(item.label if self.by_label else "", _digest(item.sentences)) for item in self.texts]
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


@dataclasses.dataclass(frozen=True)
class GrammarPairs:
    """`size` pairs of an English sentence of the embedded grammar and what is left of it; the score: its share, 0 to 1.

    What is missing is a run of words; every fourth time words of another sentence stand in its place. All `columns` of
    scores are the same.
    """

    split: str
    size: int
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """The grammar and the split."""
        return f"embedded grammar {self.split}"

    def __iter__(self) -> Iterator[Labelled]:
        pairs = grammar.pairs(self.split, 2 * self.size)
        for number in range(self.size):
            words, others = (pair[0].split(" ") for pair in itertools.islice(pairs, 2))
            missing = number * 7 % (len(words) + 1)
            start = number * 5 % (len(words) - missing + 1)
            left = [*words[:start], *others[: missing * (number % 4 == 0)], *words[start + missing :]]
            score = f"{1 - missing / len(words):.3f}"
            label, where = "\t".join(score for _ in self.columns), f"{self.name}:{number + 1}"
            yield Labelled(label, [" ".join(words), " ".join(left)], where, self.columns)
