"""Batches of source texts for decoding: sorted by length, longest first, in few shapes."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np

from metrics_jax.embedding.lengths import bucket, pack_by_length
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.readers import sources
from nmt_jax.data.vocabulary.vocab import EOS


def decoding_batches(
    inputs: Sequence[Sequence[int]], *, batch_tokens: int, multiple_of: int = 1, num_sources: int = 1
) -> Iterator[tuple[np.ndarray, Batch]]:
    """Batches of token ids for decoding; `inputs` lack the last EOS.

    Yields (indices int[N], {"source": int32[B, S]}), or int32[B, num_sources, S] for several sources: row n holds
    inputs[indices[n]] and EOS; rows from N on are PAD. S is 8, 16, 24, 32, 48, 64, 96, 128, 192 …; for B see
    `pack_by_length`.
    """
    ids = [np.array([*tokens, EOS], np.int32) for tokens in inputs]
    lengths = [int(sources.lengths(row).max()) for row in ids]
    padded = functools.partial(bucket, steps=2)
    for indices, rows, length in pack_by_length(lengths, batch_tokens // num_sources, multiple_of, padded):
        yield indices, {"source": sources.fill([ids[index] for index in indices], (rows, length), num_sources)}
