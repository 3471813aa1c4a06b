"""Training batches of a few static shapes: length buckets under a token budget, in random order.

An item of a corpus has two lengths, such as source and target tokens, or sentences and words. A bucket is a bound on
both (a box); a `Layout` defines how items fill the arrays of a batch.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from nmt_jax.data.batching.epochs import Batch, Draw, EpochBatches
from nmt_jax.data.batching.row_slice import ALL, RowSlice
from nmt_jax.data.batching.segmentations import Corpus, Segmentations
from nmt_jax.data.prepared.parallel import Pair
from nmt_jax.data.readers import sources
from nmt_jax.data.readers.source_reader import TEXT, SourceReader
from nmt_jax.errors import UserError

if TYPE_CHECKING:
    import grain

_GRID = 32  # candidates for bucket limits on each side


class Shape(NamedTuple):
    """Number of rows of a global batch, and the box for its items, for example source length S and target length T."""

    rows: int
    first: int
    second: int


class Layout(Protocol):
    """How items are laid out in the arrays of a batch; first, second: the sides of a box, or int[M] for M boxes.

    longest, remedy: for a message, what the budget of the largest box counts, and the config keys that reduce it.
    """

    longest: str
    remedy: str

    def budget(self, first: Any, second: Any) -> Any:
        """Tokens of a row that count towards `batch_tokens`."""

    def cost(self, first: Any, second: Any) -> Any:
        """All tokens of a row, padding included; the cost to minimize."""

    def arrays(self, items: Sequence[Any], shape: Shape) -> Batch:
        """The items as arrays, followed by empty rows up to `shape.rows`."""

    def tokens(self, corpus: Any) -> dict[str, int]:
        """Number of tokens of a corpus, by what is padded."""

    def places(self, first: Any, second: Any) -> dict[str, Any]:
        """Number of places for them in a row."""


class PairLayout:
    """Pairs of token ids: {"source": int32[B, S], "target": int32[B, T]}. The budget counts target tokens.

    A row is tokens, EOS, then PAD; an empty row is all PAD. For other sources than one text see `SourceReader.fill`.
    """

    longest = "tokens of the longest target"
    remedy = "config.data.max_length"

    def __init__(self, reader: SourceReader = TEXT):
        self.reader, self.num_sources = reader, len(reader.readers)

    def budget(self, source: Any, target: Any) -> Any:
        return target

    def cost(self, source: Any, target: Any) -> Any:
        return self.num_sources * source + target

    def arrays(self, items: Sequence[Pair], shape: Shape) -> Batch:
        source, target = zip(*items, strict=True) if items else ((), ())
        target_ids = sources.fill(target, (shape.rows, shape.second), 1)
        return self.sources(source, (shape.rows, shape.first)) | {"target": target_ids}

    def sources(self, items: Sequence[Any], shape: tuple[int, int]) -> Batch:
        """The sources of at most B items, padded to S places."""
        return self.reader.fill(items, shape)

    def tokens(self, corpus: Corpus) -> dict[str, int]:
        source, target = (int(total) for total in np.asarray(corpus.lengths).sum(axis=0, dtype=np.int64))
        # Of several sources, a corpus has the length of the longest only.
        return {"source": source, "target": target} if self.num_sources == 1 else {"target": target}

    def places(self, first: Any, second: Any) -> dict[str, Any]:
        return {"source": first, "target": second}


class Batches(EpochBatches[tuple[list[np.ndarray], np.ndarray]]):
    """Batches of a corpus in a given layout.

    Empty rows complete the last batch of a bucket. Each epoch contains every item once, in an order drawn from
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
        key: str = "config.train.batch_tokens",
    ):
        """Chooses the buckets.

        batch_tokens: maximum number of tokens of a batch as the layout counts them, padding included; but there are at
        least `share.multiple_of` rows, and a multiple of it. share: the rows that this process builds. steps: number of
        batches; None for one epoch. sampling_alpha: if positive, subword regularization of a `PreparedCorpus`, see
        `Vocab.sample`. layout: defaults to `PairLayout()`. key: the config key that `batch_tokens` comes from. Raises
        UserError if the longest item exceeds `batch_tokens`.
        """
        self.corpus, self.layout = corpus, layout or PairLayout()
        self._segmentations = Segmentations(corpus, sampling_alpha)
        histogram = np.zeros((corpus.max_length + 1, corpus.max_length + 1), np.int64)
        for block in self._segmentations.lengths():
            np.add.at(histogram, (block[:, 0], block[:, 1]), 1)
        longest = int(self.layout.budget(*_outermost(histogram)))
        if batch_tokens < longest:
            raise UserError(
                f"{key} = {batch_tokens} is less than the {longest} {self.layout.longest} "
                f"in {corpus.name}; increase it, or reduce {self.layout.remedy}"
            )
        self.shapes = choose_shapes(histogram, batch_tokens, num_buckets, share.multiple_of, self.layout)
        self._buckets = np.concatenate([self._bucket(block) for block in self._segmentations.lengths()])
        self._members = [np.flatnonzero(self._buckets == b).astype(np.int32) for b in range(len(self.shapes))]
        # int32[batches_per_epoch, 2]: the bucket of each batch of an epoch, and its first row in the bucket
        sized = enumerate(zip(self._members, self.shapes, strict=True))
        table = [(b, start) for b, (members, shape) in sized for start in range(0, len(members), shape.rows)]
        self._table = np.array(table, np.int32)
        super().__init__(len(self._table), share=share, seed=seed, steps=steps)

    def _usage(self) -> dict[str, tuple[int, int]]:
        rows, first, second = np.array(self.shapes, np.int64)[self._table[:, 0]].T
        places = self.layout.places(first, second)
        return {name: (tokens, int(rows @ places[name])) for name, tokens in self.layout.tokens(self.corpus).items()}

    @functools.cached_property
    def counts(self) -> np.ndarray:
        """int[shapes]: number of batches of each shape in an epoch."""
        return np.bincount(self._table[:, 0], minlength=len(self.shapes))

    def _batch(self, epoch: int, position: int, order: tuple[list[np.ndarray], np.ndarray]) -> Batch:
        items, batches = order
        bucket, start = self._table[batches[position]]
        shape = self.shapes[bucket]
        members = items[bucket][start : start + shape.rows]
        return self._arrays(members, shape, epoch * self.batches_per_epoch + position)

    def drawing(self, order: np.ndarray) -> Draw:
        """Returns draw(count, number): this process's rows of a random batch of the items order[:count].

        It is a pure function of `order` int[N], `count`, the seed and `number`, which no epoch must have. A bucket is
        drawn, then its rows, without repetition. A bucket with few of the items is drawn less often, so that each item
        has the same chance.
        """
        buckets, most = self._buckets[order], [shape.rows for shape in self.shapes]
        ranks = [np.flatnonzero(buckets == b).astype(np.int32) for b in range(len(self.shapes))]

        def draw(count: int, number: int) -> Batch:
            random = np.random.default_rng((self.seed, number))
            counts = np.array([np.searchsorted(bucket, count) for bucket in ranks])
            rows = np.minimum(counts, most)
            batches = counts / np.maximum(rows, 1)  # that the items of each bucket fill
            bucket = random.choice(len(counts), p=batches / batches.sum())
            chosen = random.choice(counts[bucket], rows[bucket], replace=False)
            return self._arrays(order[ranks[bucket][chosen]], self.shapes[bucket], number)

        return draw

    def _arrays(self, members: np.ndarray, shape: Shape, number: int) -> Batch:
        """This process's rows of batch `number`, which has the items `members`."""
        rows = self.share.of(shape.rows)
        mine = members[rows.start : rows.stop]
        key = (self.seed, number)
        chosen = self._segmentations.read(mine, np.array(shape[1:]), key) if len(mine) else []
        return self.layout.arrays(chosen, shape._replace(rows=len(rows)))

    def _bucket(self, lengths: np.ndarray) -> np.ndarray:
        """uint8[N]: the first bucket that holds each of lengths int[N, 2]; limits increase from bucket to bucket."""
        limits = np.array(self.shapes)[:, 1:]
        first = [np.searchsorted(limits[:, side], lengths[:, side]) for side in (0, 1)]
        return np.maximum(*first).astype(np.uint8)

    def _draw_order(self, random: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
        """The order of the items in each bucket, and the order of the batches."""
        items = [random.permutation(members) for members in self._members]
        return items, random.permutation(len(self._table)).astype(np.int32)


def choose_shapes(
    histogram: np.ndarray, batch_tokens: int, num_buckets: int, multiple_of: int, layout: Layout | None = None
) -> list[Shape]:
    """Chooses at most `num_buckets` shapes that minimize the number of tokens, padding and empty rows included.

    histogram: int[A+1, B+1], the number of items of each pair of lengths. layout: defaults to `PairLayout()`. Buckets
    are nested boxes, and an item belongs to the first one that holds it. Dynamic programming over (number of boxes,
    outermost box) finds the best chain of boxes on a grid of at most 32 lengths per side.
    """
    layout = layout or PairLayout()
    inside = histogram.cumsum(0).cumsum(1)  # number of items no longer than (a, b)
    sides = []
    for longest in _outermost(histogram):
        step = -(-longest // _GRID)
        sides.append(np.minimum(np.arange(step, longest + step, step), longest))  # evenly spaced; `longest` is the last
    first, second = (grid.ravel() for grid in np.meshgrid(*sides, indexing="ij"))  # [M] boxes, the last holds all items
    rows = np.maximum(batch_tokens // layout.budget(first, second) // multiple_of, 1) * multiple_of
    size = rows * layout.cost(first, second)
    count = inside[first, second]
    never = np.iinfo(np.int64).max // 4
    # cost[i, j]: tokens of the batches that hold the items of box j outside the smaller box i
    cost = -(-(count[None, :] - count[:, None]) // rows) * size
    cost[(first[:, None] > first) | (second[:, None] > second)] = never
    best = -(-count // rows) * size  # [M]: a single box
    previous: list[np.ndarray] = []
    for _ in range(num_buckets - 1):
        through = best[:, None] + cost
        previous.append(through.argmin(0))  # i == j has no cost: fewer boxes are chosen if more do not help
        best = through.min(0)
    chain = [len(first) - 1]
    for step in reversed(previous):
        chain.append(int(step[chain[-1]]))
    boxes = sorted(set(chain))
    filled = [j for i, j in zip([None, *boxes], boxes, strict=False) if count[j] > (count[i] if i is not None else 0)]
    return [Shape(int(rows[j]), int(first[j]), int(second[j])) for j in filled]


def _outermost(histogram: np.ndarray) -> tuple[int, int]:
    """The sides of the smallest box that holds all items."""
    first, second = (int(np.flatnonzero(histogram.sum(1 - side))[-1]) for side in (0, 1))
    return first, second


def iterator(
    batches: grain.RandomAccessDataSource, state: dict[str, Any] | None = None, *, prefetch: int = 8
) -> grain.DatasetIterator:
    """Iterates over batches in order; two threads build them in advance.

    Only the position is saved by `get_state`, and by Orbax. state: what `get_state` of an earlier iterator returned;
    iteration continues at its next batch.
    """
    import grain  # late: translation does not need it

    options = grain.ReadOptions(num_threads=2, prefetch_buffer_size=prefetch)
    ahead = iter(grain.MapDataset.source(batches).to_iter_dataset(options))
    if state is not None:
        ahead.set_state(state)
    return ahead
