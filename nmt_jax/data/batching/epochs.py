"""Batches that are known by their number alone, epoch after epoch: what all sources of batches to train on share."""

from __future__ import annotations

import abc
import functools
from typing import Generic, TypeVar

import numpy as np

from nmt_jax.data.batching.row_slice import RowSlice

Batch = dict[str, np.ndarray]
Order = TypeVar("Order")


class EpochBatches(abc.ABC, Generic[Order]):
    """Random access to the global batches 0 … steps-1, of which `batches_per_epoch` are an epoch.

    Batch n is a pure function of what it is made of, the settings, the seed and n, so a restart needs no more than n,
    and every process builds its own rows, the `share`, of the same global batch.
    """

    def __init__(self, batches_per_epoch: int, *, share: RowSlice, seed: int, steps: int | None):
        """steps None: one epoch."""
        self.batches_per_epoch, self.share, self.seed = batches_per_epoch, share, seed
        self.steps = batches_per_epoch if steps is None else steps
        self._order = functools.lru_cache(maxsize=2)(self._drawn)  # prefetching looks into the next epoch

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, n: int) -> Batch:
        n = int(n)
        if not 0 <= n < self.steps:
            raise IndexError(f"batch {n} of {self.steps}")
        epoch, position = divmod(n, self.batches_per_epoch)
        return self._batch(epoch, position, self._order(epoch))

    def _drawn(self, epoch: int) -> Order:
        return self._draw_order(np.random.default_rng((self.seed, epoch)))

    @abc.abstractmethod
    def _draw_order(self, random: np.random.Generator) -> Order:
        """What is drawn for an epoch."""

    @abc.abstractmethod
    def _batch(self, epoch: int, position: int, order: Order) -> Batch:
        """The own rows of a batch of an epoch, counted from 0, given what was drawn for it."""
