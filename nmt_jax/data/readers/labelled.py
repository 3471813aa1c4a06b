"""Labelled texts: rows of a TSV or JSONL file, or the embedded grammar, each a label and the sentences of a text.

A text has one sentence or many, from one column (field) or several. Files of a split follow one another, and need not
name their columns alike. Where there is no file of development texts, one fold of the training texts is held out.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from nmt_jax.data import grammar
from nmt_jax.data.lines import find
from nmt_jax.data.readers.table import Row, read_table
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

    label: a column, or several with commas between. "a|b": the first of these that the file has. In JSONL a text is a
    string, or a list of strings, its sentences.
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
        if not self.texts:
            raise UserError("config.data.texts: name at least one column (or field) of text")
        return map(self._labelled, read_table(self.path, "labelled texts"))

    def _labelled(self, row: Row) -> Labelled:
        columns = tuple(map(row.column, self.label.split(",")))
        label, sentences = [], []
        for column in columns:
            value = row.fields[column]
            if not isinstance(value, str | int):
                raise UserError(f"{row.where}: {column!r} is neither a string nor an integer")
            label.append(str(value))
        if not all(value.strip() for value in label):
            raise UserError(f"{row.where}: the label is empty")
        for column in map(row.column, self.texts):
            value = row.fields[column]
            several = [value] if isinstance(value, str) else value
            if not isinstance(several, list) or not all(isinstance(sentence, str) for sentence in several):
                raise UserError(f"{row.where}: {column!r} is neither a string nor a list of strings")
            sentences += several
        return Labelled("\t".join(label), sentences, row.where, columns)


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
