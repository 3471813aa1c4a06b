"""Batches of source texts for decoding: sorted by length, longest first, in few shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from metrics_jax.embedding.lengths import bucket, pack_by_length
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.readers import rows, sources
from nmt_jax.data.vocabulary.vocab import EOS


def padded_length(tokens: Sequence[int] | np.ndarray) -> int:
    """The length of the rows that hold ids of one or several sources, the last EOS included, or features [S, F]."""
    features = isinstance(tokens, np.ndarray) and tokens.ndim == 2
    return bucket(len(tokens) if features else int(sources.lengths(tokens).max()), steps=2)


def decoding_batches(
    inputs: Sequence[Sequence[int]] | Sequence[np.ndarray],
    *,
    batch_tokens: int,
    multiple_of: int = 1,
    num_sources: int = 1,
    kinds: Sequence[Any] | None = None,
    width: int = 0,
) -> Iterator[tuple[np.ndarray, Batch]]:
    """Batches for decoding of token ids, which lack the last EOS, or, with a width F, of features float32[s, F].

    Yields (indices int[N], {"source": int32[B, S]}), or int32[B, num_sources, S] for several sources: row n holds
    inputs[indices[n]] and EOS; rows from N on are PAD. For features see `rows.fill`. S is 8, 16, 24, 32, 48, 64, 96,
    128, 192 …, the first that holds the input, whatever else is in its batch: results may be rounded differently for
    another S. For B see `pack_by_length`. kinds: of each input; a batch has inputs of one kind.
    """
    ids: Any = inputs if width else [np.array([*tokens, EOS], np.int32) for tokens in inputs]
    groups: dict[Any, list[int]] = {}
    for index, row in sorted(enumerate(ids), key=lambda entry: -len(entry[1])):
        groups.setdefault((padded_length(row), kinds[index] if kinds else None), []).append(index)
    for (length, _), members in sorted(groups.items(), key=lambda group: -group[0][0]):
        lengths = np.full(len(members), length)
        for chosen, count, _ in pack_by_length(lengths, batch_tokens // num_sources, multiple_of):
            indices = np.array(members)[chosen]
            items, shape = [ids[index] for index in indices], (count, length)
            tokens = {} if width else {"source": sources.fill(items, shape, num_sources)}
            yield indices, tokens or rows.fill(items, shape, width)
