"""What is asked about a row of tokens: some of them, masked (Devlin et al., 2019, section 3.1), or every next one."""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple, Protocol

import numpy as np


class Question(NamedTuple):
    """A row as the model reads it, int32[S], and what it is asked: the labels int32[P] of positions int32[P]."""

    ids: np.ndarray
    positions: np.ndarray
    labels: np.ndarray


class Corruption(Protocol):
    """Ids int32[S] and a source of chance -> a question, the same one whenever the source is in the same state."""

    def __call__(self, ids: np.ndarray, random: np.random.Generator) -> Question:
        """-> what is asked; positions are in order."""

    def most(self, length: int) -> int:
        """The most positions that are asked about in a row of so many tokens."""


@dataclasses.dataclass(frozen=True, eq=False)
class Masking:
    """Masked language modelling: `share` of the tokens that are not special are chosen, at least one.

    A chosen token becomes `mask_id` with probability `mask`, any piece that is not special, all alike, with probability
    `random`, and stays what it is else: 0.8, 0.1 and 0.1 in the paper. With whole_words the pieces of a word are chosen
    together, and words that would be too many are passed over. special, starts: bool[V], pieces that are no text, and
    pieces that begin a word.
    """

    share: float
    mask: float
    random: float
    whole_words: bool
    mask_id: int
    special: np.ndarray
    starts: np.ndarray

    def __post_init__(self) -> None:
        """ValueError for shares that cannot be meant."""
        if not 0 < self.share <= 1:
            raise ValueError(f"share={self.share} must be more than 0 and at most 1")
        if min(self.mask, self.random) < 0 or self.mask + self.random > 1:
            raise ValueError(f"mask={self.mask} and random={self.random} must be at least 0, and at most 1 together")

    @functools.cached_property
    def _ordinary(self) -> np.ndarray:
        return np.flatnonzero(~self.special).astype(np.int32)

    def most(self, length: int) -> int:
        """The most tokens that are chosen of so many."""
        return max(1, round(self.share * length))

    def __call__(self, ids: np.ndarray, random: np.random.Generator) -> Question:
        """Choose and corrupt; positions are in order."""
        places = np.flatnonzero(~self.special[ids])
        begins = np.ones(len(places), bool)
        if self.whole_words:
            begins = self.starts[ids[places]] | (np.diff(places, prepend=-2) > 1)
        firsts = np.flatnonzero(begins)
        sizes = np.diff(firsts, append=len(places))
        left = self.most(len(places)) if len(places) else 0
        chosen: list[int] = []
        for word in random.permutation(len(firsts)):
            if not left:
                break
            if sizes[word] <= left:
                chosen.extend(range(firsts[word], firsts[word] + sizes[word]))
                left -= sizes[word]
        positions = places[np.sort(np.array(chosen, int))].astype(np.int32)
        labels = ids[positions]
        lot = random.random(len(positions))
        other = self._ordinary[random.integers(len(self._ordinary), size=len(positions))]
        corrupted = ids.copy()
        corrupted[positions] = np.where(
            lot < self.mask, self.mask_id, np.where(lot < self.mask + self.random, other, labels)
        )
        return Question(corrupted, positions, labels)


class LeftToRight:
    """Language modelling from left to right: every token but the first is asked about at the one before it."""

    def most(self, length: int) -> int:
        """All but the last position."""
        return length - 1

    def __call__(self, ids: np.ndarray, random: np.random.Generator) -> Question:
        """Nothing is corrupted, and nothing is left to chance."""
        return Question(ids, np.arange(len(ids) - 1, dtype=np.int32), ids[1:])
