"""Batches of a few shapes for rows of many lengths: each shape is a compiled program."""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

MIN_BUCKET, EVEN = 8, 32  # up to a length of EVEN, all steps have the same width


def bucket(length: int, max_length: int = sys.maxsize, steps: int = 4) -> int:
    """The padded length of a row, at most max_length: 8 to 32 in steps of 4, to 64 of 8, to 128 of 16, and so on.

    Each new length is a compilation; at most a quarter of a row longer than 8 is padding. steps: the number of steps
    between two powers of two; 8 doubles the number of lengths, for programs that compile quickly, and 2 halves it.
    """
    step = max(1 << (length - 1).bit_length(), EVEN) // (2 * steps)
    return min(max(-(-length // step) * step, MIN_BUCKET), max_length)


def batch_rows(length: int, batch_tokens: int, multiple_of: int = 1) -> int:
    """The number of rows of a batch: `multiple_of` times a power of two, at most `batch_tokens` tokens if possible."""
    return multiple_of << max(batch_tokens // (length * multiple_of), 1).bit_length() - 1


class Pack(NamedTuple):
    """The indices int[N] of some items, and the shape of the batch that holds them: N <= rows."""

    indices: np.ndarray
    rows: int
    length: int


def pack_by_length(
    lengths: Sequence[int] | np.ndarray, batch_tokens: int, multiple_of: int = 1, padded: Callable[[int], int] = bucket
) -> Iterator[Pack]:
    """Divides items of these lengths into batches, longest first, so that running out of memory shows immediately.

    padded: maps the length of the longest item of a batch to the length of its rows. For the number of rows see
    `batch_rows`; only the last batch may have fewer than its length allows.
    """
    order = np.argsort(-np.asarray(lengths, int), kind="stable")
    while len(order):
        length = padded(int(lengths[order[0]]))
        needed = -(-len(order) // multiple_of)
        rows = min(batch_rows(length, batch_tokens, multiple_of), multiple_of << (needed - 1).bit_length())
        yield Pack(order[:rows], rows, length)
        order = order[rows:]
