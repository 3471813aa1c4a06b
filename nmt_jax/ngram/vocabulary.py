"""Words of an n-gram model and their numbers."""

import array
import functools
import itertools
from collections.abc import Iterable, Sequence

import numpy as np

UNK, BOS, EOS = 0, 1, 2  # numbers of the special words
SPECIAL = ("<unk>", "<s>", "</s>")


def split(line: str) -> list[str]:
    """Returns the words of a line, which are separated by spaces or tabs.

    Other white space, such as a no-break space, is part of a word, as in KenLM.
    """
    words = line.replace("\t", " ").replace("\r", " ").split(" ")
    return words if "" not in words else list(filter(None, words))


class Vocabulary:
    """The words of a model; the number of a word is its index, and the first three are `SPECIAL`."""

    def __init__(self, words: Sequence[str]):
        self.words = words

    def __len__(self) -> int:
        return len(self.words)

    @functools.cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each word that a line may have: of all but `<s>` and `</s>`."""
        return {word: number for number, word in enumerate(self.words) if number not in (BOS, EOS)}

    def encode(self, lines: Iterable[str]) -> np.ndarray:
        """Returns int64[P], the numbers of `<s>`, the words of a line and `</s>`, lines one after the other.

        Words outside the vocabulary are UNK, and so are the words `<s>` and `</s>` in a line.
        """
        found = array.array("q")
        for line in lines:
            found.append(BOS)
            found.extend(map(self.numbers.get, split(line), itertools.repeat(UNK)))
            found.append(EOS)
        return np.array(found, np.int64)
