"""Real and synthetic training pairs in one corpus, mixed by upsampling and by a ratio."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nmt_jax.data.prepared.parallel import Indices, Pair, PreparedCorpus


class Mixture:
    """Random access to all pairs of a real corpus, `upsample` times, followed by the first pairs of a synthetic one.

    ratio: number of synthetic pairs per pair of the real corpus, which counts once, at most; 0 means all of them.
    `lengths` int32[N, 2] and other attributes are as in `PreparedCorpus`.
    """

    def __init__(self, real: PreparedCorpus, synthetic: PreparedCorpus, upsample: int = 1, ratio: float = 0.0):
        self.parts, self.max_length = (real, synthetic), real.max_length
        self.name = f"{real.name}, and {synthetic.name}"
        count = min(round(ratio * len(real)), len(synthetic)) if ratio else len(synthetic)
        self.rows = np.concatenate([np.tile(np.arange(len(real)), upsample), len(real) + np.arange(count)])
        self.lengths = np.concatenate([part.lengths for part in self.parts])[self.rows]
        self.report = f"{real.report}, each {upsample} times; {synthetic.report}; {count:,} used"

    def __len__(self) -> int:
        return len(self.rows)

    def __getitems__(self, indices: Indices) -> list[Pair]:
        """The ids of each pair, as those of `PreparedCorpus`."""
        return self._of_parts(indices, lambda part, rows, _: part.__getitems__(rows))

    def texts(self, indices: Indices) -> list[tuple[str, str]]:
        """The original (source, target) text for each index."""
        return self._of_parts(indices, lambda part, rows, _: part.texts(rows))

    def sample(self, indices: Indices, alpha: float, seeds: np.ndarray) -> list[Pair]:
        """Like `__getitems__`, in random segmentations, as in `PreparedCorpus`."""
        return self._of_parts(indices, lambda part, rows, places: part.sample(rows, alpha, seeds[places]))

    def _of_parts(
        self, indices: Indices, read: Callable[[PreparedCorpus, np.ndarray, np.ndarray], list[Any]]
    ) -> list[Any]:
        """What `read` returns for the pairs of each part, given their numbers there and their places in `indices`."""
        rows = self.rows[np.asarray(indices, np.int64)]
        found: list[Any] = [None] * len(rows)
        first = 0
        for part in self.parts:
            places = np.flatnonzero((rows >= first) & (rows < first + len(part)))
            for place, item in zip(places, read(part, rows[places] - first, places), strict=True):
                found[place] = item
            first += len(part)
        return found
