"""What every metric is: options in, additive statistics, a score, and a signature that says how it came about."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

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


def check_texts(hypotheses: Sequence[str], references: References) -> list[list[str]]:
    """-> the references of each of N >= 1 hypotheses, as a list of lists.

    ValueError for unequal lengths (both are named), no segments, or a segment without a reference; TypeError for a
    string where a sequence of strings is wanted, and for anything that is not text.
    """
    for what, texts in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(texts, str):
            raise TypeError(f"{what} must be a sequence of strings, one a segment, not a single string")
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses but {len(references)} references: one each, in the same order")
    if not len(hypotheses):
        raise ValueError("no segments: a corpus of no hypotheses has no score")
    grouped = [[group] if isinstance(group, str) else list(group) for group in references]
    for number, (hypothesis, group) in enumerate(zip(hypotheses, grouped, strict=True)):
        if not group:
            raise ValueError(f"segment {number} has no reference")
        if not all(isinstance(text, str) for text in (hypothesis, *group)):
            raise TypeError(f"segment {number}: hypothesis and references must be strings")
    return grouped
