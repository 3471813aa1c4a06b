"""The words whose vectors point the same way, and analogies: what is to x as b is to a."""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np

from metrics_jax.embedding.vectors import Vectors


class UnknownWordError(ValueError):
    """A word that has no vector."""


@dataclasses.dataclass(frozen=True)
class Neighbours:
    """Nearest words by the cosine; compose: the vector of a word that has none, or None for no such vector."""

    vectors: Vectors
    compose: Callable[[str], np.ndarray | None] = lambda word: None

    @functools.cached_property
    def _directions(self) -> np.ndarray:
        """The vectors at unit length, float32[V, D]; a vector of zeros stays one."""
        return _unit(np.asarray(self.vectors.matrix, np.float32))

    def __call__(self, query: str, count: int = 10) -> list[tuple[str, float]]:
        """The `count` words nearest to a word, or to a sum of words such as "king - man + woman", with their cosines.

        A sum is taken over vectors of unit length (3CosAdd: Mikolov et al., 2013c, section 4; Levy and Goldberg, 2014,
        eq. 3). The words of the query are not among the answers. A "+" or "-" that blanks part from words on both sides
        is a sign, any other belongs to its word. ValueError for what is no such sum, and its subclass UnknownWordError
        for a word without a vector.
        """
        terms = parse(query)
        rows = self.vectors.rows([word for _, word in terms])
        target = np.sum(
            [sign * self._direction(word, row) for (sign, word), row in zip(terms, rows, strict=True)], axis=0
        )
        cosines = self._directions @ _unit(target)
        cosines[rows[rows >= 0]] = -np.inf
        best = np.argsort(-cosines, kind="stable")[: min(count, len(cosines) - len(set(rows[rows >= 0])))]
        return [(self.vectors.words[row], float(cosines[row])) for row in best]

    def _direction(self, word: str, row: int) -> np.ndarray:
        """The unit vector of a word, float32[D]."""
        if row >= 0:
            return self._directions[row]
        if (vector := self.compose(word)) is None:
            raise UnknownWordError(f"{word!r} has no vector: it is none of the {len(self.vectors.words):,} words")
        return _unit(vector)


def parse(query: str) -> list[tuple[int, str]]:
    """Signs and words of "king - man + woman"; ValueError where words and signs do not take turns."""
    fields = query.split()
    words, signs = fields[::2], fields[1::2]
    if not words or len(words) == len(signs) or any(sign not in ("+", "-") for sign in signs):
        raise ValueError(f"{query!r} is neither a word nor a sum of words such as 'king - man + woman'")
    return [(1, words[0]), *((-1 if sign == "-" else 1, word) for sign, word in zip(signs, words[1:], strict=True))]


def solved(neighbours: Neighbours, questions: Sequence[tuple[str, str, str, str]], count: int = 1) -> float:
    """The share in [0, 1] of questions (a, b, x, y) of which y is among the `count` words nearest to b - a + x.

    Mikolov et al. (2013a), section 4.1, with count = 1. ValueError for no questions.
    """
    if not questions:
        raise ValueError("no questions")
    hits = [y in dict(neighbours(f"{b} - {a} + {x}", count)) for a, b, x, y in questions]
    return sum(hits) / len(hits)


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors float[..., D] at length 1."""
    norm = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(norm > 0, norm, 1.0)
