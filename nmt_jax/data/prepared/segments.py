"""Raw text as documents of segments, encoded once and memory-mapped; the input of BERT-style pretraining.

A segment is a line (or a paragraph of running text), or the parts that `split_long` cuts a long line into. An example
is as many consecutive segments of one document as fit a row.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import itertools
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from nmt_jax.data.lines import chunks, split_long
from nmt_jax.data.prepared.cache import cache_directory, cached_folder
from nmt_jax.data.readers.monolingual import Documents, open_documents
from nmt_jax.errors import UserError
from nmt_jax.progress import track

FORMAT = 1  # increase it whenever the content of a prepared folder changes
SPECIALS = 3  # special tokens of a row: [CLS] first [SEP] second [SEP]
ENCODED_TOGETHER = 256  # documents
ARRAYS = {"ids": np.int32, "ends": np.int64, "examples": np.int64, "documents": np.int64}  # files, fields of `Segments`


class Tokenizer(Protocol):
    """Turns text into token ids."""

    @property
    def model(self) -> str:
        """The whole tokenizer as text; equal for equal tokenizers."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without special tokens."""


@dataclasses.dataclass(frozen=True, eq=False)
class Segments:
    """Memory-mapped text: token ids int32[tokens], and the end of each segment in them, int64[N].

    examples: int64[M + 1], the first segment of each example, then N. documents: int64[C + 1], the first example of
    each document, then M. longest: maximum number of tokens of a segment. capacity: maximum of an example.
    """

    ids: np.ndarray
    ends: np.ndarray
    examples: np.ndarray
    documents: np.ndarray
    longest: int
    capacity: int
    name: str

    def __len__(self) -> int:
        return len(self.examples) - 1

    @functools.cached_property
    def report(self) -> str:
        """Summary in one line: numbers of tokens, segments, documents and examples."""
        documents = len(self.documents) - 1
        return (
            f"{self.name}: {len(self.ids):,} tokens in {len(self.ends):,} segments of {documents:,} documents: "
            f"{len(self):,} examples, {len(self.ids) / (self.capacity * len(self)):.0%} full"
        )


def capacities(max_length: int) -> tuple[int, int]:
    """Maximum numbers of tokens of an example and of a segment in rows of `max_length` tokens.

    Any two segments fit a row, so truncation never distinguishes true next sentences from random ones.
    """
    return max_length - SPECIALS, (max_length - SPECIALS) // 2


def prepare(data: Any, split: str, tokenizer: Tokenizer, special: Sequence[int], unknown: int) -> Segments:
    """The segments of a split of `config.data`, from the cache if they were prepared before.

    special: ids of special tokens. If text contains the spelling of one, it is dropped, except for `unknown`; "<unk>"
    also becomes `unknown`. Raises UserError if all lines are empty, or if the cache cannot be written.
    """
    documents = open_documents(data, split)
    capacity, longest = capacities(data.max_length)
    if longest < 1:
        raise UserError(f"config.data.max_length={data.max_length} must be at least {SPECIALS + 2}")
    key = [FORMAT, documents.fingerprint(), hashlib.sha256(tokenizer.model.encode()).hexdigest(), capacity]
    writer = _Writer(tokenizer, np.array([number for number in special if number != unknown]), capacity, longest)
    write = functools.partial(writer.write, documents)
    folder = cached_folder(cache_directory(data), f"segments-{split}", key, write)
    arrays = {name: np.memmap(folder / name, dtype, "r") for name, dtype in ARRAYS.items()}
    return Segments(**arrays, longest=longest, capacity=capacity, name=f"{split}: {documents.name}")


class _Writer:
    """Writes the arrays of `Segments`, document by document."""

    def __init__(self, tokenizer: Tokenizer, dropped: np.ndarray, capacity: int, longest: int):
        self.tokenizer, self.dropped, self.capacity, self.longest = tokenizer, dropped, capacity, longest
        self.tokens = self.segments = self.examples = 0

    def write(self, documents: Documents, folder: pathlib.Path) -> None:
        """Writes one file per array. Raises UserError if there is no text."""
        with contextlib.ExitStack() as files:
            handles = {name: files.enter_context((folder / name).open("wb")) for name in ARRAYS}
            for group in chunks(track(documents, f"preparing {documents.name}"), ENCODED_TOGETHER):
                for name, values in zip(handles, self._encode(group), strict=True):
                    handles[name].write(np.asarray(values, ARRAYS[name]).tobytes())
            handles["examples"].write(np.int64(self.segments).tobytes())
            handles["documents"].write(np.int64(self.examples).tobytes())
        if not self.tokens:
            raise UserError(f"{documents.name}: no text, only empty lines")

    def _encode(self, documents: Sequence[list[str]]) -> tuple[np.ndarray, list[int], list[int], list[int]]:
        """What these documents append to the four arrays."""
        ids: list[np.ndarray] = []
        ends: list[int] = []
        examples: list[int] = []
        firsts: list[int] = []
        texts = [[line.strip().replace("<unk>", "[UNK]") for line in document] for document in documents]
        encoded = iter(self.tokenizer.encode(list(itertools.chain.from_iterable(texts))))
        for document in texts:
            first, filled = self.examples, self.capacity + 1  # a document begins an example
            for segment in itertools.chain.from_iterable(self._parts(line, next(encoded)) for line in document):
                if filled + len(segment) > self.capacity:
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
        """The segments of a line whose token ids are `ids`; none for a line without tokens."""
        pieces = [ids]
        if len(ids) > self.longest:
            length = self.longest + 1
            pieces = self.tokenizer.encode(split_long(line, lambda text: self.tokenizer.encode([text])[0], length))
        for piece in pieces:
            segment = np.array(piece, np.int32)
            segment = segment[~np.isin(segment, self.dropped)][: self.longest]
            if len(segment):
                yield segment
