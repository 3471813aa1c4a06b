"""Sentences made a little worse, for a metric to learn from: words dropped, pieces masked and filled in anew."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from nmt_jax.data.batching.encoder_rows import Pieces

MOST_MASKS = 15  # of a sentence (Sellam et al., 2020, appendix A)
CONTINUED = "##"  # begins a piece of a word that began before
BLANK = "\u2581"  # begins one of a new word, in vocabularies of SentencePiece


def drop(sentence: str, random: np.random.Generator) -> str:
    """The sentence without some of its words, one at least and one left at least; of one word, nothing."""
    words = sentence.split()
    left = random.integers(1, len(words)) if len(words) > 1 else 0
    return " ".join(words[place] for place in np.sort(random.permutation(len(words))[:left]))


def choose(length: int, random: np.random.Generator) -> np.ndarray:
    """Which of so many pieces are masked, int[P] in order: a run of them, or as often pieces anywhere."""
    count = random.integers(1, min(MOST_MASKS, length) + 1)
    if random.random() < 0.5:
        return random.integers(length - count + 1) + np.arange(count)
    return np.sort(random.permutation(length)[:count])


@dataclasses.dataclass(frozen=True, eq=False)
class Masked:
    """A sentence with `places` int[P] of its pieces masked, to be filled in."""

    sentence: str
    pieces: Pieces
    places: np.ndarray

    def filled(self, fillings: Sequence[str]) -> str:
        """The sentence with what stands in those places, as the vocabulary spells it; all else is untouched."""
        text, end = "", 0
        for place, filling in zip(self.places, fillings, strict=True):
            start, stop = (int(character) for character in self.pieces.spans[place])
            text += self.sentence[end:start]
            if filling.startswith(CONTINUED):
                text = text.rstrip() + filling.removeprefix(CONTINUED)
            else:
                apart = bool(text) and not text[-1].isspace() and filling[0].isalnum() and text[-1].isalnum()
                text += " " * apart + filling.removeprefix(BLANK)
            end = stop
        return " ".join((text + self.sentence[end:]).split())
