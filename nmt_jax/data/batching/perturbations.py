"""Perturbed sentences for training learned metrics: dropped words, and masked tokens that a model fills."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from nmt_jax.data.batching.encoder_rows import Pieces

MAX_MASKS = 15  # per sentence (Sellam et al., 2020, appendix A)
CONTINUED = "##"  # begins a token that continues a word
SPACE = "\u2581"  # begins a token that begins a word, in SentencePiece vocabularies


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
        text, end = "", 0
        for position, filling in zip(self.positions, fillings, strict=True):
            start, stop = (int(character) for character in self.pieces.spans[position])
            text += self.sentence[end:start]
            if filling.startswith(CONTINUED):
                text = text.rstrip() + filling.removeprefix(CONTINUED)
            else:
                apart = bool(text) and not text[-1].isspace() and filling[0].isalnum() and text[-1].isalnum()
                text += " " * apart + filling.removeprefix(SPACE)
            end = stop
        return " ".join((text + self.sentence[end:]).split())
