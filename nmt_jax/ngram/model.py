"""Probabilities of lines under an n-gram model, and of one more word after a state."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from nmt_jax.ngram.trie import NONE, Trie, preceding
from nmt_jax.ngram.vocabulary import BOS, EOS, UNK, Vocabulary


class Scores(NamedTuple):
    """Probabilities of the words of lines, the end of each line included; lines follow each other.

    log_probabilities: float64[P], base 10. unknown: bool[P], words that are not in the vocabulary. lengths: int64[L].
    """

    log_probabilities: np.ndarray
    unknown: np.ndarray
    lengths: np.ndarray

    def by_line(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Returns log-probabilities and unknown words of each line."""
        ends = np.cumsum(self.lengths)
        parts = (np.split(one, ends)[:-1] for one in (self.log_probabilities, self.unknown))  # nothing follows the end
        return list(zip(*parts, strict=True))


@dataclasses.dataclass(frozen=True, eq=False)
class NgramModel:
    """Log-probabilities and backoffs, base 10, of the n-grams of a trie.

    log_probabilities: for each order, float[number of n-grams]. backoffs: the same for each order but the highest.
    """

    vocabulary: Vocabulary
    trie: Trie
    log_probabilities: tuple[np.ndarray, ...]
    backoffs: tuple[np.ndarray, ...]

    @property
    def order(self) -> int:
        """The length of the longest n-grams."""
        return self.trie.order

    def score(self, lines: Iterable[str]) -> Scores:
        """Returns the probability of each word and line end, given the words before it in its line."""
        words = self.vocabulary.encode(lines)
        found, contexts = [words], []
        for order in range(2, self.order + 1):
            contexts.append(preceding(found[-1], words))
            found.append(self.trie.find(order, contexts[-1], words))
        predicted = words != BOS
        lengths = np.diff(np.flatnonzero(words == EOS), prepend=-1) - 1
        return Scores(self._log_probabilities(found, contexts)[predicted], words[predicted] == UNK, lengths)

    def start(self, size: int) -> np.ndarray:
        """Returns the states of `size` lines before their first words, int64[size, N - 1].

        A state has the numbers of the n-grams, n = 1 … N - 1, that end the line so far, NONE for those not in the
        model.
        """
        state = np.full((size, self.order - 1), NONE)
        state[:, :1] = BOS
        return state

    def advance(self, state: np.ndarray, words: np.ndarray | Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the log-probabilities float64[B] of one more word in each of B lines, and the states after it.

        state: int64[B, N - 1]. words: int64[B], numbers of the vocabulary; EOS ends a line.
        """
        found, contexts = [np.asarray(words, np.int64)], list(state.T)
        for order, context in enumerate(contexts, start=2):
            found.append(self.trie.find(order, context, found[0]))
        return self._log_probabilities(found, contexts), np.stack([*found[:-1]], axis=1) if contexts else state

    def _log_probabilities(self, found: Sequence[np.ndarray], contexts: Sequence[np.ndarray]) -> np.ndarray:
        """Returns log p of words: that of the longest n-gram in the model, plus the backoffs of longer contexts.

        found: for each order, numbers int64[P] of the n-grams that end with the word. contexts: for each order from 2,
        those of the n-grams before the word.
        """
        log_p = np.asarray(self.log_probabilities[0][found[0]], np.float64)
        for own, context, listed, backoff in zip(
            found[1:], contexts, self.log_probabilities[1:], self.backoffs, strict=True
        ):
            seen, known = context != NONE, own != NONE
            log_p[seen] += backoff[context[seen]]
            log_p[known] = listed[own[known]]
        return log_p
