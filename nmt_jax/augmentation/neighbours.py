"""Replacements of words by their nearest neighbours among word vectors (Wang and Yang, 2015, section 3.3)."""

import functools
import itertools
from collections.abc import Mapping

import numpy as np

from metrics_jax.embedding.vectors import Vectors, unit
from metrics_jax.surface.wordnet import WordNet
from nmt_jax.augmentation.inflection import same_form
from nmt_jax.augmentation.words import is_content


class VectorNeighbours:
    """The nearest neighbours of lower-case words among the words of `known` that have a vector and may be replaced.

    smallest: the smallest cosine. count: the number of nearest neighbours, each of which must have the word among its
    own, so that words that are near to many others replace only few. wordnet: used to compare parts of speech.
    """

    def __init__(
        self,
        vectors: Vectors,
        known: Mapping[str, int],
        smallest: float,
        count: int,
        wordnet: WordNet | None = None,
    ):
        self._words = [word for word in vectors.words if word in known and is_content(word)]
        self._directions = unit(vectors.matrix[vectors.rows(self._words)].astype(np.float32))
        self._row = {word: row for row, word in enumerate(self._words)}
        self._smallest, self._count, self._wordnet = smallest, count, wordnet
        self._nearest = functools.lru_cache(1 << 17)(self._find)

    def __len__(self) -> int:
        """The number of words that have a vector and may be replaced."""
        return len(self._words)

    def __call__(self, word: str) -> tuple[str, ...]:
        """Returns the replacements of a word in the same form, the nearest first."""
        return tuple(other for other in self._nearest(word) if word in self._nearest(other))

    def _find(self, word: str) -> tuple[str, ...]:
        if (row := self._row.get(word)) is None:
            return ()
        cosines = self._directions @ self._directions[row]
        cosines[row] = -np.inf
        near = np.flatnonzero(cosines >= self._smallest)
        ordered = (self._words[one] for one in near[np.argsort(-cosines[near], kind="stable")])
        same = (other for other in ordered if same_form(word, other, self._wordnet))
        return tuple(itertools.islice(same, self._count))
