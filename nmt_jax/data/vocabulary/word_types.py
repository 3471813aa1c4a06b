"""Texts as ids of their distinct words, and words as characters, which are UTF-8 bytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from nmt_jax.data.vocabulary.vocab import EOS

FIRST = EOS + 1  # id of the first word; smaller ids are special, as in `Vocab`
NOTHING, WORD_BEGIN, WORD_END, LINE_END = 0, 257, 258, 259  # byte b is character b + 1
NUM_CHARACTERS = 260


def split(line: str) -> list[str]:
    """The words of a line, separated by spaces."""
    return [word for word in line.split(" ") if word]


@dataclasses.dataclass(frozen=True)
class WordTypes:
    """The word ids int32[N] of a text, EOS after each line, and its distinct words, numbered from FIRST."""

    ids: np.ndarray
    words: tuple[str, ...]

    @classmethod
    def read(cls, lines: Iterable[Sequence[str]]) -> WordTypes:
        """Reads consecutive lines of words."""
        numbers: dict[str, int] = {}
        blocks = [
            np.array([*(numbers.setdefault(word, FIRST + len(numbers)) for word in line), EOS], np.int32)
            for line in lines
        ]
        return cls(np.concatenate([np.zeros(0, np.int32), *blocks]), tuple(numbers))

    def characters(self, max_characters: int) -> np.ndarray:
        """int16[FIRST + n, C]: row t holds the characters of word id t as in `spell`; EOS has its own, PAD has none."""
        specials = np.full((FIRST, max_characters), NOTHING, np.int16)
        specials[EOS, :3] = WORD_BEGIN, LINE_END, WORD_END
        return np.concatenate([specials, spell(self.words, max_characters)])


def spell(words: Sequence[str], max_characters: int) -> np.ndarray:
    """Words -> int16[n, C]: WORD_BEGIN, the bytes of the word, WORD_END, then NOTHING; long words are truncated."""
    characters = np.full((len(words), max_characters), NOTHING, np.int16)
    for row, word in zip(characters, words, strict=True):
        content = word.encode("utf-8", "replace")[: max_characters - 2]
        row[0], row[len(content) + 1] = WORD_BEGIN, WORD_END
        row[1 : len(content) + 1] = np.frombuffer(content, np.uint8).astype(np.int16) + 1
    return characters
