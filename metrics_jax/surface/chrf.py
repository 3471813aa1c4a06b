"""chrF and chrF++ (Popović, 2015, 2017) as sacreBLEU (Post, 2018) computes them."""

import dataclasses
import itertools
import string
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.api import (
    BETAS,
    MOST_ORDER,
    AdditiveMetric,
    References,
    best,
    check_range,
    check_sequences,
    flatten,
    pair,
)
from metrics_jax.surface import ngrams
from metrics_jax.surface.ngrams import Tokens, clipped_matches, encode_characters, encode_words, num_ngrams

_EPSILON = 1e-16  # for eps_smoothing
_PUNCTUATION = frozenset(string.punctuation)


@dataclasses.dataclass(frozen=True)
class ChrF(AdditiveMetric):
    """F-score of character n-grams, 0 to 100; `word_order=2` adds word unigrams and bigrams, as in chrF++.

    Precision and recall are averaged over the orders that both texts reach, then combined, with recall weighted `beta`
    times as much as precision. eps_smoothing: average the F-scores of all orders instead, as chrF++.py and NLTK do.
    whitespace: count white space as characters, too. An empty text scores 0 (almost 0 with eps_smoothing).
    """

    char_order: int = 6
    word_order: int = 0
    beta: int | float = 2
    lowercase: bool = False
    whitespace: bool = False
    eps_smoothing: bool = False

    name: ClassVar[str] = "chrf"

    def __post_init__(self) -> None:
        for option in ("char_order", "word_order"):
            check_range(option, getattr(self, option), 0, MOST_ORDER)
        if self.char_order + self.word_order < 1:
            raise ValueError(
                f"char_order={self.char_order}, word_order={self.word_order}: at least one n-gram order is needed"
            )
        check_range("beta", self.beta, *BETAS)

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Statistics float[N, 3 * orders]: n-grams of hypothesis and reference and their matches, by order.

        Characters come first, then words. Of several references, the first one with the best segment score is used.
        """
        texts, owner = flatten(hypotheses, references)
        counts = [
            (*np.split(totals, 2, axis=1), clipped_matches(tokens, np.ones_like(owner), max_order))
            for tokens, max_order, totals in self._encode([*itertools.chain(*pair(texts, owner))])
        ]
        pairs = _interleave(counts)
        return pairs[best(self.score(pairs), owner)]

    def pairwise(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        check_sequences(hypotheses, references)
        size = len(hypotheses)
        counts = [
            (totals[:, :size, None], totals[:, None, size:], ngrams.pairwise_matches(tokens, size, max_order))
            for tokens, max_order, totals in self._encode([*hypotheses, *references])
        ]
        return self.score(_interleave(counts))

    def aggregated(self, hypotheses: Sequence[str], references: Sequence[str], weights: np.ndarray) -> np.ndarray:
        """chrF float[H] of every hypothesis against the expected n-gram counts of the references.

        weights: float[R], summing to 1. Source: Vamvas and Sennrich (2024).
        """
        check_sequences(hypotheses, references)
        size = len(hypotheses)
        counts = []
        for tokens, max_order, totals in self._encode([*hypotheses, *references]):
            matches = ngrams.expected_matches(tokens, size, weights, max_order)
            counts.append((totals[:, :size], (totals[:, size:] @ weights)[:, None], matches))
        return self.score(_interleave(counts))

    def score(self, statistics: np.ndarray) -> np.ndarray:
        precision, recall, reached = self._by_order(statistics)
        if self.eps_smoothing:
            precision = np.where(statistics[..., 0::3] > 0, precision, _EPSILON)
            recall = np.where(statistics[..., 1::3] > 0, recall, _EPSILON)
            return 100.0 * self._f(precision, recall, otherwise=_EPSILON).mean(axis=-1)
        return 100.0 * self._f(*self._means(precision, recall, reached), otherwise=0.0)

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """Precision and recall (0 to 1), averaged over the orders that both texts reach."""
        precision, recall = self._means(*self._by_order(statistics))
        return {"precision": float(precision), "recall": float(recall)}

    def _encode(self, texts: Sequence[str]) -> Iterator[tuple[Tokens, int, np.ndarray]]:
        """Yield the texts as characters, then as words, each with the maximum order and the n-grams of each order."""
        if self.lowercase:
            texts = [text.lower() for text in texts]
        if self.char_order:
            tokens = encode_characters(texts if self.whitespace else ["".join(text.split()) for text in texts])
            yield tokens, self.char_order, num_ngrams(tokens.lengths, self.char_order)
        if self.word_order:
            tokens = encode_words([split_words(text) for text in texts])
            yield tokens, self.word_order, num_ngrams(tokens.lengths, self.word_order)

    def _by_order(self, statistics: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Precision and recall float[..., orders], 0 where undefined, and a mask of orders that both texts reach."""
        hypothesis, reference, matches = statistics[..., 0::3], statistics[..., 1::3], statistics[..., 2::3]
        precision = matches / np.where(hypothesis > 0, hypothesis, 1.0)
        recall = matches / np.where(reference > 0, reference, 1.0)
        return precision, recall, (hypothesis > 0) & (reference > 0)

    def _means(self, precision: np.ndarray, recall: np.ndarray, reached: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means float[...] of precision and of recall over the orders that are reached."""
        orders = np.maximum(reached.sum(axis=-1), 1)
        return (precision * reached).sum(axis=-1) / orders, (recall * reached).sum(axis=-1) / orders

    def _f(self, precision: np.ndarray, recall: np.ndarray, otherwise: float) -> np.ndarray:
        """F_beta = (1 + beta^2) P R / (beta^2 P + R); `otherwise` if both are zero."""
        weight = self.beta**2
        denominator = weight * precision + recall
        defined = denominator > 0
        return np.where(defined, (1 + weight) * precision * recall / np.where(defined, denominator, 1.0), otherwise)


def _interleave(counts: Iterable[tuple[np.ndarray, ...]]) -> np.ndarray:
    """Statistics float[..., 3 * orders] from counts [order, ...] of hypothesis, reference and matches.

    N-grams of the hypothesis do not count for orders that the reference does not reach.
    """
    orders = [np.broadcast_arrays(mine * (others > 0), others, matches) for mine, others, matches in counts]
    columns = [column for order in orders for triple in zip(*order, strict=True) for column in triple]
    return np.stack(columns, axis=-1).astype(np.float64)


def split_words(text: str) -> list[str]:
    """Split at white space, then split off one punctuation mark per word: a final one, otherwise an initial one."""
    words = []
    for word in text.split():
        if len(word) > 1 and word[-1] in _PUNCTUATION:
            words += [word[:-1], word[-1]]
        elif len(word) > 1 and word[0] in _PUNCTUATION:
            words += [word[0], word[1:]]
        else:
            words.append(word)
    return words
