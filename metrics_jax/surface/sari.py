"""SARI of simplified text (Xu, Napoles, Pavlick, Chen and Callison-Burch, 2016): words kept, deleted and added."""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.api import MOST_ORDER, References, SourceMetric, check_range, check_sources, check_texts
from metrics_jax.surface.ngrams import Ngram, word_ngrams
from metrics_jax.surface.tokenizers import check_tokenizer, tokenize

VARIANTS = ("xu", "tensor2tensor")


@dataclasses.dataclass(frozen=True)
class SARI(SourceMetric):
    """The mean of F1 of kept, precision of deleted, and F1 of added n-grams, 0 to 100 (Xu et al., 2016, section 4).

    Each is averaged over n-gram orders, and over segments. n-grams of the source and of the output count as often as
    there are references. variant: "xu" is 100 times the authors' script; "tensor2tensor" takes 0/0 as 1, and the recall
    of kept n-grams over their occurrences, as tensor2tensor does. tokenize: "none" splits at white space, as the script
    does. `sari|variant:tensor2tensor|tokenize:13a` is the metric of Hugging Face's evaluate.
    """

    variant: str = "xu"
    max_ngram_order: int = 4
    tokenize: str = "none"
    lowercase: bool = True

    name: ClassVar[str] = "sari"

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise ValueError(f"variant={self.variant!r}: choose one of {', '.join(map(repr, VARIANTS))}")
        check_tokenizer(self.tokenize)
        check_range("max_ngram_order", self.max_ngram_order, 1, MOST_ORDER)

    def statistics(
        self, hypotheses: Sequence[str], references: References, sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """Statistics float[N, 4]: the three scores of each segment, 1. Raises ValueError without sources."""
        grouped = check_texts(hypotheses, references)
        groups = zip(check_sources(self.name, sources, hypotheses), hypotheses, grouped, strict=True)
        texts = [[source, hypothesis, *group] for source, hypothesis, group in groups]
        words = iter(tokenize(list(itertools.chain.from_iterable(texts)), self.tokenize, self.lowercase))
        return np.array([[*self._operations([self._count(next(words)) for _ in group]), 1.0] for group in texts])

    def score(self, statistics: np.ndarray) -> np.ndarray:
        return statistics[..., :3].mean(axis=-1) / statistics[..., 3]

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """The scores of kept, deleted and added n-grams, 0 to 100, whose mean is the score."""
        return dict(zip(("keep", "delete", "add"), (statistics[:3] / statistics[3]).tolist(), strict=True))

    def _count(self, words: Sequence[str]) -> list[Counter[Ngram]]:
        """The n-grams of a text by order; an empty text is one empty word, as in the script."""
        counts: list[Counter[Ngram]] = [Counter() for _ in range(self.max_ngram_order)]
        for ngram in word_ngrams(words or [""], self.max_ngram_order):
            counts[len(ngram) - 1][ngram] += 1
        return counts

    def _operations(self, texts: Sequence[Sequence[Counter[Ngram]]]) -> np.ndarray:
        """The scores float[3] of a segment, from the n-grams by order of the source, the hypothesis, the references."""
        by_order = zip(*texts, strict=True)
        return 100 * np.mean([list(self._of_order(*counts)) for counts in by_order], axis=0)

    def _of_order(
        self, source: Counter[Ngram], hypothesis: Counter[Ngram], *references: Counter[Ngram]
    ) -> Iterator[float]:
        """Yield the scores of kept, deleted and added n-grams of one order."""
        wanted = sum(references, Counter())
        old, new = (Counter({one: len(references) * n for one, n in text.items()}) for text in (source, hypothesis))
        kept, to_keep = old & new, old & wanted
        right = kept & wanted
        by_occurrence = self._ratio(right.total(), to_keep.total())
        recall = self._mean(right, to_keep) if self.variant == "xu" else by_occurrence
        yield _f1(self._mean(right, kept), recall)
        deleted = old - new
        yield self._mean(deleted - wanted, deleted)
        added, to_add = new.keys() - old.keys(), wanted.keys() - old.keys()
        both = len(added & to_add)
        yield _f1(self._ratio(both, len(added)), self._ratio(both, len(to_add)))

    def _mean(self, right: Counter[Ngram], counts: Counter[Ngram]) -> float:
        """The mean over the distinct n-grams of the share of their occurrences that is right."""
        return self._ratio(sum(number / counts[ngram] for ngram, number in right.items()), len(counts))

    def _ratio(self, numerator: float, denominator: float) -> float:
        if not denominator:
            return float(self.variant == "tensor2tensor")
        return numerator / denominator


def _f1(precision: float, recall: float) -> float:
    """The harmonic mean of precision and recall; 0 if both are."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
