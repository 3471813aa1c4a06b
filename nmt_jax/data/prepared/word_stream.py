"""A text as one stream of word numbers, for training word vectors."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np

from metrics_jax.surface.tokenizers import tokenize
from nmt_jax.data.lines import chunks
from nmt_jax.data.prepared.cache import cache_directory, cached_file
from nmt_jax.data.readers.monolingual import open_documents
from nmt_jax.data.vocabulary.words import Words
from nmt_jax.errors import UserError
from nmt_jax.progress import track

FORMAT = 1  # increase it whenever the content of a prepared file changes
TOKENIZED_TOGETHER = 1024  # texts


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


def prepare(data: Any, split: str, words: Words) -> np.ndarray:
    """A split of `config.data` as int32[N], NO_WORD after each text; memory-mapped from the cache.

    Raises UserError if no word of the text is in the vocabulary, or if the cache cannot be written.
    """
    settings = [data.tokenizer, data.lower_case, data.punctuation]
    key = [FORMAT, open_documents(data, split).fingerprint(), words.fingerprint, settings]
    write = functools.partial(_write, texts=read_texts(data, split), words=words, split=split)
    path = cached_file(cache_directory(data), f"words-{split}", key, ".int32", write)
    return np.memmap(path, np.int32, "r")


def _write(file: BinaryIO, *, texts: Iterable[Iterable[str]], words: Words, split: str) -> None:
    empty = True
    for text in texts:
        numbers = words.encode(text)
        if len(numbers) > 1:
            empty = False
            file.write(np.array(numbers, np.int32).tobytes())
    if empty:
        raise UserError(
            f"the {split} text contains none of the {len(words) - 1:,} words: increase config.data.dev_share"
        )
