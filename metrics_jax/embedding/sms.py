"""Sentence Mover's Similarity (Clark et al., 2019): how near the sentences of one text are to those of another."""

import dataclasses
import itertools
import re
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.embedding.transport import check_method, solve
from metrics_jax.embedding.vectors import Vectors
from metrics_jax.embedding.wmd import Bag, MoverMetric, is_known, known_rows, problem, split_words
from metrics_jax.surface import stop_words
from metrics_jax.surface.tokenizers import check_tokenizer

VARIANTS = ("wms", "sms", "s+wms")
SENTENCES = ("punctuation", "lines")
_BORDER = re.compile(r"""[.!?…]["'”’»)\]]*\s+(?=\S)|[。！？][」』”）]*""")


@dataclasses.dataclass(frozen=True)
class SMS(MoverMetric):
    """Sentence Mover's Similarity, 0 to 1: exp(-d), d being the least cost of moving one text onto the other.

    What is moved, at the Euclidean distance of the vectors, by variant: "wms" words; "sms" sentences, each the mean of
    its words' vectors and weighing as much as it has words; "s+wms" both, half the weight each, and words may be moved
    onto sentences. vectors: see `vectors.Vectors`. sentences: they end where lines do ("lines"), and by
    "punctuation" also behind . ! ? … if white space and no small letter follows, and behind 。！？.

    The words that count are lower-cased, of letters alone, and none of `stop_words`: words, or ("smart",); the authors'
    program takes nltk's English list. Options as those of `WMD`. A text without such words has similarity 0 to any. Of
    several references the most similar counts. The corpus score is the mean over segments.
    """

    vectors: Vectors
    variant: str = "sms"
    transport: str = "exact"
    sentences: str = "punctuation"
    tokenize: str = "intl"
    lowercase: bool = True
    alphabetic: bool = True
    stop_words: tuple[str, ...] = ("smart",)

    name: ClassVar[str] = "sms"

    def __post_init__(self) -> None:
        for option, known in (("variant", VARIANTS), ("sentences", SENTENCES)):
            if (value := getattr(self, option)) not in known:
                raise ValueError(f"{option}={value!r} is none of {', '.join(known)}")
        check_method(self.transport)
        check_tokenizer(self.tokenize)
        object.__setattr__(self, "stop_words", stop_words.named(self.stop_words))

    def score(self, statistics: np.ndarray) -> np.ndarray:
        """Summed statistics float[..., 4] -> mean similarity float[...]."""
        return statistics[..., 0] / np.maximum(statistics[..., -1], 1)

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """gap: the mean similarity that "sinkhorn" may be too small by; missing: segments without a known word."""
        return {"gap": float(statistics[1] / max(statistics[-1], 1)), "missing": float(statistics[2])}

    def bags(self, texts: Sequence[str]) -> list[Bag]:
        """What is moved of each text."""
        split = [split_sentences(text, self.sentences) for text in texts]
        flat = list(itertools.chain.from_iterable(split))
        words = iter(split_words(flat, self.tokenize, self.lowercase, self.alphabetic, self.stop_words))
        matrix = self.vectors.matrix
        return [
            self.bag([matrix[known_rows(self.vectors, some)] for some in itertools.islice(words, len(sentences))])
            for sentences in split
        ]

    def bag(self, sentences: Sequence[np.ndarray]) -> Bag:
        """The vectors float[n, D] of each sentence's words -> what is moved of their text.

        They may as well be contextual ones, of an encoder: every word is moved by itself.
        """
        sentences = [vectors.astype(np.float64) for vectors in sentences if len(vectors)]
        if not sentences:
            return Bag(np.zeros((0, self.vectors.matrix.shape[1])), np.zeros(0))
        lengths = np.array([len(vectors) for vectors in sentences])
        points, weights = [], []
        if self.variant != "sms":
            points += sentences
            weights.append(np.ones(lengths.sum()))
        if self.variant != "wms":
            points.append(np.stack([vectors.mean(axis=0) for vectors in sentences]))
            weights.append(lengths)
        joint = np.concatenate(weights)
        return Bag(np.concatenate(points), joint / joint.sum())

    def move(self, bags: Sequence[Bag], others: Sequence[Bag]) -> np.ndarray:
        """P pairs -> float[P, 4]: similarity, gap, 1 if a text has no known word, 1."""
        problems = [problem(*both) for both in zip(bags, others, strict=True)]
        value, lower = solve(problems, self.transport)
        known = is_known(problems)
        similarity, at_most = np.where(known, np.exp(-value), 0.0), np.where(known, np.exp(-lower), 0.0)
        return np.column_stack([similarity, at_most - similarity, ~known, np.ones(len(problems))])


def split_sentences(text: str, sentences: str = "punctuation") -> list[str]:
    """The sentences of a text; `sentences` as of `SMS`."""
    found = []
    for line in text.split("\n"):
        start = 0
        for border in _BORDER.finditer(line) if sentences == "punctuation" else ():
            if not line[border.end() : border.end() + 1].islower():
                found.append(line[start : border.end()])
                start = border.end()
        found.append(line[start:])
    return [sentence for sentence in found if sentence.strip()]
