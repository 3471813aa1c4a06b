"""Sentence Mover's Similarity (Clark et al., 2019)."""

import dataclasses
import itertools
import re
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.embedding.vectors import Vectors
from metrics_jax.embedding.wmd import Bag, MoverMetric, problem

VARIANTS = ("wms", "sms", "s+wms")
SENTENCES = ("punctuation", "lines")
_BOUNDARY = re.compile(r"""[.!?…]["'”’»)\]]*\s+(?=\S)|[。！？][」』”）]*""")


class SentenceMoverMetric(MoverMetric):
    """A metric that moves words, sentences, or both, with the fields of `SMS` that its docstring describes."""

    variant: str
    sentences: str

    def __post_init__(self) -> None:
        for option, known in (("variant", VARIANTS), ("sentences", SENTENCES)):
            if (value := getattr(self, option)) not in known:
                raise ValueError(f"{option}={value!r} is none of {', '.join(known)}")
        super().__post_init__()

    def score(self, statistics: np.ndarray) -> np.ndarray:
        return statistics[..., 0] / np.maximum(statistics[..., -1], 1)

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """gap: mean bound on the error of "sinkhorn"; missing: the number of segments without a known word."""
        return {"gap": float(statistics[1] / max(statistics[-1], 1)), "missing": float(statistics[2])}

    def bag(self, sentences: Sequence[np.ndarray], width: int) -> Bag:
        """The weighted vectors of a text from the word vectors float[n, D] of each of its sentences; width: D."""
        known = [vectors.astype(np.float64) for vectors in sentences if len(vectors)]
        if not known:
            return Bag(np.zeros((0, width)), np.zeros(0))
        lengths = np.array([len(vectors) for vectors in known])
        words = [] if self.variant == "sms" else known
        means = [] if self.variant == "wms" else [vectors.mean(axis=0, keepdims=True) for vectors in known]
        weights = np.concatenate([np.ones(sum(map(len, words))), lengths if means else ()])
        return Bag(np.concatenate([*words, *means]), weights / weights.sum())

    def move(self, bags: Sequence[Bag], others: Sequence[Bag]) -> np.ndarray:
        """Statistics float[P, 4] of P pairs: similarity, gap, 1 if a text has no known word, 1."""
        problems = [problem(*both) for both in zip(bags, others, strict=True)]
        value, lower, known = self.solved(problems)
        similarity, at_most = np.where(known, np.exp(-value), 0.0), np.where(known, np.exp(-lower), 0.0)
        return np.column_stack([similarity, at_most - similarity, ~known, np.ones(len(problems))])


@dataclasses.dataclass(frozen=True)
class SMS(SentenceMoverMetric):
    """Sentence Mover's Similarity, 0 to 1: exp(-d), where d is the optimal cost of moving one text onto the other.

    The cost is the Euclidean distance of the vectors. Only words that are made of letters, have a vector and are not
    stop words count. The similarity of a text without such words is 0. Of several references, the most similar one
    counts. The corpus score is the mean over segments.

    variant: "wms" moves words; "sms" moves sentences, whose vector is the mean of their word vectors and whose weight
    is their number of words; "s+wms" moves both with half of the weight each, and words may move onto sentences.
    vectors: see `vectors.Vectors`. sentences: split texts at line ends ("lines"), or also after . ! ? … if white space
    and no lower-case letter follows, and after 。！？ ("punctuation"). stop_words: words, or ("smart",) for the SMART
    list; the authors' program uses nltk's English list. The other options are those of `WMD`.
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

    def bags(self, texts: Sequence[str]) -> list[Bag]:
        split = [split_sentences(text, self.sentences) for text in texts]
        words = iter(self.known_words(list(itertools.chain.from_iterable(split))))
        vectors = (self.vectors.matrix[self.vectors.rows(some)] for some in words)
        width = self.vectors.matrix.shape[1]
        return [self.bag(list(itertools.islice(vectors, len(sentences))), width) for sentences in split]


def split_sentences(text: str, sentences: str = "punctuation") -> list[str]:
    """The sentences of a text; `sentences` as for `SMS`."""
    found = []
    for line in text.split("\n"):
        start = 0
        for boundary in _BOUNDARY.finditer(line) if sentences == "punctuation" else ():
            if not line[boundary.end() : boundary.end() + 1].islower():
                found.append(line[start : boundary.end()])
                start = boundary.end()
        found.append(line[start:])
    return [sentence for sentence in found if sentence.strip()]
