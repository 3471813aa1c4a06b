"""Batches of source texts for decoding: sorted by length, longest first, in few shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from metrics_jax.embedding.lengths import bucket, pack_by_length
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.readers.source_reader import TEXT, SourceReader
from nmt_jax.data.vocabulary.vocab import EOS


def padded_length(example: Any, reader: SourceReader = TEXT) -> int:
    """The length to which the sources of an example are padded."""
    return bucket(int(reader.lengths(example).max()), steps=2)


def decoding_batches(
    inputs: Sequence[Any],
    *,
    batch_tokens: int,
    multiple_of: int = 1,
    reader: SourceReader = TEXT,
    kinds: Sequence[Any] | None = None,
) -> Iterator[tuple[np.ndarray, Batch]]:
    """Batches for decoding of token ids, which lack the last EOS, or of examples that are not only text.

    Yields (indices int[N], {"source": int32[B, S]}), see `SourceReader.fill`: row n holds inputs[indices[n]] and EOS;
    rows from N on are PAD. S is 8, 16, 24, 32, 48, 64, 96, 128, 192 …, the first that holds the input, whatever else is
    in its batch: results may be rounded differently for another S. For B see `pack_by_length`. kinds: of each input; a
    batch has inputs of one kind.
    """
    examples = [np.array([*tokens, EOS], np.int32) for tokens in inputs] if reader.only_text else inputs
    groups: dict[Any, list[int]] = {}
    for index, example in sorted(enumerate(examples), key=lambda entry: -int(reader.lengths(entry[1]).sum())):
        groups.setdefault((padded_length(example, reader), kinds[index] if kinds else None), []).append(index)
    for (length, _), members in sorted(groups.items(), key=lambda group: -group[0][0]):
        lengths = np.full(len(members), length)
        for chosen, count, _ in pack_by_length(lengths, batch_tokens // len(reader.readers), multiple_of):
            indices = np.array(members)[chosen]
            yield indices, reader.fill([examples[index] for index in indices], (count, length))
