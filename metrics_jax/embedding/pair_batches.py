"""Batches of pairs of texts for a program that encodes and compares them: the tokens of each device with its pairs."""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from metrics_jax.embedding.encoder import Tokens
from metrics_jax.embedding.lengths import batch_rows, bucket
from metrics_jax.embedding.token_batches import Side, Units, compared_length


class Places(NamedTuple):
    """The compared tokens of P texts: numbers int32[P, T] on the device, -1 for padding, and weights float32[P, T]."""

    at: Any  # np.ndarray or jax.Array
    weights: Any


class PairTokens(NamedTuple):
    """What a batch sends to the devices: R rows of S tokens, ids int32[R, S], lengths int32[R], and P pairs of texts.

    The rows and pairs of a device follow one another, and token s of its row r has the number r * S + s.
    """

    ids: Any
    lengths: Any
    left: Places
    right: Places


class PairBatch(NamedTuple):
    """The numbers int[N] of some pairs, their rows int[N] among the P of the batch, and its tokens.

    x, y: hypotheses and references on the host, without vectors.
    """

    pairs: np.ndarray
    rows: np.ndarray
    tokens: PairTokens
    x: Side
    y: Side


@dataclasses.dataclass(frozen=True)
class _Shape:
    """The shape of a batch on each device: rows of `length` tokens, and pairs of texts of `compared` tokens."""

    rows: int
    length: int
    pairs: int
    compared: int


class _Part(NamedTuple):
    """The pairs of one device, and the row of each window that they need."""

    pairs: list[int]
    rows: dict[int, int]


class PairBatches:
    """The pairs of texts of two sides: text left[p] of x and right[p] of y, both units of `tokens`.

    A text is encoded once for all pairs of a device in a batch, and pairs with a common text are neighbors. The lengths
    of a batch depend on its own pairs only. max_length: that of the encoder.
    """

    def __init__(
        self, tokens: Tokens, x: Units, y: Units, pairs: tuple[np.ndarray, np.ndarray], max_length: int
    ) -> None:
        self._x, self._y, (self._left, self._right) = x, y, pairs
        self._windows = tokens.windows
        widths = np.array([len(window.ids) for window in tokens.windows], int)
        counts = np.array([window.count for window in tokens.windows], int)
        # Of each token: the window from which it is taken, and its position there.
        self._window_of = np.repeat(np.arange(len(widths)), counts)
        first = np.array([window.start - window.target for window in tokens.windows], int)
        self._position = np.arange(len(tokens.ids)) + np.repeat(first, counts)
        # Of each text: its windows are those from `begin` to `end`.
        targets = np.array([window.target for window in tokens.windows], int)
        self._begin = np.searchsorted(targets, tokens.starts)
        self._end = np.searchsorted(targets, tokens.starts + tokens.lengths)
        widest = np.array([max(widths[a:b], default=1) for a, b in zip(self._begin, self._end, strict=True)], int)
        longest = np.maximum(widest[self._left], widest[self._right])
        # Few lengths: on an accelerator, compiling an encoder takes longer than scoring thousands of pairs.
        self.lengths = np.array([bucket(int(length), max_length, steps=2) for length in longest], int)
        # Texts are padded to the length of their rows, or to more if they have several windows.
        compared = np.maximum(x.lengths[self._left], y.lengths[self._right])
        self._compared = np.maximum([compared_length(int(length)) for length in compared], self.lengths)
        self._order = _neighbors(tokens.starts[self._left], tokens.starts[self._right])

    def __call__(self, pairs: np.ndarray, sizes: Sequence[int], devices: int) -> Iterator[PairBatch]:
        """Divides the pairs int[N] into batches, longest first; sizes: tokens per device, the largest first.

        Pairs of the same lengths that fit into one batch take the smallest size that suffices.
        """
        order = pairs[np.lexsort((self._order[pairs], -self._compared[pairs], -self.lengths[pairs]))]
        for (length, compared), some in itertools.groupby(
            order.tolist(), key=lambda pair: (int(self.lengths[pair]), int(self._compared[pair]))
        ):
            alike = [*some]
            shape = self._shape(alike, length, compared, sizes, devices)
            parts = self._parts(alike, shape)
            while batch := [*itertools.islice(parts, devices)]:
                yield self._batch(batch, shape, devices)

    def _shape(self, pairs: Sequence[int], length: int, compared: int, sizes: Sequence[int], devices: int) -> _Shape:
        """The shape of batches of these pairs, with a pair for two rows, or for every row if pairs share texts."""
        needed = [self._rows_of(pair) for pair in pairs]
        distinct, largest = len(frozenset().union(*needed)), max(map(len, needed))
        each = -(-distinct // devices)
        size = min((size for size in sizes if size // length >= each), default=max(sizes))
        rows = max(batch_rows(length, size), 1 << (max(largest, 2) - 1).bit_length())
        return _Shape(rows, length, rows if 4 * len(pairs) > 3 * distinct else rows // 2, compared)

    def _rows_of(self, pair: int) -> frozenset[int]:
        """The windows of both texts of a pair."""
        texts = self._left[pair], self._right[pair]
        return frozenset(window for text in texts for window in range(self._begin[text], self._end[text]))

    def _parts(self, pairs: Sequence[int], shape: _Shape) -> Iterator[_Part]:
        """Divides pairs into parts for one device each."""
        chosen: list[int] = []
        rows: dict[int, int] = {}
        for pair in pairs:
            new = self._rows_of(pair) - rows.keys()
            if len(chosen) == shape.pairs or len(rows) + len(new) > shape.rows:
                yield _Part(chosen, rows)
                chosen, rows, new = [], {}, self._rows_of(pair)
            rows |= {window: len(rows) + number for number, window in enumerate(sorted(new))}
            chosen.append(pair)
        if chosen:
            yield _Part(chosen, rows)

    def _batch(self, parts: Sequence[_Part], shape: _Shape, devices: int) -> PairBatch:
        """One batch for all devices; the last ones may have nothing to do."""
        parts = [*parts, *[_Part([], {})] * (devices - len(parts))]
        pairs = [np.array(part.pairs, int) for part in parts]
        rows = [device * shape.pairs + np.arange(len(part.pairs)) for device, part in enumerate(parts)]
        arrays = _joined([self._arrays(part, shape) for part in parts])
        return PairBatch(np.concatenate(pairs), np.concatenate(rows), *arrays)

    def _arrays(self, part: _Part, shape: _Shape) -> tuple[PairTokens, Side, Side]:
        """What one device gets, and the sides of its pairs."""
        ids = np.zeros((shape.rows, shape.length), np.int32)
        lengths = np.ones(shape.rows, np.int32)  # a row of no token at all could have undefined states
        first = np.zeros(len(self._windows), int)  # number of the first token of a window
        for window, row in part.rows.items():
            tokens = self._windows[window].ids
            ids[row, : len(tokens)] = tokens
            lengths[row] = len(tokens)
            first[window] = row * shape.length
        places, sides = [], []
        for units, texts in ((self._x, self._left), (self._y, self._right)):
            rows, side = units.placed(texts[part.pairs], shape.pairs, shape.compared)
            at = np.full(rows.shape, -1, np.int32)
            if side.real.any():
                at = np.where(side.real, first[self._window_of[rows]] + self._position[rows], -1).astype(np.int32)
            places.append(Places(at, side.weights.astype(np.float32)))
            sides.append(side)
        return PairTokens(ids, lengths, places[0], places[1]), sides[0], sides[1]


def _joined(parts: Sequence[Any]) -> Any:
    """Arrays, or tuples of arrays, one after another; None stays None."""
    first = parts[0]
    if isinstance(first, tuple):
        fields = (_joined(some) for some in zip(*parts, strict=True))
        return type(first)(*fields) if hasattr(first, "_fields") else tuple(fields)
    return None if first is None else np.concatenate(parts)


def _neighbors(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """A sort key int[P] of pairs of texts: the first pair with which a pair is connected by common texts, or nearly so.

    left, right: int[P], equal for equal texts.
    """
    group: dict[int, int] = {}
    key = np.zeros(len(left), int)
    for pair, (one, other) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        key[pair] = group.get(other, group.get(one, pair))
        group.setdefault(one, key[pair])
        group.setdefault(other, key[pair])
    return key
