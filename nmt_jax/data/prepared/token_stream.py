"""A text as one stream of token ids, EOS after each line, for language models that read across lines."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np

from nmt_jax.data.prepared.cache import cache_directory, cached_file
from nmt_jax.data.readers.monolingual import Lines, open_lines
from nmt_jax.data.vocabulary.vocab import EOS, UNK, Vocab
from nmt_jax.errors import UserError
from nmt_jax.progress import track

FORMAT = 1  # increase it whenever the content of a prepared file changes


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
    """The token ids of each line, followed by EOS."""
    for line in lines:
        yield [*vocab.encode(line), EOS]


def prepare(data: Any, split: str, vocab: Vocab) -> Stream:
    """The token ids of a split of `config.data`, from the cache if they were prepared before.

    Raises UserError if all lines are empty, or if the cache cannot be written.
    """
    lines = open_lines(data, split)
    key = [FORMAT, lines.fingerprint(), vocab.fingerprint]
    write = functools.partial(_write, lines=lines, vocab=vocab)
    path = cached_file(cache_directory(data), split, key, ".int32", write)
    return Stream(np.memmap(path, np.int32, "r"), f"{split}: {lines.name}")


def _write(file: BinaryIO, *, lines: Lines, vocab: Vocab) -> None:
    empty = True
    for ids in encode(track(lines, f"preparing {lines.name}"), vocab):
        empty = empty and len(ids) == 1
        file.write(np.array(ids, np.int32).tobytes())
    if empty:
        raise UserError(f"{lines.name}: no text, only empty lines")
