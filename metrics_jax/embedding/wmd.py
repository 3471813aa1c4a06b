"""Word Mover's Distance (Kusner et al., 2015)."""

import dataclasses
import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from metrics_jax.api import AdditiveMetric, References, best, check_sequences, flatten, pair
from metrics_jax.embedding import platforms
from metrics_jax.embedding.exact_transport import Problem, relaxed
from metrics_jax.embedding.transport import check_method, solve
from metrics_jax.embedding.vectors import Vectors, unit
from metrics_jax.surface import stop_words
from metrics_jax.surface.tokenizers import check_tokenizer, tokenize

_PARTS = ("wcd", "rwmd", "rwmd_left", "rwmd_right", "gap")


class Bag(NamedTuple):
    """A text as weighted points: vectors float64[n, D] and weights float64[n] that sum to 1; n may be 0.

    rows: if the points are words, their rows int[n] in the matrix of vectors.
    """

    vectors: np.ndarray
    weights: np.ndarray
    rows: np.ndarray = np.zeros(0, int)


class MoverMetric(AdditiveMetric):
    """A metric that moves the points of one text onto those of another; of several references, the best counts.

    Subclasses are dataclasses with these fields, which `WMD` describes.
    """

    vectors: Vectors
    transport: str
    tokenize: str
    lowercase: bool
    alphabetic: bool
    stop_words: tuple[str, ...]

    def __post_init__(self) -> None:
        check_method(self.transport)
        check_tokenizer(self.tokenize)
        object.__setattr__(self, "stop_words", stop_words.named(self.stop_words))

    def bags(self, texts: Sequence[str]) -> list[Bag]:
        """The weighted points of each text."""
        raise NotImplementedError

    def move(self, bags: Sequence[Bag], others: Sequence[Bag]) -> np.ndarray:
        """Statistics float[P, K] of P pairs of texts."""
        raise NotImplementedError

    def known_words(self, texts: Sequence[str]) -> list[list[str]]:
        """The words of each text that count and have a vector, in order."""
        words = split_words(texts, self.tokenize, self.lowercase, self.alphabetic, self.stop_words)
        return [[word for word, row in zip(some, self.vectors.rows(some), strict=True) if row >= 0] for some in words]

    def solved(self, problems: Sequence[Problem]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Value and lower bound float64[P] of P problems, and bool[P]: whether both texts have known words.

        Without known words, the value 0 is not a distance.
        """
        return *solve(problems, self.transport), np.array([cost.size > 0 for _, _, cost in problems], bool)

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        texts, owner = flatten(hypotheses, references)
        rows = self.move(*pair(self.bags(texts), owner))
        scores = self.score(rows)
        return rows[best(scores if self.higher_is_better else -scores, owner)]

    def pairwise(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        check_sequences(hypotheses, references)
        bags = self.bags([*hypotheses, *references])
        others = bags[len(hypotheses) :]
        rows = [self.score(self.move([bag] * len(others), others)) for bag in bags[: len(hypotheses)]]
        return np.array(rows).reshape(len(hypotheses), len(references))


@dataclasses.dataclass(frozen=True)
class WMD(MoverMetric):
    """Word Mover's Distance: the optimal cost of moving the words of one text to another; at least 0, lower is better.

    The weight of a word is its relative frequency among the text's known words, and the cost is the Euclidean distance
    of the word vectors. Known words are the tokens that have a vector, are made of letters if `alphabetic`, and are not
    stop words. Of several references, the nearest counts. The corpus score is the mean over segments. Texts with the
    same words have distance 0, even if different words have equal vectors, where gensim 4.4 returns infinity.

    vectors: see `vectors.Vectors`. norm: scale vectors to length 1 first, as in gensim but not in the paper; their
    distances are then at most 2. missing: the distance if a text has no known word; by default infinite as in gensim,
    which makes the corpus score infinite too. transport: "exact", or "sinkhorn", which is faster on accelerators and
    too large by at most parts["gap"]. tokenize, lowercase: as for `BLEU`. stop_words: words, or ("smart",) for the
    SMART list that the paper removes, in the form of ROUGE-1.5.5.
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
        super().__post_init__()
        if not self.missing >= 0:
            raise ValueError(f"missing={self.missing}: must be at least 0")

    def score(self, statistics: np.ndarray) -> np.ndarray:
        infinite, segments = statistics[..., -2], statistics[..., -1]
        return np.where(infinite > 0, np.inf, statistics[..., 0] / np.maximum(segments, 1))

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """Means over the segments of finite distance, and the number of `infinite` ones.

        wcd and rwmd are lower bounds: the distance of the texts' centroids, and the larger of rwmd_left and rwmd_right,
        where each word of the hypothesis, or of the reference, moves to the nearest word. gap: bound on the error of
        "sinkhorn".
        """
        means = statistics[1:-2] / max(statistics[-1] - statistics[-2], 1)
        return dict(zip(_PARTS, means.tolist(), strict=True)) | {"infinite": float(statistics[-2])}

    def bags(self, texts: Sequence[str]) -> list[Bag]:
        """The distinct known words of each text, in the order of their rows."""
        return [self._bag(self.vectors.rows(words)) for words in self.known_words(texts)]

    def _bag(self, rows: np.ndarray) -> Bag:
        distinct, counts = np.unique(rows, return_counts=True)
        points = self.vectors.matrix[distinct].astype(np.float64)
        return Bag(unit(points) if self.norm else points, counts / max(len(rows), 1), distinct)

    def move(self, bags: Sequence[Bag], others: Sequence[Bag]) -> np.ndarray:
        """Statistics float[P, 8] of P pairs: distance, those of `parts`, 1; an infinite distance is counted as 0."""
        known = np.array(
            [len(bag.weights) * len(other.weights) > 0 for bag, other in zip(bags, others, strict=True)], bool
        )
        value, gap, wcd, bounds = (self._moved_on_devices if self._one_program() else self._moved)(bags, others)
        table = np.column_stack([value, wcd, bounds.max(axis=1), bounds, gap])
        table[~known, :5] = self.missing if math.isfinite(self.missing) else 0.0
        infinite = ~known & math.isinf(self.missing)
        return np.column_stack([table, infinite, np.ones(len(bags))])

    def _moved(self, bags: Sequence[Bag], others: Sequence[Bag]) -> tuple[np.ndarray, ...]:
        """Value, gap and wcd float64[P], rwmd_left and rwmd_right float64[P, 2] of P pairs, from costs on the host."""
        problems = [problem(*both) for both in zip(bags, others, strict=True)]
        value, lower = solve(problems, self.transport)
        bounds = np.array([relaxed(*one) for one in problems]).reshape(len(problems), 2)
        centroids = [np.stack([bag.weights @ bag.vectors for bag in side]) for side in (bags, others)]
        return value, value - lower, np.linalg.norm(centroids[0] - centroids[1], axis=1), bounds

    def _one_program(self) -> bool:
        """Whether words go to the devices and distances come back."""
        if self.transport == "exact":
            return False
        from metrics_jax.embedding.devices import platform

        return platforms.one_program(platform())

    def _moved_on_devices(self, bags: Sequence[Bag], others: Sequence[Bag]) -> tuple[np.ndarray, ...]:
        """The same in one program, in float32."""
        from metrics_jax.embedding.word_transport import move_words

        words, other_words = ([(bag.rows, bag.weights) for bag in side] for side in (bags, others))
        found = move_words(self.vectors.matrix, words, other_words, self.norm)
        return found.value, found.gap, found.centroids, np.column_stack([found.left, found.right])


def split_words(
    texts: Sequence[str], tokenizer: str, lowercase: bool, alphabetic: bool, stop: Sequence[str]
) -> list[list[str]]:
    """The words of each text that are not excluded, with or without a vector; options as for `WMD`."""
    excluded = stop_words.members(stop)
    return [
        [word for word in words if word not in excluded and (not alphabetic or word.isalpha())]
        for words in tokenize(texts, tokenizer, lowercase)
    ]


def problem(bag: Bag, other: Bag) -> Problem:
    """The transport problem of two texts, whose costs are Euclidean distances."""
    return bag.weights, other.weights, cdist(bag.vectors, other.vectors)
