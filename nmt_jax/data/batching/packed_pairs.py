"""Several sentence pairs in each row of a batch, for translation."""

from __future__ import annotations

import numpy as np

from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.batching.packing import PackedBatches, fill_rows
from nmt_jax.data.batching.row_slice import ALL, RowSlice
from nmt_jax.data.batching.segmentations import Corpus, Segmentations


class PackedPairs(PackedBatches):
    """Batches of a corpus of pairs: {"source", "source_packing": int32[B, S], "target", "target_packing": int32[B, T]}.

    A row is the tokens of several pairs, each side ended by EOS, then PAD. "packing" has the number of each token's
    pair in its row, from 1; 0 is padding. The longer side of a row has `corpus.max_length` places.
    """

    def __init__(
        self,
        corpus: Corpus,
        *,
        batch_tokens: int,
        share: RowSlice = ALL,
        seed: int = 0,
        steps: int | None = None,
        sampling_alpha: float = 0.0,
    ):
        """batch_tokens: maximum number of target tokens of a batch. share, steps, sampling_alpha: as for `Batches`."""
        self._segmentations = Segmentations(corpus, sampling_alpha)
        lengths = np.concatenate(list(self._segmentations.lengths()))
        source, target = (int(total) for total in np.asarray(corpus.lengths).sum(axis=0, dtype=np.int64))
        super().__init__(
            lengths,
            corpus.max_length,
            {"source": source, "target": target},
            counted=1,
            batch_tokens=batch_tokens,
            share=share,
            seed=seed,
            steps=steps,
            keys=("config.train.batch_tokens", "config.data.max_length"),
        )

    def _arrays(self, epoch: int, position: int, rows: list[np.ndarray], count: int) -> Batch:
        members = np.concatenate(rows) if rows else np.zeros(0, np.int32)
        key = (self.seed, epoch * self.batches_per_epoch + position)
        pairs = self._segmentations.read(members, self._segmentations.room(members), key) if rows else []
        found = iter(pairs)
        packed = [[next(found) for _ in row] for row in rows]
        batch: Batch = {}
        for side, name in enumerate(("source", "target")):
            items = [[pair[side] for pair in row] for row in packed]
            batch[name], batch[f"{name}_packing"] = fill_rows(items, (count, self.shapes[0][1 + side]))
        return batch
