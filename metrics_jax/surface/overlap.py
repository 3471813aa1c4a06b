"""Precision, recall and F-score of common words, a simple baseline."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.api import BETAS, AdditiveMetric, References, best, check_range, flatten, pair
from metrics_jax.surface.ngrams import clipped_matches, encode_words
from metrics_jax.surface.tokenizers import check_tokenizer, tokenize


@dataclasses.dataclass(frozen=True)
class WordOverlap(AdditiveMetric):
    """F-score of words common to hypothesis and reference, counted with multiplicity; 0 to 1.

    Counts are summed over segments. Of several references, the first one with the best F-score is used. An empty text
    scores 0. beta: weight of recall relative to precision.
    """

    tokenize: str = "none"
    lowercase: bool = False
    beta: float = 1.0

    name: ClassVar[str] = "overlap"

    def __post_init__(self) -> None:
        check_tokenizer(self.tokenize)
        check_range("beta", self.beta, *BETAS)

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Statistics float[N, 3]: common words, words of the hypothesis, words of the reference."""
        texts, owner = flatten(hypotheses, references)
        words = tokenize(texts, self.tokenize, self.lowercase)
        tokens = encode_words(itertools.chain(*pair(words, owner)))
        (matches,) = clipped_matches(tokens, np.ones(len(owner), np.int64), max_order=1)
        pairs = np.column_stack([matches, *np.split(tokens.lengths, 2)]).astype(np.float64)
        return pairs[best(self.score(pairs), owner)]

    def score(self, statistics: np.ndarray) -> np.ndarray:
        matches, hypothesis, reference = np.moveaxis(statistics, -1, 0)
        weight = self.beta**2
        words = weight * reference + hypothesis  # (1 + b^2) P R / (b^2 P + R) divided by the matches
        return (1 + weight) * matches / np.where(words > 0, words, 1.0)

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """Precision, recall and f1 of the summed counts, 0 to 1, and the counts."""
        matches, hypothesis, reference = statistics
        return {
            "precision": float(matches / max(hypothesis, 1.0)),
            "recall": float(matches / max(reference, 1.0)),
            "f1": float(self.score(statistics)),
            "matches": float(matches),
        }
