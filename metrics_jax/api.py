"""What every metric is: options in, additive statistics, a score, and a signature that says how it came about."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence, Sized
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from metrics_jax.signature import sign

References = Sequence[str | Sequence[str]]


@dataclasses.dataclass(frozen=True)
class Result:
    """The score of a corpus on the reference program's scale, and what it was made of.

    segments: float[N], each segment's own score. signature: every option that changes the number. parts: named
    ingredients such as precisions or the brevity penalty.
    """

    score: float
    segments: np.ndarray
    signature: str
    parts: Mapping[str, float | np.ndarray]


class Metric(Protocol):
    """A frozen dataclass whose fields are the metric's options, named as the reference program names them."""

    @property
    def name(self) -> str:
        """Short name: "bleu"."""

    @property
    def higher_is_better(self) -> bool:
        """False for error rates."""

    @property
    def signature(self) -> str:
        """Every option that changes the number, `key:value` joined by `|`."""

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """-> float[N, K], additive over segments."""

    def score(self, statistics: np.ndarray) -> np.ndarray:
        """Summed statistics float[..., K] -> float[...]."""

    def __call__(
        self, hypotheses: Sequence[str], references: References, sources: Sequence[str] | None = None
    ) -> Result:
        """Score a corpus."""


class AdditiveMetric:
    """The doors of `Metric` for a frozen dataclass that says how segments are counted and how sums become a score.

    A metric whose corpus score is the mean over segments counts (value, ..., 1).
    """

    name: ClassVar[str]
    higher_is_better: ClassVar[bool] = True
    at_once: ClassVar[int] = 200  # segments that `statistics` is best given at a time

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """-> float[N, K], additive over segments; errors as `check_texts`."""
        raise NotImplementedError

    def score(self, statistics: np.ndarray) -> np.ndarray:
        """Summed statistics float[..., K] -> float[...]."""
        raise NotImplementedError

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """Summed statistics float[K] -> the named ingredients of their score."""
        raise NotImplementedError

    @property
    def signature(self) -> str:
        """Every option, `key:value` joined by `|`; `metrics_jax.parse` reads it."""
        return sign(self)

    def fitted(self, references: References) -> Self:
        """This metric with all that it learns from a collection of references frozen; most learn nothing."""
        return self

    def __call__(
        self, hypotheses: Sequence[str], references: References, sources: Sequence[str] | None = None
    ) -> Result:
        """Score a corpus; `references[i]`, a string or several, belong to `hypotheses[i]`; sources do not matter."""
        grouped = check_texts(hypotheses, references)
        return self.result(self.statistics(hypotheses, grouped), [len(group) for group in grouped])

    def result(self, statistics: np.ndarray, num_references: Sequence[int]) -> Result:
        """Statistics float[N, K] of segments with so many references each -> the corpus's result.

        Its signature also says how many references a segment had (`nrefs`, `var` if that varied).
        """
        total = statistics.sum(axis=0)
        counts = set(num_references)
        return Result(
            score=float(self.score(total)),
            segments=self.score(statistics),
            signature=sign(self, nrefs=counts.pop() if len(counts) == 1 else "var"),
            parts=self.parts(total),
        )

    def pairwise(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """-> float[H, R], the score of every hypothesis against every single reference."""
        check_sequences(hypotheses, references)
        rows = [self.score(self.statistics([text] * len(references), references)) for text in hypotheses]
        return np.array(rows).reshape(len(hypotheses), len(references))

    def among(self, texts: Sequence[str]) -> "Texts":
        """N texts, to be compared with one another."""
        return Texts(self, texts)


@dataclasses.dataclass(frozen=True, eq=False)
class Texts:
    """N texts that a metric compares with one another, by their numbers; it reads them once if that is what takes time.

    aggregated: for metrics that have it.
    """

    metric: Any
    texts: Sequence[str]

    def fitted(self, references: np.ndarray) -> Self:
        """With all that the metric learns from references int[R] frozen; nothing is read again."""
        metric = self.metric.fitted([self.texts[k] for k in references])
        return self if metric is self.metric else dataclasses.replace(self, metric=metric)

    def pairwise(self, hypotheses: np.ndarray, references: np.ndarray) -> np.ndarray:
        """int[H] and int[R] -> float[H, R], as the metric's."""
        return self.metric.pairwise([self.texts[k] for k in hypotheses], [self.texts[k] for k in references])

    def aggregated(self, hypotheses: np.ndarray, references: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """int[H], int[R] and their weights float[R] -> float[H], as the metric's."""
        sides = ([self.texts[k] for k in side] for side in (hypotheses, references))
        return self.metric.aggregated(*sides, weights)


def check_sequences(hypotheses: Sequence[str], references: References) -> None:
    """TypeError for a string where a sequence of strings is wanted."""
    for what, texts in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(texts, str):
            raise TypeError(f"{what} must be a sequence of strings, one a segment, not a single string")


def check_lengths(hypotheses: Sized, references: Sized) -> None:
    """Raise ValueError unless there are as many references as hypotheses."""
    if len(hypotheses) != len(references):
        raise ValueError(
            f"{len(hypotheses)} hypotheses but {len(references)} references: "
            "there must be one for each hypothesis, in the same order"
        )


def check_texts(hypotheses: Sequence[str], references: References) -> list[list[str]]:
    """-> the references of each of N >= 1 hypotheses, as a list of lists.

    ValueError for unequal lengths (both are named), no segments, or a segment without a reference; TypeError for a
    string where a sequence of strings is wanted, and for anything that is not text.
    """
    check_sequences(hypotheses, references)
    check_lengths(hypotheses, references)
    if not len(hypotheses):
        raise ValueError("no segments: a corpus of no hypotheses has no score")
    grouped = [[group] if isinstance(group, str) else list(group) for group in references]
    if all(grouped) and {*map(type, hypotheses), *map(type, itertools.chain.from_iterable(grouped))} == {str}:
        return grouped
    for number, (hypothesis, group) in enumerate(zip(hypotheses, grouped, strict=True)):  # what is wrong, and where?
        if not group:
            raise ValueError(f"segment {number} has no reference")
        if not all(isinstance(text, str) for text in (hypothesis, *group)):
            raise TypeError(f"segment {number}: hypothesis and references must be strings")
    return grouped
