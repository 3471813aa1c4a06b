"""The base class of all training batches: random access by number, epoch after epoch."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from nmt_jax.data.batching.row_slice import RowSlice

Batch = dict[str, np.ndarray]
Draw = Callable[[int, int], Batch]
Order = TypeVar("Order")


class EpochBatches(abc.ABC, Generic[Order]):
    """Random access to the global batches 0 … steps-1; an epoch has `batches_per_epoch` of them.

    Batch n is a pure function of the corpus, the settings, the seed and n. So n is enough to resume training, and every
    process builds its own rows, its `share`, of the same global batch.
    """

    def __init__(self, batches_per_epoch: int, *, share: RowSlice, seed: int, steps: int | None):
        """steps: number of batches; None for one epoch."""
        self.batches_per_epoch, self.share, self.seed = batches_per_epoch, share, seed
        self.steps = batches_per_epoch if steps is None else steps
        self._order = functools.lru_cache(maxsize=2)(self._drawn)  # prefetching reaches into the next epoch

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, n: int) -> Batch:
        n = int(n)
        if not 0 <= n < self.steps:
            raise IndexError(f"batch {n} of {self.steps}")
        epoch, position = divmod(n, self.batches_per_epoch)
        return self._batch(epoch, position, self._order(epoch))

    @property
    def padding(self) -> dict[str, float]:
        """Share of padding in an epoch, by what is padded, such as "source" and "target"."""
        return {name: 1 - tokens / places for name, (tokens, places) in self._usage().items()}

    def _drawn(self, epoch: int) -> Order:
        return self._draw_order(np.random.default_rng((self.seed, epoch)))

    def _usage(self) -> dict[str, tuple[int, int]]:
        """Number of tokens of an epoch, and of places for them, by what is padded; none if nothing is."""
        return {}

    @abc.abstractmethod
    def _draw_order(self, random: np.random.Generator) -> Order:
        """Everything random of an epoch, such as the order of its items."""

    @abc.abstractmethod
    def _batch(self, epoch: int, position: int, order: Order) -> Batch:
        """This process's rows of batch `position`, counted from 0, of an epoch with the given random order."""
