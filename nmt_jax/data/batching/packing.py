"""Packing: several items in each row of a batch, so that little of it is padding (Krell et al., 2021).

Which lengths share a row is planned once, from the number of items of each length. An epoch then draws which item of a
length takes which place, so every epoch has the same number of rows, and other items together.
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt_jax.data.batching.epochs import Batch, Draw, EpochBatches
from nmt_jax.data.batching.row_slice import RowSlice
from nmt_jax.errors import UserError

ALIGNMENT = 8  # of the shorter sides of a row, because accelerators compute in tiles


class Pattern(NamedTuple):
    """`rows` equal rows: the kinds of the items in each of them."""

    kinds: tuple[int, ...]
    rows: int


def plan_rows(lengths: np.ndarray, counts: np.ndarray, room: Sequence[int]) -> list[Pattern]:
    """Pack counts[k] items of kind k, whose sides are lengths int[K, D], in rows of `room` int[D].

    Begins with as many rows as the tokens fill, and places the longest kinds first, each item in a row with the most
    room left on its fuller side, so that the sides of a row fill up together. Only what fits nowhere opens new rows.
    """
    size = np.asarray(room)
    left, rows = size[None].copy(), np.array([-(-(counts @ lengths) // size).max()])  # of each group of equal rows
    patterns: list[tuple[int, ...]] = [()]
    for kind in np.argsort(-(lengths / size).max(axis=1), kind="stable").tolist():
        length, todo = lengths[kind], int(counts[kind])
        while todo:
            fits = np.flatnonzero((left >= length).all(axis=1))
            if not len(fits):
                needed = -(-todo // int((size // length).min()))
                fits, patterns = np.array([len(left)]), [*patterns, ()]
                left, rows = np.append(left, size[None], axis=0), np.append(rows, needed)
            fullest = ((left[fits] - length) / size).min(axis=1)
            for group in fits[np.argsort(-fullest, kind="stable")].tolist():
                taken = min(todo, int(rows[group]))
                if taken < rows[group]:  # the other rows of the group stay as they are
                    left, rows = np.append(left, left[None, group], axis=0), np.append(rows, rows[group] - taken)
                    patterns.append(patterns[group])
                left[group] -= length
                rows[group] = taken
                patterns[group] += (kind,)
                todo -= taken
                if not todo:
                    break
    return [Pattern(kinds, int(number)) for kinds, number in zip(patterns, rows, strict=True) if kinds]


def round_lengths(lengths: np.ndarray) -> np.ndarray:
    """Lengths int[...] rounded up to six significant bits, so that there are few kinds of them."""
    step = 1 << np.maximum(np.ceil(np.log2(np.maximum(lengths, 1))).astype(int) - 6, 0)
    return -(-lengths // step) * step


class Plan(NamedTuple):
    """The sides of a row, the kind int[N] of each item, the number of items of each kind, and the rows."""

    sides: tuple[int, ...]
    kinds: np.ndarray
    counts: np.ndarray
    patterns: list[Pattern]

    @property
    def places(self) -> int:
        """The places of all rows, on all sides."""
        return sum(pattern.rows for pattern in self.patterns) * sum(self.sides)


def make_plan(lengths: np.ndarray, most: int) -> Plan:
    """Plan rows for items of lengths int[N, D], which are at most `most`.

    The side with the most tokens gets `most` places. The others get about as many as the same items need on average:
    the multiple of ALIGNMENT that takes the fewest places, but enough for the longest item.
    """
    total, longest = lengths.sum(axis=0, dtype=np.int64), -(-lengths.max(axis=0) // ALIGNMENT) * ALIGNMENT
    average = most * total // total.max() // ALIGNMENT * ALIGNMENT
    near = np.clip([average + extra * ALIGNMENT for extra in range(3)], longest, most)
    near = np.where(total == total.max(), most, near)
    choices = sorted(set(itertools.product(*near.T.tolist())))
    return min((_planned(lengths, sides) for sides in choices), key=lambda plan: plan.places)


def _planned(lengths: np.ndarray, sides: tuple[int, ...]) -> Plan:
    limits = np.array(sides)
    codes = np.ravel_multi_index(np.minimum(round_lengths(lengths), limits).T, limits + 1)
    found, kinds, counts = np.unique(codes, return_inverse=True, return_counts=True)
    of_kinds = np.stack(np.unravel_index(found, limits + 1), axis=1)
    return Plan(sides, kinds, counts, plan_rows(of_kinds, counts, sides))


class PackedOrder(NamedTuple):
    """The items int32[N] of an epoch, row after row, and the order of the rows int32[R]."""

    items: np.ndarray
    rows: np.ndarray


class PackedBatches(EpochBatches[PackedOrder]):
    """Batches of rows that hold several items each.

    Empty rows complete the last batch of an epoch. Each epoch contains every item once: which items share a row, and
    the order of the rows, are drawn from (seed, epoch).
    """

    def __init__(
        self,
        lengths: np.ndarray,
        most: int,
        tokens: Mapping[str, int],
        *,
        counted: int = 0,
        batch_tokens: int,
        share: RowSlice,
        seed: int,
        steps: int | None,
        keys: tuple[str, str],
    ):
        """Plans the rows.

        lengths: int[N, D], the places that each item may take on the sides of a row. most: places of the longest side.
        tokens: the name of each side that may be padded, and the number of all tokens. counted: the side whose places
        count towards `batch_tokens`, their maximum in a batch; but there are at least `share.multiple_of` rows, and a
        multiple of it. share: the rows that this process builds. steps: number of batches; None for one epoch. keys:
        the config keys of `batch_tokens` and of `most`. Raises UserError if a row exceeds `batch_tokens`.
        """
        plan = make_plan(lengths, most)
        row_tokens = plan.sides[counted]
        if batch_tokens < row_tokens:
            raise UserError(
                f"{keys[0]} = {batch_tokens} is less than the {row_tokens} tokens of a packed row; "
                f"increase it, or reduce {keys[1]}"
            )
        rows = max(batch_tokens // row_tokens // share.multiple_of, 1) * share.multiple_of
        self.shapes: list[tuple[int, ...]] = [(rows, *plan.sides)]
        self._members = np.split(np.argsort(plan.kinds, kind="stable").astype(np.int32), plan.counts.cumsum()[:-1])
        rows_of_kinds = [pattern.kinds for pattern in plan.patterns for _ in range(pattern.rows)]
        self._starts = np.cumsum([0, *map(len, rows_of_kinds)])
        # The places of the items of the first kind, then those of the second kind, and so on.
        of_places = np.fromiter(itertools.chain.from_iterable(rows_of_kinds), np.int32)
        self._places = np.argsort(of_places, kind="stable").astype(np.int32)
        self._tokens, self._item_lengths = tokens, lengths
        super().__init__(-(-len(rows_of_kinds) // rows), share=share, seed=seed, steps=steps)

    @property
    def num_rows(self) -> int:
        """Number of rows of an epoch that are not empty."""
        return len(self._starts) - 1

    def _usage(self) -> dict[str, tuple[int, int]]:
        rows, *sides = self.shapes[0]
        named = zip(self._tokens.items(), sides, strict=False)
        return {name: (tokens, self.batches_per_epoch * rows * side) for (name, tokens), side in named}

    def _draw_order(self, random: np.random.Generator) -> PackedOrder:
        items = np.empty(len(self._places), np.int32)
        items[self._places] = np.concatenate([random.permutation(members) for members in self._members])
        return PackedOrder(items, random.permutation(self.num_rows).astype(np.int32))

    def _batch(self, epoch: int, position: int, order: PackedOrder) -> Batch:
        mine = self.share.of(self.shapes[0][0])
        first = position * self.shapes[0][0] + mine.start
        chosen = order.rows[first : first + len(mine)]
        rows = [order.items[self._starts[row] : self._starts[row + 1]] for row in chosen]
        return self._arrays(epoch, position, rows, len(mine))

    def drawing(self, order: np.ndarray) -> Draw:
        """Returns draw(count, number): this process's rows of a random batch of the items order[:count].

        It is a pure function of `order` int[N], `count`, the seed and `number`, which no epoch must have. Items in
        random order are put in the first row with room for them, until one fits nowhere.
        """
        num_rows, *sides = self.shapes[0]
        most = num_rows * int((np.array(sides) // self._item_lengths.min(axis=0)).min())

        def draw(count: int, number: int) -> Batch:
            random = np.random.default_rng((self.seed, number))
            items = order[random.choice(count, min(most, count), replace=False)]
            left = np.tile(sides, (num_rows, 1))
            rows: list[list[int]] = [[] for _ in range(num_rows)]
            for item, length in zip(items.tolist(), self._item_lengths[items], strict=True):
                fits = (left >= length).all(axis=1)
                row = int(fits.argmax())
                if not fits[row]:
                    break
                rows[row].append(item)
                left[row] -= length
            mine = self.share.of(num_rows)
            return self._arrays(0, number, [np.array(rows[row], np.int32) for row in mine if rows[row]], len(mine))

        return draw

    @abc.abstractmethod
    def _arrays(self, epoch: int, position: int, rows: list[np.ndarray], count: int) -> Batch:
        """The given rows of items of a batch, followed by empty ones up to `count` rows."""


def fill_rows(rows: Sequence[Sequence[Any]], shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """The items int[...] of each row one after another: ids int32[B, S], and their numbers int32[B, S].

    The items of a row are numbered from 1; padding has number 0 and id 0.
    """
    ids, numbers = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    for row, items in enumerate(rows):
        lengths = [len(item) for item in items]
        ids[row, : sum(lengths)] = np.concatenate(items)
        numbers[row, : sum(lengths)] = np.repeat(np.arange(1, len(items) + 1), lengths)
    return ids, numbers
