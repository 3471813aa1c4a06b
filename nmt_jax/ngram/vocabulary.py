"""Words of an n-gram model and their numbers."""

import functools
import re
from collections.abc import Iterable, Sequence

import numpy as np

UNK, BOS, EOS = 0, 1, 2  # numbers of the special words
SPECIAL = ("<unk>", "<s>", "</s>")

_WORD = re.compile(r"[^ \t\r]+")  # other white space, such as a no-break space, is part of a word, as in KenLM


def split(line: str) -> list[str]:
    """Returns the words of a line, which are separated by spaces or tabs."""
    return _WORD.findall(line)


class Vocabulary:
    """The words of a model; the number of a word is its index, and the first three are `SPECIAL`."""

    def __init__(self, words: Sequence[str]):
        self.words = words

    def __len__(self) -> int:
        return len(self.words)

    @functools.cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each word of the vocabulary."""
        return {word: number for number, word in enumerate(self.words)}

    def encode(self, lines: Iterable[str]) -> np.ndarray:
        """Returns int64[P], the numbers of `<s>`, the words of a line and `</s>`, lines one after the other.

        Words outside the vocabulary are UNK, and so are the words `<s>` and `</s>` in a line.
        """
        numbers = {word: number for word, number in self.numbers.items() if number not in (BOS, EOS)}
        found: list[int] = []
        for line in lines:
            found.append(BOS)
            found.extend(numbers.get(word, UNK) for word in split(line))
            found.append(EOS)
        return np.array(found, np.int64)
