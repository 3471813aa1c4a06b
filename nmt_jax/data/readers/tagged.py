"""Tagged sentences: CoNLL files with one word per line, or the embedded grammar; each word has a BIO tag.

A blank line ends a sentence. Columns are separated by tabs if a line has one, else by spaces. Sentences that consist of
the word -DOCSTART- only separate documents and are skipped. Without a file of development sentences, one fold of the
training file is held out.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from nmt_jax.data import grammar
from nmt_jax.data.grammar import lexicon
from nmt_jax.data.lines import find, read_lines
from nmt_jax.data.readers.labelled import HELD_OUT, KINDS
from nmt_jax.data.readers.splits import Corpus, GrammarSplit, SingleFile, corpus_folder, with_held_out_fold
from nmt_jax.errors import UserError

SCHEMES = ("bio", "iob1")


class Tagged(NamedTuple):
    """The words of a sentence, their BIO tags (O, B-TYPE, I-TYPE), and the location (FILE:LINE) of the first word."""

    words: list[str]
    tags: list[str]
    location: str


def open_tagged(data: Any, split: str) -> Corpus[Tagged]:
    """The split ("train" or "dev") of the sentences that `config.data` describes.

    If `data.dev` is empty, the development set is fold `data.fold` of the `data.folds` folds of the training file.
    Raises UserError immediately if a file is missing, and while reading if its content is invalid.
    """
    directory = corpus_folder(data, split, KINDS, data.get("train") or "the tagged sentences")
    if directory is None:
        return GrammarSentences.of(data, split, HELD_OUT)
    if data.scheme not in SCHEMES:
        raise UserError(f"config.data.scheme: {data.scheme!r} is not one of {', '.join(SCHEMES)}")
    path = find(directory / (data[split] or data.train))
    sentences = TaggedFile(path, data.word_column, data.tag_column, data.scheme)
    return with_held_out_fold(data, split, sentences, lambda item: ("", "\n".join(item.words)), "sentences")


@dataclasses.dataclass(frozen=True)
class TaggedFile(SingleFile):
    """A file of columns, plain or .gz; columns are counted from 0, negative ones from the end.

    scheme: "bio" if every entity begins with B-, "iob1" if only entities that follow another of the same type do.
    """

    word_column: int
    tag_column: int
    scheme: str

    def __iter__(self) -> Iterator[Tagged]:
        """Raises UserError `FILE:LINE: …` for an invalid line or an invalid sequence of tags."""
        words: list[str] = []
        tags: list[str] = []
        start = before = ""
        for number, line in enumerate(itertools.chain(read_lines(self.path), [""]), start=1):
            location = f"{self.path}:{number}"
            if not line.strip():
                if words and words != ["-DOCSTART-"]:
                    yield Tagged(words, tags, start)
                words, tags, before = [], [], ""
                continue
            word, tag = self._columns(line, location)
            start = start if words else location
            words.append(word)
            tags.append(self._bio(tag, before, location))
            before = tag

    def _columns(self, line: str, location: str) -> tuple[str, str]:
        fields = line.split("\t") if "\t" in line else line.split(" ")
        try:
            word, tag = fields[self.word_column].strip(), fields[self.tag_column].strip()
        except IndexError:
            raise UserError(
                f"{location}: {len(fields)} columns, but config.data.word_column={self.word_column} and "
                f"config.data.tag_column={self.tag_column}"
            ) from None
        if not word:
            raise UserError(f"{location}: the word is empty")
        return word, tag

    def _bio(self, tag: str, before: str, location: str) -> str:
        """The tag in the BIO scheme; `before` is the previous tag in the file."""
        mark, _, kind = tag.partition("-")
        if tag != "O" and (mark not in ("B", "I") or not kind):
            raise UserError(f"{location}: tag {tag!r} is not O, B-TYPE or I-TYPE")
        follows = bool(kind) and before.partition("-")[2] == kind
        if mark == {"bio": "I", "iob1": "B"}[self.scheme] and not follows:
            rule = {
                "bio": f"an entity must begin with B-{kind}; if the file uses IOB1, set config.data.scheme=iob1",
                "iob1": "in IOB1, B- only separates two entities of one type; if every entity begins with B-, set "
                "config.data.scheme=bio",
            }[self.scheme]
            raise UserError(f"{location}: {tag} follows {before or 'nothing'}: {rule}")
        return f"B-{kind}" if self.scheme == "iob1" and mark == "I" and not follows else tag


@dataclasses.dataclass(frozen=True)
class GrammarSentences(GrammarSplit):
    """`size` English sentences of the embedded grammar; names of people are tagged PER, names of towns LOC."""

    def __iter__(self) -> Iterator[Tagged]:
        names = {name.name: "PER" for name in lexicon.PEOPLE} | {town.name: "LOC" for town in lexicon.TOWNS}
        for number, (english, _) in enumerate(grammar.pairs(self.split, self.size), start=1):
            words = re.findall(r"'s|\w+|[^\w\s]", english)
            tags = [f"B-{names[word]}" if word in names else "O" for word in words]
            yield Tagged(words, tags, f"{self.name}:{number}")
