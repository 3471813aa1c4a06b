"""Items of a corpus as token ids, in their best segmentation or in random ones (Kudo, 2018)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, cast

import numpy as np

from nmt_jax.data.prepared.parallel import PreparedCorpus
from nmt_jax.data.readers import sources

_BLOCK = 1 << 16  # items whose lengths are processed together; small, because the memory is not returned


class Corpus(Protocol):
    """N items with two lengths each, neither larger than `max_length`."""

    name: str
    max_length: int

    @property
    def lengths(self) -> np.ndarray:
        """int32[N, 2]."""

    def __len__(self) -> int: ...

    def __getitems__(self, indices: np.ndarray) -> Sequence[Any]: ...


class Segmentations:
    """The items of a corpus; if alpha > 0, of a `PreparedCorpus`, with a new random segmentation at each use."""

    def __init__(self, corpus: Corpus, alpha: float):
        self.corpus, self.alpha = corpus, alpha
        # Random segmentations are longer than the best one, so room is left for longer items.
        self._stretch = _sampled_stretch(cast(PreparedCorpus, corpus), alpha) if alpha else np.ones(2)

    def room(self, members: np.ndarray | slice) -> np.ndarray:
        """Lengths int32[M, 2] that `members` may have, those of random segmentations included."""
        lengths = np.ceil(self.corpus.lengths[members] * self._stretch)
        return np.minimum(lengths, self.corpus.max_length).astype(np.int32)

    def lengths(self) -> Iterator[np.ndarray]:
        """The `room` of all items, block by block."""
        return (self.room(slice(start, start + _BLOCK)) for start in range(0, len(self.corpus), _BLOCK))

    def read(self, members: np.ndarray, limits: np.ndarray, key: tuple[int, int]) -> Sequence[Any]:
        """The items `members` int[M]; random segmentations are drawn from `key` and the number of the item.

        limits: int[M, 2] or int[2], the lengths that there is room for.
        """
        best_segmentations = self.corpus.__getitems__(members)
        if not self.alpha:
            return best_segmentations
        seeds = np.array([np.random.SeedSequence((*key, int(i))).generate_state(2) for i in members])
        sampled = cast(PreparedCorpus, self.corpus).sample(members, self.alpha, seeds)
        limits = np.broadcast_to(limits, (len(members), 2))
        return [  # the rare sample that is too long for its place is replaced by the best segmentation
            draw if all(sources.lengths(draw[side]).max() <= limit[side] for side in (0, 1)) else best
            for draw, best, limit in zip(sampled, best_segmentations, limits, strict=True)
        ]


def _sampled_stretch(corpus: PreparedCorpus, alpha: float) -> np.ndarray:
    """float[2]: the 95th percentile of (random length / best length), for source and target."""
    indices = np.linspace(0, len(corpus) - 1, min(len(corpus), 1000)).astype(int)
    seeds = np.random.default_rng(0).integers(1 << 32, size=(len(indices), 2), dtype=np.uint32)
    sampled = [[sources.lengths(side).max() for side in pair] for pair in corpus.sample(indices, alpha, seeds)]
    return np.quantile(np.array(sampled) / corpus.lengths[indices], 0.95, axis=0)
