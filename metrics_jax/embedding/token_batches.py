"""Batches of token vectors: the tokens that a metric compares, padded and grouped into a few shapes."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from metrics_jax.embedding.encoder import Tokens, progress
from metrics_jax.embedding.idf import Idf
from metrics_jax.embedding.lengths import batch_rows, bucket

SPAN_BYTES = 2**20  # bytes of text encoded at a time, about 250,000 tokens whose vectors are in memory together
TOKEN_SPAN_BYTES = 2**24  # the same where only the tokens are in memory
BATCH_TOKENS = 4096  # per device and side of one batch
TINY = 1e-30  # keeps zero vectors at zero instead of dividing by zero


class Side(NamedTuple):
    """The tokens of one or B texts: vectors [..., S, E], weights [..., S], real bool[..., S] (False: padding)."""

    vectors: Any  # np.ndarray or jax.Array; None on the host where the vectors stay on the devices
    weights: Any
    real: Any


@dataclasses.dataclass(frozen=True, eq=False)
class Units:
    """The tokens of N texts that a metric compares; those of text n are `rows[starts[n]:][:lengths[n]]` of the table.

    The table has ids int[R] and words bool[R], which marks tokens that have weight. weigh: ids int[B, S] and a mask
    bool[B, S] of those with weight -> weights float64[B, S].
    """

    ids: np.ndarray
    words: np.ndarray
    rows: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    weigh: Callable[[np.ndarray, np.ndarray], np.ndarray]

    @classmethod
    def of(cls, tokens: Tokens, kept: np.ndarray, words: np.ndarray, idf: Idf | None) -> "Units":
        """The tokens selected by kept bool[R], of which words bool[R] have weight."""
        before = np.concatenate([[0], np.cumsum(kept)])
        starts = before[tokens.starts]
        lengths = before[tokens.starts + tokens.lengths] - starts
        weigh = idf.weights if idf else lambda ids, mask: mask.astype(np.float64)
        return cls(tokens.ids, words, np.flatnonzero(kept), starts, lengths, weigh)

    def placed(self, texts: np.ndarray, size: int, length: int) -> tuple[np.ndarray, Side]:
        """A batch of shape [size, length] with at most `size` texts of at most `length` tokens each, without vectors.

        Returns the rows of the table int[size, length] as well. Padding repeats some real token, if there is one: it is
        never read, so it need not be filled with zeros.
        """
        positions, real = np.arange(length)[None], np.zeros((size, length), bool)
        real[: len(texts)] = positions < self.lengths[texts, None]
        if not real.any():
            return np.zeros(real.shape, int), Side(None, np.zeros(real.shape), real)
        starts = np.zeros((size, 1), int)
        starts[: len(texts), 0] = self.starts[texts]
        rows = self.rows[np.where(real, starts + positions, 0)]
        weights, some = np.zeros(real.shape), slice(len(texts))
        weights[some] = self.weigh(self.ids[rows[some]], (real & self.words[rows])[some])
        return rows, Side(None, weights, real)

    def padded(self, vectors: np.ndarray, texts: np.ndarray, size: int, length: int) -> Side:
        """The same with the vectors float32[R, E] of the table."""
        rows, side = self.placed(texts, size, length)
        found = vectors[rows] if side.real.any() else np.zeros((*rows.shape, vectors.shape[1]), np.float32)
        return side._replace(vectors=found)

    def means(self, vectors: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """The weighted mean of each text's tokens, scaled to length 1: float64[N, E]; 0 for a text without tokens."""
        means = np.zeros((len(texts), vectors.shape[1]))
        for mean, text in zip(means, texts, strict=True):
            rows = self.rows[self.starts[text] :][: self.lengths[text]]
            mean += self.weigh(self.ids[rows][None], self.words[rows][None])[0] @ vectors[rows]
        return means / np.maximum(np.linalg.norm(means, axis=-1, keepdims=True), TINY)


def spans(hypotheses: Sequence[str], references: Sequence[str], size: int) -> list[np.ndarray]:
    """Groups of pairs with about `size` bytes of text each, sorted by reference; equal references are adjacent."""
    order = np.array(sorted(range(len(references)), key=lambda k: (len(references[k]), references[k])), int)
    sizes = [len(text.encode("utf-8", "replace")) for k in order for text in (hypotheses[k], references[k])]
    ends = np.cumsum(np.reshape(sizes, (-1, 2)).sum(axis=1))
    return np.split(order, np.flatnonzero(np.diff(ends // size)) + 1)


def compare_pairs(
    x: Units,
    y: Units,
    vectors: np.ndarray,
    pairs: tuple[np.ndarray, np.ndarray],
    compare: Callable[..., np.ndarray],
    num_columns: int,
) -> np.ndarray:
    """Values float64[P, C] of P pairs of texts, int[P] of x and int[P] of y; shapes depend on text lengths only.

    vectors float32[R, E]: those of the tokens of both sides. A batch has rows for all devices.
    """
    from metrics_jax.embedding.devices import local_mesh

    left, right = pairs
    values, devices = np.zeros((len(left), num_columns)), local_mesh().size
    longest = np.maximum(x.lengths[left], y.lengths[right])
    lengths = np.array([compared_length(int(length)) for length in longest], int)
    with progress("comparing", len(left)) as advance:
        for length in np.unique(lengths)[::-1].tolist():
            numbers = np.flatnonzero(lengths == length)
            size = batch_rows(length, devices * BATCH_TOKENS, devices)
            for first in range(0, len(numbers), size):
                chosen = numbers[first : first + size]
                texts = (x, left[chosen]), (y, right[chosen])
                sides = (units.padded(vectors, some, size, length) for units, some in texts)
                values[chosen] = compare(*sides)[: len(chosen)]
                advance(len(chosen))
    return values


def compared_length(length: int) -> int:
    """The padded length of texts that are compared.

    There are fewer than for encoding: here, compiling another program costs more than padding.
    """
    return bucket(max(length, 1), steps=2)
