"""The n-grams of a model in sorted arrays.

An n-gram w_1 … w_n is stored as its context w_1 … w_{n-1}, given by the number of that (n-1)-gram, and the word w_n.
Both are packed into one integer. The number of an n-gram is its place in the sorted integers of its order; the number
of a unigram is that of its word. A lookup of many n-grams of one order is one `np.searchsorted`.
"""

import dataclasses

import numpy as np

from nmt_jax.ngram.vocabulary import BOS

WORD_BITS = 32
WORD_MASK = (1 << WORD_BITS) - 1
NONE = -1  # number of an n-gram that is not in the model


@dataclasses.dataclass(frozen=True, eq=False)
class Trie:
    """The n-grams of the orders 1 to N.

    num_words: number of unigrams. keys: for each order from 2, sorted int64, context << 32 | word.
    """

    num_words: int
    keys: tuple[np.ndarray, ...]

    @property
    def order(self) -> int:
        """The highest order, N."""
        return 1 + len(self.keys)

    @property
    def sizes(self) -> list[int]:
        """Number of n-grams of each order."""
        return [self.num_words, *map(len, self.keys)]

    def find(self, order: int, contexts: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Returns the numbers int64[P] of n-grams of an order from 2, `NONE` for those that are not in the model.

        contexts: int64[P], numbers of (n-1)-grams or NONE. words: int64[P].
        """
        keys = self.keys[order - 2]
        if not len(keys):
            return np.full(len(words), NONE)
        wanted = pack(contexts, words)
        places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[places] == wanted, places, NONE)

    def contexts(self, order: int) -> np.ndarray:
        """Returns the numbers of the contexts of all n-grams of an order from 2, in ascending order."""
        return self.keys[order - 2] >> WORD_BITS

    def words(self, order: int) -> np.ndarray:
        """Returns the last words of all n-grams of an order."""
        return np.arange(self.num_words) if order == 1 else self.keys[order - 2] & WORD_MASK

    def suffixes(self) -> list[np.ndarray]:
        """Returns for each order from 2 the numbers of all n-grams without their first words, as (n-1)-grams."""
        found = [self.words(2)] if self.keys else []
        for order in range(3, self.order + 1):
            found.append(self.find(order - 1, found[-1][self.contexts(order)], self.words(order)))
        return found

    def spelled(self, order: int, part: slice = slice(None)) -> np.ndarray:
        """Returns the words int64[P, n] of the n-grams of an order, or of a part of them."""
        numbers, columns = np.arange(*part.indices(self.sizes[order - 1])), []
        for n in range(order, 1, -1):
            keys = self.keys[n - 2][numbers]
            columns.append(keys & WORD_MASK)
            numbers = keys >> WORD_BITS
        return np.stack([numbers, *columns[::-1]], axis=1)


def pack(contexts: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Returns the integers that stand for n-grams; they are negative if the context is `NONE`."""
    return contexts.astype(np.int64) << WORD_BITS | words


def preceding(numbers: np.ndarray, words: np.ndarray, before: int = NONE) -> np.ndarray:
    """Returns for each place of a stream the number of the n-gram that ends before it in the same line.

    numbers: int[P], those of the n-grams that end at each place. words: int[P]. before: the number that precedes the
    first place.
    """
    shifted = np.concatenate([[before], numbers[:-1]])
    return np.where(words == BOS, NONE, shifted)
