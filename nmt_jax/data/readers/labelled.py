"""Labelled texts: rows of TSV or JSONL files, or the embedded grammar.

A row is a label and a text of one or more sentences, from one or more columns (fields). The files of a split are read
one after another; their columns may have different names. Without a file of development texts, one fold of the training
texts is held out.
"""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from nmt_jax.data import grammar
from nmt_jax.data.lines import find
from nmt_jax.data.readers.splits import Corpus, GrammarSplit, corpus_folder, grammar_size, with_held_out_fold
from nmt_jax.data.readers.table import Row, read_table
from nmt_jax.errors import UserError

KINDS = ("grammar", "files")
SPLITS = ("train", "dev")
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
    if split not in SPLITS:
        raise ValueError(f"split {split!r} is not one of {', '.join(SPLITS)}")
    directory = corpus_folder(data, KINDS, data.get("train") or "the labelled texts")
    if directory is None:
        size = grammar_size(data, split, HELD_OUT)
        if not data.get("scores"):
            return GrammarTexts(split, size)
        return GrammarPairs(split, size, tuple(names.split("|")[0] for names in data.label.split(",")))
    paths = [find(directory / name) for name in (data[split] or data.train).split(",")]
    files = tuple(TextFile(path, data.label, tuple(data.texts)) for path in paths)
    by_label = not data.get("scores")

    def key(item: Labelled) -> tuple[str, str]:
        return item.label if by_label else "", "\n".join(item.sentences)

    return with_held_out_fold(data, split, files[0] if len(files) == 1 else Files(files), key, "texts")


# Files


@dataclasses.dataclass(frozen=True)
class TextFile:
    """A .tsv or .jsonl file, plain or .gz; `label` and `texts` name its columns, or the fields of its objects.

    label: one column, or several separated by commas. "a|b": the first of these columns that the file has. In JSONL, a
    text is a string, or a list of strings: its sentences.
    """

    path: pathlib.Path
    label: str
    texts: tuple[str, ...]

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    def __iter__(self) -> Iterator[Labelled]:
        """Raises UserError `FILE:LINE: …` for a missing column or an invalid row."""
        if not self.texts:
            raise UserError("config.data.texts: name at least one column (or field) that contains text")
        return map(self._labelled, read_table(self.path, "labelled texts"))

    def _labelled(self, row: Row) -> Labelled:
        columns = tuple(map(row.column, self.label.split(",")))
        label, sentences = [], []
        for column in columns:
            value = row.fields[column]
            if not isinstance(value, str | int):
                raise UserError(f"{row.location}: {column!r} is neither a string nor an integer")
            label.append(str(value))
        if not all(value.strip() for value in label):
            raise UserError(f"{row.location}: the label is empty")
        for column in map(row.column, self.texts):
            value = row.fields[column]
            texts = [value] if isinstance(value, str) else value
            if not isinstance(texts, list) or not all(isinstance(sentence, str) for sentence in texts):
                raise UserError(f"{row.location}: {column!r} is neither a string nor a list of strings")
            sentences += texts
        return Labelled("\t".join(label), sentences, row.location, columns)


@dataclasses.dataclass(frozen=True)
class Files:
    """The texts of several files, one file after another."""

    files: tuple[TextFile, ...]

    @property
    def name(self) -> str:
        """The first path, and the number of further ones."""
        return f"{self.files[0].name} and {len(self.files) - 1} more"

    def __iter__(self) -> Iterator[Labelled]:
        return itertools.chain.from_iterable(self.files)


# The embedded grammar


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
