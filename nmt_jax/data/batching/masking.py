"""Corrupted text: for masked (Devlin et al., 2019, section 3.1) and left-to-right language modelling, and for learned
metrics, whose training texts lack words or have masked tokens that a model fills.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from nmt_jax.data.batching.encoder_rows import Pieces

MAX_MASKS = 15  # per sentence (Sellam et al., 2020, appendix A)
CONTINUED = "##"  # begins a token that continues a word
SPACE = "\u2581"  # begins a token that begins a word, in SentencePiece vocabularies


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
    word are chosen together, and words that would exceed the share are skipped; if all would, no token is chosen.
    special: bool[V], special tokens. starts: bool[V], tokens that begin a word.
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
        return max(1, round(self.share * length))

    def __call__(self, ids: np.ndarray, random: np.random.Generator) -> Corrupted:
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
        unmasked = np.where(draw < self.mask + self.random, other, labels)
        corrupted[positions] = np.where(draw < self.mask, self.mask_id, unmasked)
        return Corrupted(corrupted, positions, labels)


class LeftToRight:
    """Left-to-right language modelling: every position except the last predicts the next token."""

    def max_positions(self, length: int) -> int:
        return length - 1

    def __call__(self, ids: np.ndarray, random: np.random.Generator) -> Corrupted:
        """Corrupts nothing, and draws nothing."""
        return Corrupted(ids, np.arange(len(ids) - 1, dtype=np.int32), ids[1:])


def drop_words(sentence: str, random: np.random.Generator) -> str:
    """The sentence without some of its words, but at least one; empty for a sentence of one word."""
    words = sentence.split()
    left = random.integers(1, len(words)) if len(words) > 1 else 0
    return " ".join(words[position] for position in np.sort(random.permutation(len(words))[:left]))


def choose_masked(length: int, random: np.random.Generator) -> np.ndarray:
    """Which of `length` tokens to mask, int[P] in order: with equal probability a contiguous span, or any tokens."""
    count = random.integers(1, min(MAX_MASKS, length) + 1)
    if random.random() < 0.5:
        return random.integers(length - count + 1) + np.arange(count)
    return np.sort(random.permutation(length)[:count])


@dataclasses.dataclass(frozen=True, eq=False)
class Masked:
    """A sentence whose tokens at `positions`, int[P], are masked."""

    sentence: str
    pieces: Pieces
    positions: np.ndarray

    def filled(self, fillings: Sequence[str]) -> str:
        """The sentence with tokens, spelled as in the vocabulary, at the masked positions."""
        spaced = self._covers_blanks or any(filling.startswith(SPACE) for filling in fillings)
        text, end = "", 0
        for position, filling in zip(self.positions, fillings, strict=True):
            start, stop = (int(character) for character in self.pieces.spans[position])
            text += self.sentence[end:start]
            if spaced:
                text += filling.replace(SPACE, " ")
            elif filling.startswith(CONTINUED):
                text = text.rstrip() + filling.removeprefix(CONTINUED)
            else:
                apart = bool(text) and not text[-1].isspace() and filling[0].isalnum() and text[-1].isalnum()
                text += " " * apart + filling
            end = stop
        return " ".join((text + self.sentence[end:]).split())

    @functools.cached_property
    def _covers_blanks(self) -> bool:
        """Whether tokens cover the blanks before words, as in SentencePiece vocabularies."""
        return any(re.search(r"\s", self.sentence[start:stop]) for start, stop in self.pieces.spans.tolist())
