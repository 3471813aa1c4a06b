"""Nearest words by cosine similarity, and word analogies."""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np

from metrics_jax.embedding.vectors import Vectors, unit


class UnknownWordError(ValueError):
    """A word that has no vector."""


@dataclasses.dataclass(frozen=True)
class Neighbours:
    """Nearest words by cosine; compose: makes a vector for a word without one, or returns None."""

    vectors: Vectors
    compose: Callable[[str], np.ndarray | None] = lambda word: None

    @functools.cached_property
    def _directions(self) -> np.ndarray:
        """The vectors scaled to length 1, float32[V, D]; zero vectors stay zero."""
        return unit(np.asarray(self.vectors.matrix, np.float32))

    def __call__(self, query: str, count: int = 10) -> list[tuple[str, float]]:
        """The `count` words nearest to a word, or to a sum of words such as "king - man + woman", with their cosines.

        A sum adds vectors of length 1 (3CosAdd: Mikolov et al., 2013c, section 4; Levy and Goldberg, 2014, eq. 3). The
        words of the query are excluded from the result. "+" and "-" are signs if they have spaces on both sides;
        otherwise, they belong to the word. Raises ValueError if the query is not such a sum, and its subclass
        UnknownWordError if a word has no vector.
        """
        terms = parse(query)
        rows = self.vectors.rows([word for _, word in terms])
        directions = [sign * self._direction(word, row) for (sign, word), row in zip(terms, rows, strict=True)]
        target = np.sum(directions, axis=0)
        cosines = self._directions @ unit(target)
        cosines[rows[rows >= 0]] = -np.inf
        best = np.argsort(-cosines, kind="stable")[: min(count, len(cosines) - len(set(rows[rows >= 0])))]
        return [(self.vectors.words[row], float(cosines[row])) for row in best]

    def _direction(self, word: str, row: int) -> np.ndarray:
        """The vector of a word scaled to length 1, float32[D]."""
        if row >= 0:
            return self._directions[row]
        if (vector := self.compose(word)) is None:
            known = len(self.vectors.words)
            raise UnknownWordError(f"{word!r} has no vector; it is not among the {known:,} known words")
        return unit(vector)


def parse(query: str) -> list[tuple[int, str]]:
    """The signs and words of "king - man + woman". Raises ValueError if words and signs do not alternate."""
    fields = query.split()
    words, signs = fields[::2], fields[1::2]
    if not words or len(words) == len(signs) or any(sign not in ("+", "-") for sign in signs):
        raise ValueError(f"{query!r} is neither a word nor a sum of words, such as 'king - man + woman'")
    return [(1, words[0]), *((-1 if sign == "-" else 1, word) for sign, word in zip(signs, words[1:], strict=True))]


def solved(neighbours: Neighbours, questions: Sequence[tuple[str, str, str, str]], count: int = 1) -> float:
    """The accuracy in [0, 1] on questions (a, b, x, y): y must be among the `count` words nearest to b - a + x.

    Mikolov et al. (2013a), section 4.1, use count = 1. Raises ValueError if there are no questions.
    """
    if not questions:
        raise ValueError("no questions")
    hits = [y in dict(neighbours(f"{b} - {a} + {x}", count)) for a, b, x, y in questions]
    return sum(hits) / len(hits)
