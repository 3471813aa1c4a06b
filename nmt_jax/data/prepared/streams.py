"""A text as one stream of token ids, or of word numbers, memory-mapped from the cache."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from metrics_jax.surface.tokenizers import tokenize
from nmt_jax.data.lines import chunks
from nmt_jax.data.prepared.cache import cache_directory, cached_folder
from nmt_jax.data.readers.monolingual import open_documents, open_lines
from nmt_jax.data.vocabulary.vocab import EOS, UNK, Vocab
from nmt_jax.data.vocabulary.words import Words
from nmt_jax.errors import UserError
from nmt_jax.progress import track

FORMAT = 1  # increase it whenever the content of a prepared file changes
TOKENIZED_TOGETHER = 1024  # texts


@dataclasses.dataclass(frozen=True)
class Stream:
    """N token ids int32[N], memory-mapped; the last one is EOS."""

    ids: np.ndarray
    name: str

    @functools.cached_property
    def report(self) -> str:
        """Summary in one line: numbers of tokens and lines, share of unknown tokens."""
        lines, unknown = (int(np.count_nonzero(self.ids == special)) for special in (EOS, UNK))
        line = f"{self.name}: {len(self.ids):,} tokens, including {lines:,} ends of lines"
        return f"{line}; {unknown / len(self.ids):.1%} unknown" if unknown else line


def encode(lines: Iterable[str], vocab: Vocab) -> Iterator[list[int]]:
    """The token ids of each line, followed by the end of a line."""
    for line in lines:
        yield [*vocab.encode(line), vocab.end]


def prepare_tokens(data: Any, split: str, vocab: Vocab) -> Stream:
    """The token ids of a split of `config.data`, EOS after each line, for language models that read across lines.

    Raises UserError if all lines are empty, or if the cache cannot be written.
    """
    lines = open_lines(data, split)
    key = [FORMAT, lines.fingerprint(), vocab.fingerprint]
    rows = encode(track(lines, f"preparing {lines.name}"), vocab)
    ids = _prepare(data, split, key, rows, f"{lines.name}: no text, only empty lines")
    return Stream(ids, f"{split}: {lines.name}")


def read_texts(data: Any, split: str) -> Iterator[list[str]]:
    """The words of each text of a split of `config.data`; a text is a line, or a paragraph of running text.

    `data.tokenizer` and `data.lower_case` define words; without `data.punctuation`, words that have neither letter nor
    digit are dropped. Raises UserError if the tokenizer is unknown or the text cannot be read.
    """
    documents = open_documents(data, split)
    lines = itertools.chain.from_iterable(track(documents, f"reading {documents.name}"))
    for group in chunks(lines, TOKENIZED_TOGETHER):
        try:
            texts = tokenize(group, data.tokenizer, data.lower_case)
        except ValueError as error:
            raise UserError(f"config.data.tokenizer: {error}") from None
        for text in texts:
            yield text if data.punctuation else [word for word in text if any(map(str.isalnum, word))]


def prepare_words(data: Any, split: str, words: Words) -> np.ndarray:
    """The word numbers of a split of `config.data`, int32[N], NO_WORD after each text, for training word vectors.

    Raises UserError if no word of the text is in the vocabulary, or if the cache cannot be written.
    """
    settings = [data.tokenizer, data.lower_case, data.punctuation]
    key = [FORMAT, open_documents(data, split).fingerprint(), words.fingerprint, settings]
    rows = (numbers for text in read_texts(data, split) if len(numbers := words.encode(text)) > 1)
    nothing = f"the {split} text contains none of the {len(words) - 1:,} words: increase config.data.dev_share"
    return _prepare(data, f"words-{split}", key, rows, nothing)


def _prepare(data: Any, prefix: str, key: list[Any], rows: Iterable[list[int]], nothing: str) -> np.ndarray:
    """The file of this key; without one, writes `rows`. Raises UserError `nothing` if each has only its final mark."""

    def write(folder: pathlib.Path) -> None:
        empty = True
        with (folder / "ids.int32").open("wb") as file:
            for row in rows:
                empty = empty and len(row) == 1
                file.write(np.array(row, np.int32).tobytes())
        if empty:
            raise UserError(nothing)

    return np.memmap(cached_folder(cache_directory(data), prefix, key, write) / "ids.int32", np.int32, "r")
