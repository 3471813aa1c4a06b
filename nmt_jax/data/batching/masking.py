"""Pretraining objectives: masked (Devlin et al., 2019, section 3.1) and left-to-right language modelling."""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple, Protocol

import numpy as np


class Corrupted(NamedTuple):
    """The input of the model, int32[S], the positions int32[P] to predict, in order, and their labels int32[P]."""

    ids: np.ndarray
    positions: np.ndarray
    labels: np.ndarray


class Corruption(Protocol):
    """Turns token ids into a prediction problem; equal generator states give equal results."""

    def __call__(self, ids: np.ndarray, random: np.random.Generator) -> Corrupted:
        """Corrupts ids int32[S]."""

    def max_positions(self, length: int) -> int:
        """Maximum number of predictions in a row of `length` tokens."""


@dataclasses.dataclass(frozen=True, eq=False)
class Masking:
    """Masked language modelling: a `share` of the tokens that are not special is chosen, at least one.

    A chosen token becomes `mask_id` with probability `mask`, a uniformly random token that is not special with
    probability `random`, and is unchanged otherwise: 0.8, 0.1 and 0.1 in the paper. With `whole_words`, the tokens of a
    word are chosen together, and words that would exceed the share are skipped. special: bool[V], special tokens.
    starts: bool[V], tokens that begin a word.
    """

    share: float
    mask: float
    random: float
    whole_words: bool
    mask_id: int
    special: np.ndarray
    starts: np.ndarray

    def __post_init__(self) -> None:
        """Raises ValueError if a share is out of range."""
        if not 0 < self.share <= 1:
            raise ValueError(f"share={self.share} must be more than 0 and at most 1")
        if min(self.mask, self.random) < 0 or self.mask + self.random > 1:
            raise ValueError(f"mask={self.mask} and random={self.random} must be at least 0, and their sum at most 1")

    @functools.cached_property
    def _ordinary(self) -> np.ndarray:
        return np.flatnonzero(~self.special).astype(np.int32)

    def max_positions(self, length: int) -> int:
        """Number of tokens chosen among `length` that are not special."""
        return max(1, round(self.share * length))

    def __call__(self, ids: np.ndarray, random: np.random.Generator) -> Corrupted:
        """Chooses tokens and corrupts them."""
        candidates = np.flatnonzero(~self.special[ids])
        begins = np.ones(len(candidates), bool)
        if self.whole_words:
            begins = self.starts[ids[candidates]] | (np.diff(candidates, prepend=-2) > 1)
        firsts = np.flatnonzero(begins)
        sizes = np.diff(firsts, append=len(candidates))
        left = self.max_positions(len(candidates)) if len(candidates) else 0
        chosen: list[int] = []
        for word in random.permutation(len(firsts)):
            if not left:
                break
            if sizes[word] <= left:
                chosen.extend(range(firsts[word], firsts[word] + sizes[word]))
                left -= sizes[word]
        positions = candidates[np.sort(np.array(chosen, int))].astype(np.int32)
        labels = ids[positions]
        draw = random.random(len(positions))
        other = self._ordinary[random.integers(len(self._ordinary), size=len(positions))]
        corrupted = ids.copy()
        corrupted[positions] = np.where(
            draw < self.mask, self.mask_id, np.where(draw < self.mask + self.random, other, labels)
        )
        return Corrupted(corrupted, positions, labels)


class LeftToRight:
    """Left-to-right language modelling: every position except the last predicts the next token."""

    def max_positions(self, length: int) -> int:
        """All positions except the last."""
        return length - 1

    def __call__(self, ids: np.ndarray, random: np.random.Generator) -> Corrupted:
        """Corrupts nothing, and draws nothing."""
        return Corrupted(ids, np.arange(len(ids) - 1, dtype=np.int32), ids[1:])
