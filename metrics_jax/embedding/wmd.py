"""Word Mover's Distance (Kusner et al., 2015): how far the words of one text are from those of another."""

import dataclasses
import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from metrics_jax.api import AdditiveMetric, References, check_sequences
from metrics_jax.embedding.exact_transport import Problem, relaxed
from metrics_jax.embedding.transport import check_method, solve
from metrics_jax.embedding.vectors import Vectors
from metrics_jax.references import best, flatten, pair
from metrics_jax.surface import stop_words
from metrics_jax.surface.tokenizers import check_tokenizer, tokenize

_PARTS = ("wcd", "rwmd", "rwmd_left", "rwmd_right", "gap")


class Bag(NamedTuple):
    """A text as weighted points: vectors float64[n, D] and weights float64[n] that sum to 1, or none."""

    vectors: np.ndarray
    weights: np.ndarray


class MoverMetric(AdditiveMetric):
    """A metric that moves one text's points onto the other's; of several references the best counts."""

    def bags(self, texts: Sequence[str]) -> list[Bag]:
        """What is moved of each text."""
        raise NotImplementedError

    def move(self, bags: Sequence[Bag], others: Sequence[Bag]) -> np.ndarray:
        """P pairs of texts -> statistics float[P, K]."""
        raise NotImplementedError

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """-> float[N, K], those of `move` for the best reference."""
        texts, owner = flatten(hypotheses, references)
        rows = self.move(*pair(self.bags(texts), owner))
        scores = self.score(rows)
        return rows[best(scores if self.higher_is_better else -scores, owner)]

    def pairwise(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """-> float[H, R], the score of every hypothesis against every single reference."""
        check_sequences(hypotheses, references)
        bags = self.bags([*hypotheses, *references])
        others = bags[len(hypotheses) :]
        rows = [self.score(self.move([bag] * len(others), others)) for bag in bags[: len(hypotheses)]]
        return np.array(rows).reshape(len(hypotheses), len(references))


@dataclasses.dataclass(frozen=True)
class WMD(MoverMetric):
    """Word Mover's Distance, 0 and up, less being better: the least cost of moving one text's words onto the other's.

    Each word weighs its share of the text's known words; moving it costs the Euclidean distance of the words' vectors.
    vectors: see `vectors.Vectors`. norm: vectors are first scaled to length 1, as in gensim; not in the
    paper. Known words are those of `tokenize` (see `tokenizers`) and `lowercase` that have a vector; if `alphabetic` of
    letters alone; and none of `stop_words`: words, or ("smart",) for SMART's list, which the paper leaves out, in the
    form of ROUGE-1.5.5.

    missing: the distance where a text has no known word; infinite as in gensim, it makes the corpus's infinite, too.
    Unit vectors are never farther apart than 2. transport: "exact", or on accelerators "sinkhorn", which is at most
    parts["gap"] too large. Of several references the nearest counts. The corpus score is the mean over segments. Texts
    of the same words are at distance 0, and so are words of equal vectors, for which gensim 4.4 says infinite.
    """

    vectors: Vectors
    norm: bool = True
    missing: float = math.inf
    transport: str = "exact"
    tokenize: str = "intl"
    lowercase: bool = True
    alphabetic: bool = False
    stop_words: tuple[str, ...] = ()

    name: ClassVar[str] = "wmd"
    higher_is_better: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_method(self.transport)
        check_tokenizer(self.tokenize)
        object.__setattr__(self, "stop_words", stop_words.named(self.stop_words))
        if not self.missing >= 0:
            raise ValueError(f"missing={self.missing}: a distance is at least 0")

    def score(self, statistics: np.ndarray) -> np.ndarray:
        """Summed statistics float[..., 8] -> mean distance float[...]."""
        infinite, segments = statistics[..., -2], statistics[..., -1]
        return np.where(infinite > 0, np.inf, statistics[..., 0] / np.maximum(segments, 1))

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """Means over segments of finite distance, and how many are `infinite`.

        Lower bounds are wcd, the distance of the texts' centroids, and rwmd, the larger of rwmd_left and rwmd_right,
        where each word of the hypothesis, or of the reference, goes to the nearest. gap: no error of "sinkhorn" is
        larger.
        """
        means = statistics[1:-2] / max(statistics[-1] - statistics[-2], 1)
        return dict(zip(_PARTS, means.tolist(), strict=True)) | {"infinite": float(statistics[-2])}

    def bags(self, texts: Sequence[str]) -> list[Bag]:
        """The known words of each text, every distinct one once, in the order of their rows."""
        return [self._bag(self.vectors.rows(words)) for words in self.known_words(texts)]

    def known_words(self, texts: Sequence[str]) -> list[list[str]]:
        """The words of each text that are moved, in order."""
        words = split_words(texts, self.tokenize, self.lowercase, self.alphabetic, self.stop_words)
        return [[word for word, row in zip(some, self.vectors.rows(some), strict=True) if row >= 0] for some in words]

    def _bag(self, rows: np.ndarray) -> Bag:
        distinct, counts = np.unique(rows, return_counts=True)
        points = self.vectors.matrix[distinct].astype(np.float64)
        if self.norm:
            lengths = np.linalg.norm(points, axis=1, keepdims=True)
            points /= np.where(lengths > 0, lengths, 1.0)
        return Bag(points, counts / max(len(rows), 1))

    def move(self, bags: Sequence[Bag], others: Sequence[Bag]) -> np.ndarray:
        """P pairs -> float[P, 8]: distance, those of `parts`, 1; an infinite distance is counted and adds 0."""
        problems = [problem(*both) for both in zip(bags, others, strict=True)]
        value, lower = solve(problems, self.transport)
        bounds = np.array([relaxed(*one) for one in problems]).reshape(len(problems), 2)
        centroids = [np.stack([bag.weights @ bag.vectors for bag in side]) for side in (bags, others)]
        wcd = np.linalg.norm(centroids[0] - centroids[1], axis=1)
        table = np.column_stack([value, wcd, bounds.max(axis=1), bounds, value - lower])
        known = is_known(problems)
        table[~known, :5] = self.missing if math.isfinite(self.missing) else 0.0
        infinite = ~known & math.isinf(self.missing)
        return np.column_stack([table, infinite, np.ones(len(problems))])


def split_words(
    texts: Sequence[str], tokenizer: str, lowercase: bool, alphabetic: bool, unwanted: Sequence[str]
) -> list[list[str]]:
    """The words of each text that count, known or not; options as those of `WMD`."""
    left_out = stop_words.members(unwanted)
    return [
        [word for word in words if word not in left_out and (not alphabetic or word.isalpha())]
        for words in tokenize(texts, tokenizer, lowercase)
    ]


def known_rows(vectors: Vectors, words: Sequence[str]) -> np.ndarray:
    """-> int64[n], the rows of the words that have one, in order."""
    rows = vectors.rows(words)
    return rows[rows >= 0]


def problem(bag: Bag, other: Bag) -> Problem:
    """Two texts -> weights, weights, and the points' Euclidean distances."""
    return bag.weights, other.weights, cdist(bag.vectors, other.vectors)


def is_known(problems: Sequence[Problem]) -> np.ndarray:
    """-> bool[P], whether both sides have points: the cost of moving nothing is 0, which is no distance."""
    return np.array([cost.size > 0 for _, _, cost in problems], bool)
