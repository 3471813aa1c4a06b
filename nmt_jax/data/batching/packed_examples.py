"""Several examples in each row of a batch, for pretraining without next sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.batching.masking import Corruption
from nmt_jax.data.batching.packing import PackedBatches, fill_rows
from nmt_jax.data.batching.row_slice import ALL, RowSlice
from nmt_jax.data.batching.segment_pairs import SegmentPairs


class PackedExamples(PackedBatches):
    """Batches of rows that hold several examples [CLS] text [SEP], in a new order and corrupted anew in every epoch.

    {"ids", "segments", "packing": int32[B, S], "positions", "labels": int32[B, P], "weights": float32[B, P]}. "packing"
    has the number of each token's example in its row, from 1; padding is 0, and so are all "segments". How an example
    is corrupted is a pure function of (seed, epoch, example), the same as in `PairBatches`.
    """

    def __init__(
        self,
        pairs: SegmentPairs,
        corruption: Corruption,
        *,
        max_length: int,
        batch_tokens: int,
        share: RowSlice = ALL,
        seed: int = 0,
        steps: int | None = None,
    ):
        """max_length: places of a row. batch_tokens, share, steps: as for `Blocks`.

        Raises ValueError if the pairs are of sentences: a random second one has a length of its own.
        """
        if pairs.next_sentence:
            raise ValueError("examples with next sentences cannot be packed")
        self.pairs, self.corruption = pairs, corruption
        ends = np.append(0, pairs.text.ends)[pairs.text.examples]
        tokens = np.diff(ends) + 2  # [CLS] and [SEP]
        most = np.array([corruption.max_positions(length) for length in range(2, max_length + 1)])  # predictions
        lengths = np.stack([tokens, most[tokens - 2]], axis=1)
        super().__init__(
            lengths,
            max_length,
            {"rows": int(tokens.sum())},
            batch_tokens=batch_tokens,
            share=share,
            seed=seed,
            steps=steps,
            keys=("config.train.batch_tokens", "config.data.max_length"),
        )

    def _arrays(self, epoch: int, position: int, rows: list[np.ndarray], count: int) -> Batch:
        ids, positions, labels = [], [], []
        for row in rows:
            corrupted = []
            for example in row:
                random = np.random.default_rng((self.seed, epoch, int(example)))
                corrupted.append(self.corruption(self.pairs.draw(int(example), random).ids, random))
            starts = np.cumsum([0, *(len(one.ids) for one in corrupted)])
            ids.append([one.ids for one in corrupted])
            positions.append([start + one.positions for start, one in zip(starts, corrupted, strict=False)])
            labels.append([one.labels for one in corrupted])
        return fill_examples(ids, positions, labels, (count, *self.shapes[0][1:]))


def fill_examples(
    ids: Sequence[Sequence[np.ndarray]],
    positions: Sequence[Sequence[np.ndarray]],
    labels: Sequence[Sequence[np.ndarray]],
    shape: tuple[int, ...],
) -> Batch:
    """The examples of each row, and the positions in the row and the labels of their predictions, as arrays.

    shape: (B, S, P). Empty rows complete the batch.
    """
    rows, length, predictions = shape
    tokens, packing = fill_rows(ids, (rows, length))
    places, predicted = fill_rows(positions, (rows, predictions))
    return {
        "ids": tokens,
        "segments": np.zeros_like(tokens),
        "packing": packing,
        "positions": places,
        "labels": fill_rows(labels, (rows, predictions))[0],
        "weights": (predicted > 0).astype(np.float32),
    }
