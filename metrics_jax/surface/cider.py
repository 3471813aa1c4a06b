"""CIDEr and CIDEr-D (Vedantam, Zitnick and Parikh, 2015) as the authors' programs compute them from words."""

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

VARIANTS = ("cider-d", "cider")


@dataclasses.dataclass(frozen=True)
class DocumentFrequencies:
    """In how many of some documents each n-gram occurs; all references of a segment are one document."""

    counts: Mapping[Ngram, int]
    documents: int

    @classmethod
    def fit(cls, documents: Iterable[Sequence[Iterable[Ngram]]]) -> "DocumentFrequencies":
        """Count the documents of each n-gram, from the n-grams of every reference of every document."""
        sets = [set(itertools.chain.from_iterable(group)) for group in documents]
        return cls(Counter(itertools.chain.from_iterable(sets)), len(sets))

    def idf(self, ngram: Ngram) -> float:
        """The natural logarithm of documents / documents with the n-gram; an unknown one counts as in one document."""
        return math.log(self.documents) - math.log(self.counts.get(ngram, 1))

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the counts."""
        text = repr((self.documents, sorted(self.counts.items())))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclasses.dataclass(frozen=True)
class CIDEr(AdditiveMetric):
    """Ten times the cosine of the tf-idf vectors of two texts, 0 to 10 (Vedantam et al., 2015, section 4).

    The cosine is averaged over n-gram orders, references and segments. variant: "cider-d" clips a count at that of the
    reference and multiplies by exp(-d^2 / (2 sigma^2)) for a difference of d in length, "cider" does neither. As in
    the programs, the length is the number of bigrams. frequencies: document frequencies of n-grams. None computes them
    from the references of each call, as the programs do, so that the score of a segment depends on the other segments,
    and a single segment scores 0; `fitted` fixes them. tokenize: "none" splits at white space, as the programs do with
    text that was tokenized before. Empty output scores 0.
    """

    variant: str = "cider-d"
    max_ngram_order: int = 4
    sigma: float = 6.0
    tokenize: str = "none"
    lowercase: bool = False
    frequencies: DocumentFrequencies | None = None

    name: ClassVar[str] = "cider"

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise ValueError(f"variant={self.variant!r}: choose one of {', '.join(map(repr, VARIANTS))}")
        check_tokenizer(self.tokenize)
        check_range("max_ngram_order", self.max_ngram_order, 1, MOST_ORDER)
        check_range("sigma", self.sigma, 0.001, 1e6)

    def fitted(self, references: References) -> "CIDEr":
        groups = check_texts([""] * len(references), references)
        return dataclasses.replace(self, frequencies=DocumentFrequencies.fit(self._count(groups)))

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Statistics float[N, max_ngram_order + 1]: ten times the mean similarity of each order, 1."""
        documents = self._count(check_texts(hypotheses, references))
        frequencies = self.frequencies or DocumentFrequencies.fit(documents)
        rows = np.ones((len(documents), self.max_ngram_order + 1))
        for row, (counts,), group in zip(rows, self._count([[text] for text in hypotheses]), documents, strict=True):
            vectors = self._vectors(counts, frequencies)
            similarities = [self._similarities(vectors, self._vectors(other, frequencies)) for other in group]
            row[:-1] = 10 * np.mean(similarities, axis=0)
        return rows

    def score(self, statistics: np.ndarray) -> np.ndarray:
        return statistics[..., :-1].mean(axis=-1) / statistics[..., -1]

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """Similarity (0 to 10, by order, a mean over the segments), whose mean is the score."""
        return {"similarity": statistics[:-1] / statistics[-1]}

    def _count(self, groups: Sequence[Sequence[str]]) -> list[list[Counter[Ngram]]]:
        """The n-grams of each text of each group."""
        words = iter(tokenize(list(itertools.chain.from_iterable(groups)), self.tokenize, self.lowercase))
        return [[Counter(word_ngrams(next(words), self.max_ngram_order)) for _ in group] for group in groups]

    def _vectors(self, counts: Counter[Ngram], frequencies: DocumentFrequencies) -> "_Vectors":
        vectors: list[dict[Ngram, float]] = [{} for _ in range(self.max_ngram_order)]
        bigrams = 0
        for ngram, count in counts.items():
            vectors[len(ngram) - 1][ngram] = count * frequencies.idf(ngram)
            bigrams += count if len(ngram) == 2 else 0
        norms = [math.sqrt(sum(value**2 for value in vector.values())) for vector in vectors]
        return _Vectors(vectors, norms, bigrams)

    def _similarities(self, hypothesis: "_Vectors", reference: "_Vectors") -> list[float]:
        """The similarity of each order, 0 to 1."""
        clip, factor = self.variant == "cider-d", 1.0
        if clip:
            factor = math.exp(-((hypothesis.bigrams - reference.bigrams) ** 2) / (2 * self.sigma**2))
        similarities = []
        for mine, others, *norms in zip(
            hypothesis.vectors, reference.vectors, hypothesis.norms, reference.norms, strict=True
        ):
            product = 0.0
            for ngram, value in mine.items():
                other = others.get(ngram, 0.0)
                product += (min(value, other) if clip else value) * other
            similarities.append(factor * product / (norms[0] * norms[1]) if product else 0.0)
        return similarities


@dataclasses.dataclass(frozen=True)
class _Vectors:
    """The tf-idf vectors of a text, and their norms, by order; and the number of bigrams."""

    vectors: list[dict[Ngram, float]]
    norms: list[float]
    bigrams: int
