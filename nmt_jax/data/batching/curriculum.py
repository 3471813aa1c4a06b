"""Competence-based curriculum learning (Platanios et al., 2019): easy examples first, then gradually all of them.

The difficulty of an example is its length or rarity, see `nmt_jax.data.prepared.difficulty`; only the order of the
examples by difficulty counts. The competence c(t), from c(0) = c0 to c(T) = 1, is the share of the easiest examples
that the batch of step t is drawn from:

    linear       c(t) = min(1, t (1 - c0) / T + c0)
    square root  c(t) = min(1, sqrt(t (1 - c0^2) / T + c0^2))
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from nmt_jax.data.batching.epochs import Batch, Draw

EXPONENTS = {"linear": 1, "square_root": 2}  # p in c(t) = min(1, (t (1 - c0^p) / T + c0^p)^(1/p))
APART = 1 << 32  # keeps the random numbers of the curriculum apart from those of the epochs


@dataclasses.dataclass(frozen=True)
class Competence:
    """The competence c(t): the share of examples, in (0, 1], that a batch may be drawn from.

    schedule: "linear" or "square_root". steps: T, after which it is 1. initial: c0, in (0, 1].
    """

    schedule: str
    steps: int
    initial: float

    def __call__(self, step: int) -> float:
        """The competence after `step` steps."""
        if step >= self.steps:
            return 1.0
        p = EXPONENTS[self.schedule]
        start = self.initial**p
        return float(min(1.0, (step * (1 - start) / self.steps + start) ** (1 / p)))


class Drawable(Protocol):
    """Training batches that can also be drawn from some of the items, such as `Batches` and `PackedBatches`."""

    seed: int

    @property
    def shapes(self) -> Sequence[tuple[int, ...]]:
        """The shapes of all batches."""

    @property
    def padding(self) -> dict[str, float]:
        """Share of padding in an epoch."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Batch: ...

    def drawing(self, order: np.ndarray) -> Draw:
        """Returns draw(count, number): a random batch of order[:count], a pure function of them and the seed."""


class CurriculumBatches:
    """Random access to the training batches of a curriculum.

    Batch t < T is drawn at random from the easiest examples: from a share c(t) of them, and at least one. Then epochs
    of all examples follow. Batch t is a pure function of (corpus, settings, seed, t), as without a curriculum.
    """

    def __init__(self, batches: Drawable, difficulty: np.ndarray, competence: Competence):
        """batches: of all examples. difficulty: float[N] of each; equal ones are ordered at random, from the seed."""
        self.batches, self.competence = batches, competence
        shuffled = np.random.default_rng((batches.seed, APART)).permutation(len(difficulty))
        self.order = shuffled[np.argsort(difficulty[shuffled], kind="stable")].astype(np.int32)  # easiest first
        self._draw = batches.drawing(self.order)

    @property
    def shapes(self) -> Sequence[tuple[int, ...]]:
        """The shapes of all batches."""
        return self.batches.shapes

    @property
    def padding(self) -> dict[str, float]:
        """Share of padding in an epoch of all examples."""
        return self.batches.padding

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, n: int) -> Batch:
        n = int(n)
        if not 0 <= n < len(self):
            raise IndexError(f"batch {n} of {len(self)}")
        if n >= self.competence.steps:
            return self.batches[n - self.competence.steps]
        return self._draw(self.available(n), APART + 1 + n)

    def available(self, step: int) -> int:
        """The number of the easiest examples that the batch of a step is drawn from."""
        return max(1, math.floor(self.competence(step) * len(self.order)))
