"""Tagged sentences: CoNLL columns, a word a line, or the embedded grammar; each word has a BIO tag.

A blank line ends a sentence. Columns are parted by tabs where a line has one, else by blanks. Sentences of a word
-DOCSTART- alone only part documents and are passed over. Where there is no file of development sentences, one fold of
the training file is held out.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import pathlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from nmt_jax.data import grammar
from nmt_jax.data.grammar import lexicon
from nmt_jax.data.lines import find, read_lines
from nmt_jax.data.readers.labelled import HELD_OUT, KINDS
from nmt_jax.errors import UserError

SCHEMES = ("bio", "iob1")


class Tagged(NamedTuple):
    """The words of a sentence, a tag for each (O, B-TYPE, I-TYPE: always BIO), and where the first word stands."""

    words: list[str]
    tags: list[str]
    where: str


class TaggedSentences(Protocol):
    """Tagged sentences in a fixed order, each time from the start."""

    @property
    def name(self) -> str:
        """What people call it."""

    def __iter__(self) -> Iterator[Tagged]: ...


def open_tagged(data: Any, split: str) -> TaggedSentences:
    """The split ("train" or "dev") of the sentences that `config.data` describes.

    Without a file of its own, `data.dev` empty, the development set is fold `data.fold` of the `data.folds` folds of
    the training file. Raises UserError at once where a file is missing, and while reading where it is at fault.
    """
    if data.corpus == "grammar":
        return GrammarSentences(split, data.size if split == "train" else HELD_OUT)
    if data.corpus not in KINDS:
        raise UserError(f"config.data.corpus: {data.corpus!r} is not one of {', '.join(KINDS)}")
    if data.scheme not in SCHEMES:
        raise UserError(f"config.data.scheme: {data.scheme!r} is not one of {', '.join(SCHEMES)}")
    if not data.directory:
        raise UserError(f"config.data.directory: name the folder of {data.train}")
    path = find(pathlib.Path(data.directory).expanduser() / (data[split] or data.train))
    sentences = TaggedFile(path, data.word_column, data.tag_column, data.scheme)
    if data.dev:
        return sentences
    if data.folds < 2 or not 0 <= data.fold < data.folds:
        raise UserError(
            f"config.data.fold={data.fold} of data.folds={data.folds}: take one of 0 … folds-1 of 2 or more"
        )
    return TaggedFold(sentences, data.fold, data.folds, split)


@dataclasses.dataclass(frozen=True)
class TaggedFile:
    """A file of columns, plain or .gz; columns count from 0, negative ones from the end.

    scheme: "bio", where every entity begins with B-, or "iob1", where only one does that follows another of its type.
    """

    path: pathlib.Path
    word_column: int
    tag_column: int
    scheme: str

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    def __iter__(self) -> Iterator[Tagged]:
        """Raises UserError `FILE:LINE: …` for a line that cannot be read and a tag that cannot be there."""
        words: list[str] = []
        tags: list[str] = []
        start = before = ""
        for number, line in enumerate(itertools.chain(read_lines(self.path), [""]), start=1):
            where = f"{self.path}:{number}"
            if not line.strip():
                if words and words != ["-DOCSTART-"]:
                    yield Tagged(words, tags, start)
                words, tags, before = [], [], ""
                continue
            word, tag = self._columns(line, where)
            start = start if words else where
            words.append(word)
            tags.append(self._bio(tag, before, where))
            before = tag

    def _columns(self, line: str, where: str) -> tuple[str, str]:
        fields = line.split("\t") if "\t" in line else line.split(" ")
        try:
            word, tag = fields[self.word_column].strip(), fields[self.tag_column].strip()
        except IndexError:
            raise UserError(
                f"{where}: {len(fields)} columns, but config.data.word_column={self.word_column} and tag_column="
                f"{self.tag_column}"
            ) from None
        if not word:
            raise UserError(f"{where}: the word is empty")
        return word, tag

    def _bio(self, tag: str, before: str, where: str) -> str:
        """The tag as BIO writes it, after the tag `before` of the file."""
        mark, _, kind = tag.partition("-")
        if tag != "O" and (mark not in ("B", "I") or not kind):
            raise UserError(f"{where}: tag {tag!r} is none of O, B-TYPE and I-TYPE")
        follows = bool(kind) and before.partition("-")[2] == kind
        if self.scheme == "bio" and mark == "I" and not follows:
            raise UserError(
                f"{where}: {tag} follows {before or 'nothing'}: an entity begins with B-{kind}; if the file is IOB1, "
                "set config.data.scheme=iob1"
            )
        if self.scheme == "iob1" and mark == "B" and not follows:
            raise UserError(
                f"{where}: {tag} follows {before or 'nothing'}: in IOB1 it parts two entities of one type; if every "
                "entity begins with B-, set config.data.scheme=bio"
            )
        return f"B-{kind}" if self.scheme == "iob1" and mark == "I" and not follows else tag


@dataclasses.dataclass(frozen=True)
class TaggedFold:
    """The sentences in fold `fold` of `folds`, for "dev", or all others, for "train".

    The distinct sentences, in the order of their SHA-256, are dealt to the folds in turn.
    """

    sentences: TaggedFile
    fold: int
    folds: int
    split: str

    @property
    def name(self) -> str:
        """The path and the fold."""
        return f"{self.sentences.name}, {'without ' if self.split == 'train' else ''}fold {self.fold} of {self.folds}"

    def __iter__(self) -> Iterator[Tagged]:
        found = [(hashlib.sha256("\n".join(item.words).encode()).digest(), item) for item in self.sentences]
        folds = {digest: place % self.folds for place, digest in enumerate(sorted({digest for digest, _ in found}))}
        for digest, item in found:
            if (folds[digest] == self.fold) == (self.split == "dev"):
                yield item


@dataclasses.dataclass(frozen=True)
class GrammarSentences:
    """`size` English sentences of the embedded grammar, in which people (PER) and towns (LOC) have names."""

    split: str
    size: int

    @property
    def name(self) -> str:
        """The grammar and the split."""
        return f"embedded grammar {self.split}"

    def __iter__(self) -> Iterator[Tagged]:
        names = {name.name: "PER" for name in lexicon.PEOPLE} | {town.name: "LOC" for town in lexicon.TOWNS}
        for number, (english, _) in enumerate(grammar.pairs(self.split, self.size), start=1):
            words = re.findall(r"'s|\w+|[^\w\s]", english)
            tags = [f"B-{names[word]}" if word in names else "O" for word in words]
            yield Tagged(words, tags, f"{self.name}:{number}")
