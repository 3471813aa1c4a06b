"""Raw text as documents of segments: what follows what, encoded once and mapped from the disk.

A document is lines that follow each other, up to a blank line; in running text, such as a book, where blank lines part
paragraphs, it is so many paragraphs. A segment is a line, or a paragraph of running text, or, where that is long, the
parts that `split_long` cuts it into. An example is as many segments of one document as fit a row.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import itertools
import json
import pathlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from nmt_jax.data.lines import chunks, find, read_lines, split_long
from nmt_jax.data.prepared.parallel import cache_directory
from nmt_jax.data.readers.corpora import HELD_OUT, GrammarCorpus
from nmt_jax.errors import UserError
from nmt_jax.progress import track

FORMAT = 1  # raise it whenever what lies in a prepared folder changes
KINDS = ("grammar", "text")
SENTENCES = 8  # of a document of the embedded grammar
SPECIALS = 3  # tokens of a row that are no text: [CLS] first [SEP] second [SEP]
MANY = 256  # documents encoded together


class Documents(Protocol):
    """Documents: iterating gives the lines of each, each time from the start."""

    @property
    def name(self) -> str:
        """What people call them."""

    def __iter__(self) -> Iterator[list[str]]: ...

    def fingerprint(self) -> str:
        """SHA-256 of the content."""


class Tokenizer(Protocol):
    """What text is encoded with."""

    @property
    def model(self) -> str:
        """What two tokenizers differ in, if they do."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, nothing added."""


def open_documents(data: Any, split: str) -> Documents:
    """The split ("train" or "dev") of the text that `config.data` describes; UserError where none is described.

    Of every 1 / `dev_share` documents the last is dev, whatever file it is from, and train lacks it.
    """
    if data.corpus == "grammar":
        return GrammarDocuments(GrammarCorpus(split, data.size if split == "train" else HELD_OUT))
    if data.corpus not in KINDS:
        raise UserError(f"config.data.corpus: {data.corpus!r} is not one of {', '.join(KINDS)}")
    if not data.directory or not (data.train or data.running):
        raise UserError(
            "config.data.directory, config.data.train, config.data.running: name the folder that holds the text, and "
            "files in it: of documents that a blank line ends, or of running text"
        )
    if not 0 < data.dev_share < 1:
        raise UserError(f"config.data.dev_share={data.dev_share}: more than 0 and less than 1 of the documents")
    if data.paragraphs < 2:
        raise UserError(f"config.data.paragraphs={data.paragraphs} must be at least 2")
    directory = pathlib.Path(data.directory).expanduser()
    train, running = (tuple(find(directory / name) for name in names) for names in (data.train, data.running))
    return FileDocuments(train, running, data.paragraphs, data.dev_share, split == "dev")


@dataclasses.dataclass(frozen=True)
class FileDocuments:
    """A share of the documents of files, plain or .gz, or all the others; see the head of this file."""

    files: tuple[pathlib.Path, ...]
    running: tuple[pathlib.Path, ...]
    paragraphs: int
    share: float
    held_out: bool

    @property
    def name(self) -> str:
        """The files."""
        return ", ".join(path.name for path in (*self.files, *self.running))

    def __iter__(self) -> Iterator[list[str]]:
        for number, document in enumerate(self._all()):
            if (int((number + 1) * self.share) > int(number * self.share)) == self.held_out:
                yield document

    def _all(self) -> Iterator[list[str]]:
        for path in self.files:
            yield from _blocks(read_lines(path))
        for path in self.running:
            yield from chunks((" ".join(lines) for lines in _blocks(read_lines(path))), self.paragraphs)

    def fingerprint(self) -> str:
        """SHA-256 of the files as they lie on the disk, and of which documents."""
        sums = []
        for path in (*self.files, *self.running):
            try:
                with open(path, "rb") as file:
                    sums.append(hashlib.file_digest(file, "sha256").hexdigest())
            except OSError as error:
                raise UserError(f"{path}: cannot read it: {error.strerror}") from error
        settings = [sums, len(self.files), self.paragraphs, self.share, self.held_out]
        return hashlib.sha256(json.dumps(settings).encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class GrammarDocuments:
    """Sentences of the embedded grammar: every other document is German, the rest English."""

    corpus: GrammarCorpus

    @property
    def name(self) -> str:
        """The grammar and the split."""
        return self.corpus.name

    def __iter__(self) -> Iterator[list[str]]:
        for number, pairs in enumerate(chunks(iter(self.corpus), SENTENCES)):
            yield [pair[number % 2] for pair in pairs]

    def fingerprint(self) -> str:
        """SHA-256 of the pairs."""
        return hashlib.sha256(f"{self.corpus.fingerprint()} {SENTENCES}".encode()).hexdigest()


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Lines that no blank line parts."""
    for blank, group in itertools.groupby(lines, key=lambda line: not line.strip()):
        if not blank:
            yield list(group)


@dataclasses.dataclass(frozen=True, eq=False)
class Segments:
    """A text mapped from the disk: ids int32[tokens], ends int64[N] of its segments in them.

    examples int64[M + 1]: the first segment of each example, and N. documents int64[C + 1]: the first example of each
    document, and M. longest: the most tokens of a segment. room: the most of an example.
    """

    ids: np.ndarray
    ends: np.ndarray
    examples: np.ndarray
    documents: np.ndarray
    longest: int
    room: int
    name: str

    def __len__(self) -> int:
        return len(self.examples) - 1

    @functools.cached_property
    def report(self) -> str:
        """How much there is, in one line."""
        documents = len(self.documents) - 1
        return (
            f"{self.name}: {len(self.ids):,} tokens in {len(self.ends):,} segments of {documents:,} documents: "
            f"{len(self):,} examples, {len(self.ids) / (self.room * len(self)):.0%} full"
        )


def room_of(max_length: int) -> tuple[int, int]:
    """The most tokens of an example and of a segment in rows of `max_length` tokens.

    Two segments fit any row, so that what is cut off to make room never tells a true next sentence from a false one.
    """
    return max_length - SPECIALS, (max_length - SPECIALS) // 2


def prepare(data: Any, split: str, tokenizer: Tokenizer, special: Sequence[int], unknown: int) -> Segments:
    """Encodes a split of `config.data`, or finds it done.

    special: ids that no text has; what spells them in a text is left out, but for `unknown`, which "<unk>" becomes too.
    The folder is named by content, tokenizer and `max_length`, and appears whole or not at all. Raises UserError where
    there is no text, and where the disk is full.
    """
    documents = open_documents(data, split)
    room, longest = room_of(data.max_length)
    if longest < 1:
        raise UserError(f"config.data.max_length={data.max_length}: at least {SPECIALS + 2}, two tokens of text")
    key = json.dumps([FORMAT, documents.fingerprint(), hashlib.sha256(tokenizer.model.encode()).hexdigest(), room])
    folder = cache_directory(data) / f"segments-{split}-{hashlib.sha256(key.encode()).hexdigest()[:32]}"
    if not folder.exists():
        writer = _Writer(tokenizer, np.array([number for number in special if number != unknown]), room, longest)
        try:
            writer.write(documents, folder)
        except OSError as error:
            raise UserError(
                f"{folder.parent}: cannot write the prepared text: {error.strerror or error}; "
                "name another folder with config.data.cache"
            ) from error
    arrays = {name: np.memmap(folder / name, dtype, "r") for name, dtype in ARRAYS.items()}
    return Segments(**arrays, longest=longest, room=room, name=f"{split}: {documents.name}")


ARRAYS = {"ids": np.int32, "ends": np.int64, "examples": np.int64, "documents": np.int64}  # of `Segments`: files


class _Writer:
    """Writes the arrays of `Segments`, document by document."""

    def __init__(self, tokenizer: Tokenizer, left_out: np.ndarray, room: int, longest: int):
        self.tokenizer, self.left_out, self.room, self.longest = tokenizer, left_out, room, longest
        self.tokens = self.segments = self.examples = 0

    def write(self, documents: Documents, folder: pathlib.Path) -> None:
        """Writes the arrays beside their place and moves them there."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = pathlib.Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            with contextlib.ExitStack() as files:
                handles = {name: files.enter_context((unfinished / name).open("wb")) for name in ARRAYS}
                for group in chunks(track(documents, f"preparing {documents.name}"), MANY):
                    for name, values in zip(handles, self._encode(group), strict=True):
                        handles[name].write(np.asarray(values, ARRAYS[name]).tobytes())
                handles["examples"].write(np.int64(self.segments).tobytes())
                handles["documents"].write(np.int64(self.examples).tobytes())
            if not self.tokens:
                raise UserError(f"{documents.name}: no text, only empty lines")
            unfinished.chmod(0o755)
            if not folder.exists():  # another process may have been faster
                unfinished.replace(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)

    def _encode(self, documents: Sequence[list[str]]) -> tuple[np.ndarray, list[int], list[int], list[int]]:
        """What these documents add to the four arrays."""
        ids: list[np.ndarray] = []
        ends: list[int] = []
        examples: list[int] = []
        firsts: list[int] = []
        texts = [[line.strip().replace("<unk>", "[UNK]") for line in document] for document in documents]
        encoded = iter(self.tokenizer.encode(list(itertools.chain.from_iterable(texts))))
        for document in texts:
            first, filled = self.examples, self.room + 1  # a document begins an example
            for segment in itertools.chain.from_iterable(self._parts(line, next(encoded)) for line in document):
                if filled + len(segment) > self.room:
                    examples.append(self.segments)
                    self.examples, filled = self.examples + 1, 0
                filled += len(segment)
                self.tokens, self.segments = self.tokens + len(segment), self.segments + 1
                ids.append(segment)
                ends.append(self.tokens)
            if self.examples > first:
                firsts.append(first)
        return np.concatenate(ids) if ids else np.zeros(0, np.int32), ends, examples, firsts

    def _parts(self, line: str, ids: list[int]) -> Iterator[np.ndarray]:
        """The segments of a line that is `ids` as a whole; none for a line without a token."""

        def encode(text: str) -> list[int]:
            return self.tokenizer.encode([text])[0]

        whole = len(ids) <= self.longest
        for piece in [ids] if whole else map(encode, split_long(line, encode, self.longest + 1)):
            segment = np.array(piece, np.int32)
            segment = segment[~np.isin(segment, self.left_out)][: self.longest]
            if len(segment):
                yield segment
