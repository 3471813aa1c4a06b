"""NIST (Doddington, 2002) as mteval-v13a computes it."""

import dataclasses
import functools
import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.api import MOST_ORDER, AdditiveMetric, References, check_range, check_texts
from metrics_jax.surface.ngrams import Ngram, word_ngrams
from metrics_jax.surface.tokenizers import check_tokenizer, tokenize

_BETA = math.log(0.5) / math.log(1.5) ** 2  # the penalty is 0.5 if the output has two thirds of the reference length


@dataclasses.dataclass(frozen=True)
class Information:
    """Information of n-grams in bits, log2(count of the first n-1 words / count), in a set of references."""

    counts: Mapping[Ngram, int]  # n-grams of every order; the key () holds the number of words

    @classmethod
    def fit(cls, texts: Iterable[Sequence[str]], max_ngram_order: int) -> "Information":
        """Count the n-grams of tokenised references."""
        counts: Counter[Ngram] = Counter()
        for words in texts:
            counts.update(word_ngrams(words, max_ngram_order))
            counts[()] += len(words)
        return cls(counts)

    def __getitem__(self, ngram: Ngram) -> float:
        return math.log2(self.counts[ngram[:-1]] / self.counts[ngram])

    def __contains__(self, ngram: Ngram) -> bool:
        return ngram in self.counts

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the counts."""
        return hashlib.sha256(repr(sorted(self.counts.items())).encode("utf-8", "surrogatepass")).hexdigest()


@dataclasses.dataclass(frozen=True)
class NIST(AdditiveMetric):
    """Information-weighted n-gram matches per n-gram, summed over orders; 0 and up (Doddington, 2002, equation 3).

    information: n-gram information. None computes it from the references of each call, as mteval does, so that the
    score of a segment depends on the other segments; `fitted` fixes it. lowercase: off by default, unlike in mteval,
    which lower-cases ASCII. The reference length is the mean over the segment's references. Empty output scores 0.
    """

    max_ngram_order: int = 5
    tokenize: str = "13a"
    lowercase: bool = False
    information: Information | None = None

    name: ClassVar[str] = "nist"

    def __post_init__(self) -> None:
        check_tokenizer(self.tokenize)
        check_range("max_ngram_order", self.max_ngram_order, 1, MOST_ORDER)

    def fitted(self, references: References) -> "NIST":
        texts = [text for group in check_texts([""] * len(references), references) for text in group]
        words = tokenize(texts, self.tokenize, self.lowercase)
        return dataclasses.replace(self, information=Information.fit(words, self.max_ngram_order))

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Statistics float[N, 2 + 2 * max_ngram_order]: sys_len, ref_len, matched information and n-grams by order."""
        grouped = check_texts(hypotheses, references)
        order = self.max_ngram_order
        flat = tokenize([text for group in grouped for text in group], self.tokenize, self.lowercase)
        information = self.information or Information.fit(flat, order)
        words_left = iter(flat)
        rows = []
        for words, texts in zip(tokenize(hypotheses, self.tokenize, self.lowercase), grouped, strict=True):
            group = list(itertools.islice(words_left, len(texts)))
            clip: Counter[Ngram] = Counter()
            for other in group:
                clip |= Counter(word_ngrams(other, order))
            matched = np.zeros(order)
            for ngram, count in (Counter(word_ngrams(words, order)) & clip).items():
                if ngram in information:
                    matched[len(ngram) - 1] += count * information[ngram]
            lengths = [len(words), sum(map(len, group)) / len(group)]
            rows.append([*lengths, *matched, *(max(len(words) - n, 0) for n in range(order))])
        return np.array(rows, np.float64)

    def score(self, statistics: np.ndarray) -> np.ndarray:
        system, reference = statistics[..., 0], statistics[..., 1]
        short = (system > 0) & (system < reference)
        ratio = np.where(short, system / np.where(short, reference, 1.0), 1.0)
        return self._by_order(statistics).sum(axis=-1) * np.exp(_BETA * np.log(ratio) ** 2)

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """Information (matched bits per n-gram, by order, before the length penalty), sys_len, ref_len."""
        return {
            "information": self._by_order(statistics),
            "sys_len": float(statistics[0]),
            "ref_len": float(statistics[1]),
        }

    def _by_order(self, statistics: np.ndarray) -> np.ndarray:
        matched, totals = np.split(statistics[..., 2:], 2, axis=-1)
        return matched / np.maximum(totals, 1.0)
