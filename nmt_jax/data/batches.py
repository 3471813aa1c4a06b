"""Batches of few static shapes: length buckets under a token budget, shuffled, and known by their number alone.

Batch n is a pure function of (corpus, settings, seed, n), so a restart needs no more than n, and every process builds
its own rows of the same global batch.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import grain
import numpy as np

from nmt_jax.data.prepared import Pair, PreparedCorpus
from nmt_jax.data.vocab import EOS, PAD
from nmt_jax.errors import UserError

Batch = dict[str, np.ndarray]

_GRID = 32  # lengths a side among which bucket limits are chosen
_BLOCK = 1 << 20  # pairs whose lengths are looked at together
_FILLER = -1  # the index of a row without a pair


class Shape(NamedTuple):
    """Rows, source length S and target length T of a global batch."""

    rows: int
    source: int
    target: int


class Batches:
    """Random access to the global batches 0 … steps-1 of a corpus: {"source": int32[B, S], "target": int32[B, T]}.

    A row is pieces, EOS, PAD …; a row of PAD alone fills up the last batch of a bucket. Each epoch holds every pair
    once, in an order drawn from (seed, epoch).
    """

    def __init__(
        self,
        corpus: PreparedCorpus,
        *,
        batch_tokens: int,
        num_buckets: int,
        multiple_of: int = 1,
        seed: int = 0,
        steps: int | None = None,
        sampling_alpha: float = 0.0,
        process_index: int = 0,
        process_count: int = 1,
    ):
        """Chooses the buckets.

        A batch has at most `batch_tokens` target tokens, padding included, but its rows are a multiple of `multiple_of`
        (devices times accumulation), and at least that. `steps` None: one epoch. `sampling_alpha` > 0: subword
        regularisation, see `Vocab.sample`. Of each batch, process i of n gets the i-th n-th of the rows.
        Raises UserError where the longest target does not fit into batch_tokens.
        """
        if multiple_of % process_count:
            raise ValueError(
                f"multiple_of = {multiple_of} is not divisible by the number of processes, {process_count}"
            )
        self.corpus, self.seed, self.sampling_alpha = corpus, seed, sampling_alpha
        self.process_index, self.process_count = process_index, process_count
        # A random segmentation is longer than the best one; buckets leave it room.
        self._stretch = _sampled_stretch(corpus, sampling_alpha) if sampling_alpha else np.ones(2)
        histogram = np.zeros((corpus.max_length + 1, corpus.max_length + 1), np.int64)
        for block in self._blocks():
            np.add.at(histogram, (block[:, 0], block[:, 1]), 1)
        longest = int(np.flatnonzero(histogram.sum(0))[-1])
        if batch_tokens < longest:
            raise UserError(
                f"config.train.batch_tokens = {batch_tokens} is less than the {longest} pieces of the longest target "
                f"of {corpus.name}; raise it, or lower config.data.max_length"
            )
        self.shapes = choose_shapes(histogram, batch_tokens, num_buckets, multiple_of)
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
        self.steps = self.batches_per_epoch if steps is None else steps
        self._order = functools.lru_cache(maxsize=2)(self._draw_order)  # prefetching looks into the next epoch

    @property
    def batches_per_epoch(self) -> int:
        """Batches that hold every pair once."""
        return len(self._table)

    @functools.cached_property
    def density(self) -> tuple[float, float]:
        """Shares of source and target tokens that are not padding, over an epoch (best segmentations)."""
        tokens = np.asarray(self.corpus.lengths).sum(0, dtype=np.int64)
        shapes = np.array(self.shapes)[self._table[:, 0]].astype(np.int64)
        source, target = tokens / (shapes[:, :1] * shapes[:, 1:]).sum(0)
        return float(source), float(target)

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, n: int) -> Batch:
        n = int(n)
        if not 0 <= n < self.steps:
            raise IndexError(f"batch {n} of {self.steps}")
        epoch, position = divmod(n, self.batches_per_epoch)
        pairs, batches = self._order(epoch)
        bucket, start = self._table[batches[position]]
        shape = self.shapes[bucket]
        share = shape.rows // self.process_count
        first = start + self.process_index * share
        members = pairs[bucket][first : first + share]
        source = np.full((share, shape.source), PAD, np.int32)
        target = np.full((share, shape.target), PAD, np.int32)
        for row, (source_ids, target_ids) in enumerate(self._pairs(n, members, shape) if len(members) else []):
            source[row, : len(source_ids)] = source_ids
            target[row, : len(target_ids)] = target_ids
        return {"source": source, "target": target}

    def _pairs(self, n: int, members: np.ndarray, shape: Shape) -> list[Pair]:
        pairs = self.corpus.__getitems__(members)
        if not self.sampling_alpha:
            return pairs
        seeds = np.array([np.random.SeedSequence((self.seed, n, int(i))).generate_state(2) for i in members])
        sampled = self.corpus.sample(members, self.sampling_alpha, seeds)
        return [  # the rare sample that outgrows its bucket gives way to the best segmentation
            draw if len(draw[0]) <= shape.source and len(draw[1]) <= shape.target else best
            for draw, best in zip(sampled, pairs, strict=True)
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

    def _draw_order(self, epoch: int) -> tuple[list[np.ndarray], np.ndarray]:
        """The epoch's order: of the pairs in each bucket, and of the rows of the table."""
        random = np.random.default_rng((self.seed, epoch))
        pairs = [random.permutation(members) for members in self._members]
        return pairs, random.permutation(len(self._table)).astype(np.int32)


def choose_shapes(histogram: np.ndarray, batch_tokens: int, num_buckets: int, multiple_of: int) -> list[Shape]:
    """The at most `num_buckets` shapes that need the fewest source and target tokens, padding and filler rows included.

    histogram int[S+1, T+1] counts the pairs of each (source, target) length. Buckets are nested boxes: a pair goes to
    the first one that holds it. A dynamic programme over (number of boxes, outermost box) finds the best chain among
    limits on a grid of at most 32 lengths a side.
    """
    inside = histogram.cumsum(0).cumsum(1)  # pairs no longer than (s, t)
    sides = [_grid(int(np.flatnonzero(histogram.sum(1 - side))[-1])) for side in (0, 1)]
    source, target = (
        grid.ravel() for grid in np.meshgrid(*sides, indexing="ij")
    )  # [M] boxes, the last holds all pairs
    rows = np.maximum(batch_tokens // target // multiple_of, 1) * multiple_of
    size = rows * (source + target)
    count = inside[source, target]
    never = np.iinfo(np.int64).max // 4
    # cost[i, j]: tokens of the batches of the pairs in box j that are not in the smaller box i
    cost = -(-(count[None, :] - count[:, None]) // rows) * size
    cost[(source[:, None] > source) | (target[:, None] > target)] = never
    best = -(-count // rows) * size  # [M]: one box
    previous: list[np.ndarray] = []
    for _ in range(num_buckets - 1):
        through = best[:, None] + cost
        previous.append(through.argmin(0))  # i == j costs nothing: fewer boxes where more do not help
        best = through.min(0)
    chain = [len(source) - 1]
    for step in reversed(previous):
        chain.append(int(step[chain[-1]]))
    boxes = sorted(set(chain))
    filled = [j for i, j in zip([None, *boxes], boxes, strict=False) if count[j] > (count[i] if i is not None else 0)]
    return [Shape(int(rows[j]), int(source[j]), int(target[j])) for j in filled]


def _grid(longest: int) -> np.ndarray:
    """At most 32 evenly spaced lengths, the last of them `longest`."""
    step = -(-longest // _GRID)
    return np.minimum(np.arange(step, longest + step, step), longest)


def _sampled_stretch(corpus: PreparedCorpus, alpha: float) -> np.ndarray:
    """float[2]: how much longer than the best segmentation 95 of 100 random ones are, source and target."""
    indices = np.linspace(0, len(corpus) - 1, min(len(corpus), 1000)).astype(int)
    seeds = np.random.default_rng(0).integers(1 << 32, size=(len(indices), 2), dtype=np.uint32)
    sampled = [[len(side) for side in pair] for pair in corpus.sample(indices, alpha, seeds)]
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


def bucketed(
    sources: Sequence[Sequence[int]], *, batch_tokens: int, multiple_of: int = 1
) -> Iterator[tuple[np.ndarray, Batch]]:
    """Inputs for decoding, longest first so that running out of memory shows at once, in few shapes.

    sources: piece ids without EOS. Yields (indices int[N], {"source": int32[B, S]}): row n holds sources[indices[n]]
    and EOS; rows past N are PAD. S is on a ladder (8, 16, 24, 32, 48, 64, 96, 128, 192 …), B a power of two times
    multiple_of with at most `batch_tokens` tokens if it can; only the last batch may have fewer rows than its S allows.
    """
    order = np.argsort([-len(ids) for ids in sources], kind="stable")
    start = 0
    while start < len(order):
        length = _rung(len(sources[order[start]]) + 1)
        rows = _power_of_two_below(max(batch_tokens // length // multiple_of, 1)) * multiple_of
        while rows // 2 >= max(len(order) - start, multiple_of):
            rows //= 2
        indices = order[start : start + rows]
        source = np.full((rows, length), PAD, np.int32)
        for row, index in enumerate(indices):
            ids = [*sources[index], EOS]
            source[row, : len(ids)] = ids
        yield indices, {"source": source}
        start += rows


def _rung(length: int) -> int:
    """The least of 8, 16, 24, 32, 48, 64, 96, 128, 192 … that is at least length."""
    rung = max(8, 1 << (length - 1).bit_length())  # a power of two
    return rung * 3 // 4 if rung > 16 and length <= rung * 3 // 4 else rung


def _power_of_two_below(number: int) -> int:
    return 1 << (number.bit_length() - 1)
