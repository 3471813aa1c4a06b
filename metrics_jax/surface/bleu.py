"""BLEU (Papineni et al., 2002) as sacreBLEU (Post, 2018) computes it."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.api import MOST_ORDER, AdditiveMetric, References, best, check_range, check_sequences, flatten
from metrics_jax.surface import ngrams
from metrics_jax.surface.ngrams import Tokens, clipped_matches, encode_words, num_ngrams
from metrics_jax.surface.tokenizers import check_tokenizer, tokenize

SMOOTHING = {"exp": None, "floor": 0.1, "add-k": 1.0, "none": None}  # method: default of smooth_value
BREVITY = ("exponential", "ratio")
_LOG_ZERO = -9999999999.0  # as in sacreBLEU: exp() of anything near it is exactly 0


@dataclasses.dataclass(frozen=True)
class BLEU(AdditiveMetric):
    """BLEU, 0 to 100: geometric mean of clipped n-gram precisions up to `max_ngram_order`, times a brevity penalty.

    smooth_method: treatment of orders without a match. "exp" halves the count each time (method 3 of Chen and Cherry,
    2014), "floor" counts smooth_value (0.1) matches, "add-k" adds smooth_value (1) to matches and totals of every order
    above 1, "none" does nothing. effective_order: leave out orders that a short text does not reach, for scores of
    single sentences. brevity: the penalty for short output with length c and reference length r, "exponential" for
    exp(1 - r/c), or "ratio" for min(1, c/r), used in teaching. tokenize: "13a", "intl", "char", "zh", "none" or another
    of `metrics_jax.surface.tokenizers.TOKENIZERS`. If no n-gram matches at all, as for an empty text, the score is 0
    whatever the smoothing.
    """

    tokenize: str = "13a"
    lowercase: bool = False
    smooth_method: str = "exp"
    smooth_value: float | None = None
    effective_order: bool = False
    max_ngram_order: int = 4
    brevity: str = "exponential"

    name: ClassVar[str] = "bleu"

    def __post_init__(self) -> None:
        check_tokenizer(self.tokenize)
        if self.smooth_method not in SMOOTHING:
            raise ValueError(f"smooth_method={self.smooth_method!r}: choose one of {', '.join(SMOOTHING)}")
        if self.brevity not in BREVITY:
            raise ValueError(f"brevity={self.brevity!r}: choose one of {', '.join(BREVITY)}")
        check_range("max_ngram_order", self.max_ngram_order, 1, MOST_ORDER)
        if self.smooth_value is not None:
            check_range("smooth_value", self.smooth_value, 0, 1000)

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Statistics float[N, 2 + 2 * max_ngram_order]: sys_len, ref_len, then matches and totals by order.

        ref_len is the length of the reference that is closest in length.
        """
        texts, owner = flatten(hypotheses, references)
        tokens, order = self._encode(texts), self.max_ngram_order
        lengths, reference_lengths = np.split(tokens.lengths, [len(hypotheses)])
        closest = best(-np.abs(reference_lengths - lengths[owner]), owner, reference_lengths)  # the shorter of two
        matches = clipped_matches(tokens, np.bincount(owner), order)
        columns = [lengths, reference_lengths[closest], *matches, *num_ngrams(lengths, order)]
        return np.column_stack(columns).astype(np.float64)

    def pairwise(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        check_sequences(hypotheses, references)
        tokens = self._encode([*hypotheses, *references])
        lengths, reference_lengths = np.split(tokens.lengths, [len(hypotheses)])
        matches = ngrams.pairwise_matches(tokens, len(hypotheses), self.max_ngram_order)
        totals = num_ngrams(lengths, self.max_ngram_order)[..., None]
        columns = np.broadcast_arrays(lengths[:, None], reference_lengths, *matches, *totals)
        return self.score(np.stack(columns, axis=-1).astype(np.float64))

    def aggregated(self, hypotheses: Sequence[str], references: Sequence[str], weights: np.ndarray) -> np.ndarray:
        """BLEU float[H] of every hypothesis against the expected n-gram counts of the references (DeNero et al., 2009).

        weights: float[R], summing to 1. The expected reference length is used as the reference length.
        """
        check_sequences(hypotheses, references)
        tokens, order = self._encode([*hypotheses, *references]), self.max_ngram_order
        lengths, reference_lengths = np.split(tokens.lengths, [len(hypotheses)])
        expected = np.full(len(hypotheses), weights @ reference_lengths)
        matches = ngrams.expected_matches(tokens, len(hypotheses), weights, order)
        return self.score(np.column_stack([lengths, expected, *matches, *num_ngrams(lengths, order)]))

    def score(self, statistics: np.ndarray) -> np.ndarray:
        precisions, reached = self._precisions(statistics)
        bp = self._brevity_penalty(statistics)
        logs = np.log(precisions, out=np.full_like(precisions, _LOG_ZERO), where=precisions > 0)
        included = np.arange(self.max_ngram_order) < reached[..., None]
        mean = np.where(included, logs, 0.0).sum(axis=-1) / np.maximum(reached, 1)
        matched = statistics[..., 2 : 2 + self.max_ngram_order].any(axis=-1)
        return np.where(matched, bp * np.exp(mean), 0.0)

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """Precisions (percent), bp, counts (clipped matches) and totals by order, sys_len, ref_len."""
        unsmoothed = np.split(statistics[2:], 2)
        counts, totals = self._smoothed_counts(statistics) if unsmoothed[0].any() else unsmoothed
        return {
            "precisions": self._precisions(statistics)[0],
            "bp": float(self._brevity_penalty(statistics)),
            "counts": counts,
            "totals": totals,
            "sys_len": float(statistics[0]),
            "ref_len": float(statistics[1]),
        }

    def _encode(self, texts: list[str]) -> Tokens:
        return encode_words(tokenize(texts, self.tokenize, self.lowercase))

    def _smoothed_counts(self, statistics: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Matches and totals float[..., N]; add-k adds to both for orders above 1."""
        counts, totals = np.split(statistics[..., 2:], 2, axis=-1)
        if self.smooth_method != "add-k":
            return counts, totals
        added = self._smooth_value * (np.arange(self.max_ngram_order) > 0)
        return counts + added, totals + added

    @property
    def _smooth_value(self) -> float:
        return float(SMOOTHING[self.smooth_method] or 0.0 if self.smooth_value is None else self.smooth_value)

    def _precisions(self, statistics: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Precisions in percent, float[..., N], and the number of orders that the score averages, int[...]."""
        counts, totals = self._smoothed_counts(statistics)
        reached = np.minimum.accumulate(totals > 0, axis=-1)  # orders before the first one without n-grams
        numerators, missed = counts, reached & (counts == 0)
        if self.smooth_method == "exp":
            numerators = np.where(missed, 0.5 ** np.cumsum(missed, axis=-1), counts)
        elif self.smooth_method == "floor":
            numerators = np.where(missed, self._smooth_value, counts)
        valid = reached & statistics[..., 2 : 2 + self.max_ngram_order].any(axis=-1, keepdims=True)
        precisions = np.where(valid, 100.0 * numerators / np.where(valid, totals, 1.0), 0.0)
        orders = reached.sum(axis=-1) if self.effective_order else np.full(reached.shape[:-1], self.max_ngram_order)
        return precisions, orders

    def _brevity_penalty(self, statistics: np.ndarray) -> np.ndarray:
        """The penalty float[...], at most 1; 0 for empty output."""
        system, reference = statistics[..., 0], statistics[..., 1]
        if self.brevity == "ratio":
            penalty = system / np.maximum(reference, 1.0)
        else:
            penalty = np.exp(1.0 - reference / np.maximum(system, 1.0))
        return np.where(system >= reference, 1.0, np.where(system > 0, penalty, 0.0))
