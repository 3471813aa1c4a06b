"""Labelled texts: rows of TSV or JSONL files, or the embedded grammar; and the scale on which scores are predicted.

A row is a label and a text of one or more sentences, from one or more columns (fields). The files of a split are read
one after another; their columns may have different names. Without a file of development texts, one fold of the training
texts is held out.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt_jax.data import grammar
from nmt_jax.data.lines import find
from nmt_jax.data.readers.splits import Corpus, GrammarSplit, SingleFile, corpus_folder, with_held_out_fold
from nmt_jax.data.readers.table import Row, read_table
from nmt_jax.errors import UserError

KINDS = ("grammar", "files")
HELD_OUT = 200  # development texts of the embedded grammar


class Labelled(NamedTuple):
    """The label of a text, its sentences, and its location (FILE:LINE) for messages.

    columns: the columns of the label; the values of several columns are separated by tabs.
    """

    label: str
    sentences: list[str]
    location: str
    columns: tuple[str, ...] = ("label",)


LabelledTexts = Corpus[Labelled]


def open_labelled(data: Any, split: str) -> LabelledTexts:
    """The split ("train" or "dev") of the labelled texts that `config.data` describes.

    The names of several files, and of several columns of the label, are separated by commas; "score|human_z" means
    whichever of these columns a file has. If `data.dev` is empty, the development set is fold `data.fold` of the
    `data.folds` folds of the training texts. Raises UserError immediately if a file is missing, and while reading if
    its content is invalid.
    """
    scored = data.get("scores")
    directory = corpus_folder(data, split, KINDS, data.get("train") or "the labelled texts", ("train", "dev"))
    if directory is None:
        if not scored:
            return GrammarTexts.of(data, split, HELD_OUT)
        columns = tuple(names.split("|")[0] for names in data.label.split(","))
        return GrammarPairs.of(data, split, HELD_OUT, columns)
    paths = [find(directory / name) for name in (data[split] or data.train).split(",")]
    files = [TextFile(path, data.label, tuple(data.texts)) for path in paths]
    texts = files[0] if len(files) == 1 else Files(files)
    return with_held_out_fold(
        data, split, texts, lambda item: ("" if scored else item.label, "\n".join(item.sentences)), "texts"
    )


@dataclasses.dataclass(frozen=True)
class TextFile(SingleFile):
    """A .tsv or .jsonl file, plain or .gz; `label` and `texts` name its columns, or the fields of its objects.

    label: one column, or several separated by commas. "a|b": the first of these columns that the file has. In JSONL, a
    text is a string, or a list of strings: its sentences.
    """

    label: str
    texts: tuple[str, ...]

    def __iter__(self) -> Iterator[Labelled]:
        """Raises UserError `FILE:LINE: …` for a missing column or an invalid row."""
        if not self.texts:
            raise UserError("config.data.texts: name at least one column (or field) that contains text")
        return map(self._labelled, read_table(self.path, "labelled texts"))

    def _labelled(self, row: Row) -> Labelled:
        columns = tuple(map(row.column, self.label.split(",")))
        label = []
        for column in columns:
            value = row.fields[column]
            if not isinstance(value, str | int):
                raise UserError(f"{row.location}: {column!r} is neither a string nor an integer")
            label.append(str(value))
        if not all(value.strip() for value in label):
            raise UserError(f"{row.location}: the label is empty")
        if any(mark in value for value in label for mark in "\t\n"):
            raise UserError(f"{row.location}: the label has a tab or a line break; remove it")
        sentences = [sentence for names in self.texts for sentence in row.texts(names)]
        return Labelled("\t".join(label), sentences, row.location, columns)


@dataclasses.dataclass(frozen=True)
class Files:
    """The texts of several files, one file after another."""

    files: Sequence[TextFile]

    @property
    def name(self) -> str:
        return f"{self.files[0].name} and {len(self.files) - 1} more"

    def __iter__(self) -> Iterator[Labelled]:
        return itertools.chain.from_iterable(self.files)


@dataclasses.dataclass(frozen=True)
class GrammarTexts(GrammarSplit):
    """`size` texts of one to three sentences of the embedded grammar; labels "en" and "de" alternate."""

    def __iter__(self) -> Iterator[Labelled]:
        pairs = grammar.pairs(self.split, 3 * self.size)
        for number in range(self.size):
            side = number % 2
            sentences = [pair[side] for pair in itertools.islice(pairs, 1 + number % 3)]
            yield Labelled(("en", "de")[side], sentences, f"{self.name}:{number + 1}")


@dataclasses.dataclass(frozen=True)
class GrammarPairs(GrammarSplit):
    """`size` English sentences of the embedded grammar, each with a copy that lacks a run of words.

    The score is the share of words kept, from 0 to 1, in all `columns`. In every fourth pair, words of another sentence
    replace the missing ones.
    """

    columns: tuple[str, ...]

    def __iter__(self) -> Iterator[Labelled]:
        pairs = grammar.pairs(self.split, 2 * self.size)
        for number in range(self.size):
            words, others = (pair[0].split(" ") for pair in itertools.islice(pairs, 2))
            missing = number * 7 % (len(words) + 1)
            start = number * 5 % (len(words) - missing + 1)
            left = [*words[:start], *others[: missing * (number % 4 == 0)], *words[start + missing :]]
            score = f"{1 - missing / len(words):.3f}"
            label, location = "\t".join(score for _ in self.columns), f"{self.name}:{number + 1}"
            yield Labelled(label, [" ".join(words), " ".join(left)], location, self.columns)


@dataclasses.dataclass(frozen=True)
class ScoreScaler:
    """Origin and unit of each column of scores; models predict (score - origin) / unit."""

    columns: Mapping[str, Sequence[float]]

    @classmethod
    def fit(cls, texts: Iterable[Labelled], by_range: bool = False) -> ScoreScaler:
        """Uses the mean and standard deviation of each column, or with `by_range` its minimum and range.

        Raises UserError if a score is not a number, or if all scores of a column are equal.
        """
        found: dict[str, list[float]] = {}
        for item in texts:
            for column, score in scores(item).items():
                found.setdefault(column, []).append(score)
        if not found:
            raise UserError("config.data.train: no text to train on")
        columns = {}
        for column, values in found.items():
            numbers = np.array(values)
            if not np.ptp(numbers):
                raise UserError(f"config.data.label: all training texts have the same score in column {column!r}")
            scale = (numbers.min(), np.ptp(numbers)) if by_range else (numbers.mean(), numbers.std())
            columns[column] = [float(value) for value in scale]
        return cls(columns)

    def scaled(self, item: Labelled) -> list[float]:
        """The scaled scores of a text. Raises UserError for a column that no training text has."""
        for column in item.columns:
            if column not in self.columns:
                raise UserError(f"{item.location}: column {column!r} does not occur in the training texts")
        return [(score - self.columns[column][0]) / self.columns[column][1] for column, score in scores(item).items()]

    def format(self, label: str, outputs: Sequence[float]) -> str:
        """Predictions on the original scale, separated by tabs; `label` names columns as `config.data.label` does."""
        chosen = [next(name for name in names.split("|") if name in self.columns) for names in label.split(",")]
        scaled = zip((self.columns[column] for column in chosen), outputs, strict=True)
        return "\t".join(f"{origin + unit * output:.4f}" for (origin, unit), output in scaled)

    def __str__(self) -> str:
        """For display: `score = 2.7 + 1.5 y`."""
        return ", ".join(f"{name} = {origin:.3g} + {unit:.3g} y" for name, (origin, unit) in self.columns.items())


def scores(item: Labelled) -> dict[str, float]:
    """The scores of a text by column. Raises UserError if one is not a number."""
    found = {}
    for column, text in zip(item.columns, item.label.split("\t"), strict=True):
        try:
            found[column] = float(text)
        except ValueError:
            found[column] = math.nan
        if not math.isfinite(found[column]):
            advice = "for class labels set config.data.scores=false"
            raise UserError(f"{item.location}: the score {text!r} is not a number; {advice}")
    return found
