"""Batches of few static shapes: length buckets under a token budget, shuffled, and known by their number alone.

An item of a corpus has two lengths (source and target pieces, or sentences and words), a bucket is a box that holds
both, and a `Layout` says how items fill the arrays of a batch.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, cast

import grain
import numpy as np

from nmt_jax.data.batching.epochs import Batch, EpochBatches
from nmt_jax.data.batching.row_slice import ALL, RowSlice
from nmt_jax.data.prepared.parallel import Pair, PreparedCorpus
from nmt_jax.data.readers import sources
from nmt_jax.errors import UserError

_GRID = 32  # lengths a side among which bucket limits are chosen
_BLOCK = 1 << 16  # items whose lengths are looked at together: few, as the memory is not given back


class Shape(NamedTuple):
    """Rows of a global batch and the box that each of its items fits into, such as source length S, target length T."""

    rows: int
    first: int
    second: int


class Corpus(Protocol):
    """What batches are made of: N items of two lengths, neither above `max_length`."""

    name: str
    max_length: int

    @property
    def lengths(self) -> np.ndarray:
        """int32[N, 2]."""

    def __len__(self) -> int: ...

    def __getitems__(self, indices: np.ndarray) -> Sequence[Any]: ...


class Layout(Protocol):
    """How items lie in the arrays of a batch; first, second: the sides of a box, one number or int[M] of M boxes.

    longest, remedy: what the budget of the largest box counts, and the keys that make it smaller, for a message.
    """

    longest: str
    remedy: str

    def budget(self, first: Any, second: Any) -> Any:
        """Tokens of a row that count against `batch_tokens`."""

    def cost(self, first: Any, second: Any) -> Any:
        """Tokens that a row costs, padding included."""

    def arrays(self, items: Sequence[Any], shape: Shape) -> Batch:
        """`items`, and rows of nothing up to shape.rows, as arrays."""


class Pairs:
    """Pairs of piece ids side by side: {"source": int32[B, S], "target": int32[B, T]}; target tokens are counted.

    A row is pieces, EOS, PAD …; a row of nothing is PAD alone. Of N > 1 sources: {"source": int32[B, N, S] …}.
    """

    longest = "pieces of the longest target"
    remedy = "config.data.max_length"

    def __init__(self, num_sources: int = 1):
        self.num_sources = num_sources

    def budget(self, source: Any, target: Any) -> Any:
        """Target tokens."""
        return target

    def cost(self, source: Any, target: Any) -> Any:
        """Source and target tokens."""
        return self.num_sources * source + target

    def arrays(self, items: Sequence[Pair], shape: Shape) -> Batch:
        """-> source and target."""
        source_ids, target_ids = zip(*items, strict=True) if items else ((), ())
        return {
            "source": sources.fill(source_ids, (shape.rows, shape.first), self.num_sources),
            "target": sources.fill(target_ids, (shape.rows, shape.second), 1),
        }


class Batches(EpochBatches[tuple[list[np.ndarray], np.ndarray]]):
    """Batches of a corpus, in the arrays of a layout.

    Rows of nothing fill up the last batch of a bucket. Each epoch holds every item once, in an order drawn from
    (seed, epoch).
    """

    def __init__(
        self,
        corpus: Corpus,
        *,
        batch_tokens: int,
        num_buckets: int,
        share: RowSlice = ALL,
        seed: int = 0,
        steps: int | None = None,
        sampling_alpha: float = 0.0,
        layout: Layout | None = None,
    ):
        """Chooses the buckets.

        layout: `Pairs` if not given. A batch has at most `batch_tokens` tokens as the layout counts them, padding
        included, but its rows are a multiple of `share.multiple_of`, and at least that; of them the `share` is made.
        `steps` None: one epoch. `sampling_alpha` > 0: subword regularisation of a `PreparedCorpus`, see `Vocab.sample`.
        Raises UserError where the box that holds every item does not fit into batch_tokens.
        """
        self.corpus, self.sampling_alpha = corpus, sampling_alpha
        self.layout = layout or Pairs()
        # A random segmentation is longer than the best one; buckets leave it room.
        self._stretch = _sampled_stretch(cast(PreparedCorpus, corpus), sampling_alpha) if sampling_alpha else np.ones(2)
        histogram = np.zeros((corpus.max_length + 1, corpus.max_length + 1), np.int64)
        for block in self._blocks():
            np.add.at(histogram, (block[:, 0], block[:, 1]), 1)
        longest = int(self.layout.budget(*_outermost(histogram)))
        if batch_tokens < longest:
            raise UserError(
                f"config.train.batch_tokens = {batch_tokens} is less than the {longest} {self.layout.longest} "
                f"of {corpus.name}; raise it, or lower {self.layout.remedy}"
            )
        self.shapes = choose_shapes(histogram, batch_tokens, num_buckets, share.multiple_of, self.layout)
        buckets = np.concatenate([self._bucket(block) for block in self._blocks()])
        self._members = [np.flatnonzero(buckets == b).astype(np.int32) for b in range(len(self.shapes))]
        self._table = np.array(  # of an epoch: int32[batches_per_epoch, 2], bucket and first row in the bucket
            [
                (b, start)
                for b, (members, shape) in enumerate(zip(self._members, self.shapes, strict=True))
                for start in range(0, len(members), shape.rows)
            ],
            np.int32,
        )
        super().__init__(len(self._table), share=share, seed=seed, steps=steps)

    @functools.cached_property
    def density(self) -> tuple[float, float]:
        """How full the boxes are on either side (source and target: shares of tokens), over an epoch."""
        tokens = np.asarray(self.corpus.lengths).sum(0, dtype=np.int64)
        shapes = np.array(self.shapes)[self._table[:, 0]].astype(np.int64)
        first, second = tokens / (shapes[:, :1] * shapes[:, 1:]).sum(0)
        return float(first), float(second)

    def _batch(self, epoch: int, position: int, order: tuple[list[np.ndarray], np.ndarray]) -> Batch:
        items, batches = order
        bucket, start = self._table[batches[position]]
        shape = self.shapes[bucket]
        own = self.share.of(shape.rows)
        members = items[bucket][start + own.start : start + own.stop]
        number = epoch * self.batches_per_epoch + position
        found = self._items(number, members, shape) if len(members) else []
        return self.layout.arrays(found, shape._replace(rows=len(own)))

    def _items(self, n: int, members: np.ndarray, shape: Shape) -> Sequence[Any]:
        best_segmentations = self.corpus.__getitems__(members)
        if not self.sampling_alpha:
            return best_segmentations
        seeds = np.array([np.random.SeedSequence((self.seed, n, int(i))).generate_state(2) for i in members])
        sampled = cast(PreparedCorpus, self.corpus).sample(members, self.sampling_alpha, seeds)
        return [  # the rare sample that outgrows its bucket gives way to the best segmentation
            draw if all(sources.lengths(draw[side]).max() <= shape[1 + side] for side in (0, 1)) else best
            for draw, best in zip(sampled, best_segmentations, strict=True)
        ]

    def _blocks(self) -> Iterator[np.ndarray]:
        """The lengths int[N, 2] to make room for, block by block."""
        for start in range(0, len(self.corpus), _BLOCK):
            lengths = np.ceil(self.corpus.lengths[start : start + _BLOCK] * self._stretch)
            yield np.minimum(lengths, self.corpus.max_length).astype(np.int32)

    def _bucket(self, lengths: np.ndarray) -> np.ndarray:
        """uint8[N]: the first bucket that holds lengths int[N, 2] on both sides (limits grow from bucket to bucket)."""
        limits = np.array(self.shapes)[:, 1:]
        first = [np.searchsorted(limits[:, side], lengths[:, side]) for side in (0, 1)]
        return np.maximum(*first).astype(np.uint8)

    def _draw_order(self, random: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
        """The epoch's order: of the items in each bucket, and of the rows of the table."""
        items = [random.permutation(members) for members in self._members]
        return items, random.permutation(len(self._table)).astype(np.int32)


def choose_shapes(
    histogram: np.ndarray, batch_tokens: int, num_buckets: int, multiple_of: int, layout: Layout | None = None
) -> list[Shape]:
    """The at most `num_buckets` shapes that cost the fewest tokens, padding and filler rows included.

    histogram int[A+1, B+1] counts the items of each pair of lengths; layout: `Pairs` if not given. Buckets are nested
    boxes: an item goes to the first one that holds it. A dynamic programme over (number of boxes, outermost box) finds
    the best chain among limits on a grid of at most 32 lengths a side.
    """
    layout = layout or Pairs()
    inside = histogram.cumsum(0).cumsum(1)  # items no longer than (a, b)
    sides = [_grid(longest) for longest in _outermost(histogram)]
    first, second = (grid.ravel() for grid in np.meshgrid(*sides, indexing="ij"))  # [M] boxes, the last holds all items
    rows = np.maximum(batch_tokens // layout.budget(first, second) // multiple_of, 1) * multiple_of
    size = rows * layout.cost(first, second)
    count = inside[first, second]
    never = np.iinfo(np.int64).max // 4
    # cost[i, j]: tokens of the batches of the items in box j that are not in the smaller box i
    cost = -(-(count[None, :] - count[:, None]) // rows) * size
    cost[(first[:, None] > first) | (second[:, None] > second)] = never
    best = -(-count // rows) * size  # [M]: one box
    previous: list[np.ndarray] = []
    for _ in range(num_buckets - 1):
        through = best[:, None] + cost
        previous.append(through.argmin(0))  # i == j costs nothing: fewer boxes where more do not help
        best = through.min(0)
    chain = [len(first) - 1]
    for step in reversed(previous):
        chain.append(int(step[chain[-1]]))
    boxes = sorted(set(chain))
    filled = [j for i, j in zip([None, *boxes], boxes, strict=False) if count[j] > (count[i] if i is not None else 0)]
    return [Shape(int(rows[j]), int(first[j]), int(second[j])) for j in filled]


def _outermost(histogram: np.ndarray) -> tuple[int, int]:
    """The sides of the smallest box that holds every item."""
    first, second = (int(np.flatnonzero(histogram.sum(1 - side))[-1]) for side in (0, 1))
    return first, second


def _grid(longest: int) -> np.ndarray:
    """At most 32 evenly spaced lengths, the last of them `longest`."""
    step = -(-longest // _GRID)
    return np.minimum(np.arange(step, longest + step, step), longest)


def _sampled_stretch(corpus: PreparedCorpus, alpha: float) -> np.ndarray:
    """float[2]: how much longer than the best segmentation 95 of 100 random ones are, source and target."""
    indices = np.linspace(0, len(corpus) - 1, min(len(corpus), 1000)).astype(int)
    seeds = np.random.default_rng(0).integers(1 << 32, size=(len(indices), 2), dtype=np.uint32)
    sampled = [[sources.lengths(side).max() for side in pair] for pair in corpus.sample(indices, alpha, seeds)]
    return np.quantile(np.array(sampled) / corpus.lengths[indices], 0.95, axis=0)


def iterator(
    batches: grain.RandomAccessDataSource, state: dict[str, Any] | None = None, *, prefetch: int = 8
) -> grain.DatasetIterator:
    """Batches in order, made ahead of time by two threads; `get_state`/`set_state` (and Orbax) keep the position alone.

    `state` is what `get_state` of an earlier iterator returned: the next batch is the one that it would have given.
    """
    options = grain.ReadOptions(num_threads=2, prefetch_buffer_size=prefetch)
    ahead = iter(grain.MapDataset.source(batches).to_iter_dataset(options))
    if state is not None:
        ahead.set_state(state)
    return ahead
