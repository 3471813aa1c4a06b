"""Batches for prediction: items sorted by length, longest first, in few shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from metrics_jax.embedding.forward import bucket
from nmt_jax.data.batching.batches import Shape
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.readers import sources
from nmt_jax.data.vocabulary.vocab import EOS


def pack_by_length(
    lengths: Sequence[int], batch_tokens: int, multiple_of: int, padded: Callable[[int], int]
) -> Iterator[tuple[np.ndarray, Shape]]:
    """Groups items of these lengths into batches, longest first, so that running out of memory shows immediately.

    padded: maps the length of the longest item of a batch to the length of its rows; each result is a compilation.
    Yields (indices int[N], shape): row n of the batch holds item indices[n]; rows from N on are empty. The number of
    rows is `multiple_of` times a power of two, with at most `batch_tokens` tokens if possible; only the last batch may
    have fewer rows than its length allows.
    """
    order = np.argsort([-length for length in lengths], kind="stable")
    start = 0
    while start < len(order):
        length = padded(int(lengths[order[start]]))
        most = max(batch_tokens // (length * multiple_of), 1)
        needed = -(-(len(order) - start) // multiple_of)
        # The largest power of two that fits, but no more than the smallest that holds all remaining items.
        rows = multiple_of * min(1 << (most.bit_length() - 1), 1 << (needed - 1).bit_length())
        yield order[start : start + rows], Shape(rows, length, 1)
        start += rows


def decoding_batches(
    inputs: Sequence[Sequence[int]], *, batch_tokens: int, multiple_of: int = 1, num_sources: int = 1
) -> Iterator[tuple[np.ndarray, Batch]]:
    """Batches of token ids for decoding; `inputs` lack the last EOS.

    Yields (indices int[N], {"source": int32[B, S]}), or int32[B, num_sources, S] for several sources: row n holds
    inputs[indices[n]] and EOS; rows from N on are PAD. S is 8, 16, 24, 32, 48, 64, 96, 128, 192 …; for B see
    `pack_by_length`.
    """
    ids = [np.array([*pieces, EOS], np.int32) for pieces in inputs]
    lengths = [int(sources.lengths(row).max()) for row in ids]
    packed = pack_by_length(lengths, batch_tokens // num_sources, multiple_of, lambda length: bucket(length, steps=2))
    for indices, shape in packed:
        rows = [ids[index] for index in indices]
        yield indices, {"source": sources.fill(rows, (shape.rows, shape.first), num_sources)}
