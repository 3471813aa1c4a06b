"""The perplexity of texts under a language model, as a metric that needs no references."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

import numpy as np

from metrics_jax.api import AdditiveMetric, References, Result, check_sequences
from metrics_jax.prediction.perplexity import Perplexity

UNITS = ("piece", "word", "character")


@dataclasses.dataclass(frozen=True, eq=False)
class LanguageModel:
    """The interface between perplexity and a language model; any function with this signature will do.

    measure: N texts -> float64[N, 3]: the log-probability of each in nats, its end included, the number of pieces that
    the model predicted, and how many of them are unknown. The numbers of a text depend on that text only. fingerprint:
    SHA-256 of everything that changes the numbers. dtype: of the matrix products, if there are any.
    """

    measure: Callable[[Sequence[str]], np.ndarray]
    fingerprint: str
    dtype: str = ""


@dataclasses.dataclass(frozen=True)
class TextPerplexity(AdditiveMetric):
    """exp of the mean negative log-probability per unit under a language model; 1 and up, lower is better.

    It does not read references. The corpus score is that of the sums over segments: long texts weigh more. A text with
    a piece of probability 0 has perplexity inf.

    unit: "piece" of the model, its end of the text included; or "word" (separated by white space) or "character", with
    one for the end of each text, which allow comparisons of models with different vocabularies if no piece is unknown.
    """

    estimator: LanguageModel
    unit: Literal["piece", "word", "character"] = "piece"

    name: ClassVar[str] = "perplexity"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("hypotheses",)
    segments_per_call: ClassVar[int] = sys.maxsize

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"unit={self.unit!r} is none of {', '.join(UNITS)}")

    def statistics(self, hypotheses: Sequence[str], references: References | None = None) -> np.ndarray:
        """Returns float64[N, 3]: log-probability, number of units, number of unknown pieces; additive over segments."""
        if isinstance(hypotheses, str) or not all(isinstance(text, str) for text in hypotheses):
            raise TypeError("hypotheses must be a sequence of strings, one per segment")
        if not len(hypotheses):
            raise ValueError("no segments: an empty corpus has no score")
        different = list(dict.fromkeys(hypotheses))
        measured = dict(zip(different, self.estimator.measure(different), strict=True))
        table = np.array([measured[text] for text in hypotheses], np.float64)
        if np.isnan(table).any():
            raise ValueError("a log-probability is NaN: the weights of the model are damaged")
        if self.unit != "piece":
            parts = (text.split() if self.unit == "word" else text for text in hypotheses)
            table[:, 1] = [len(some) + 1 for some in parts]
        return table

    def score(self, statistics: np.ndarray) -> np.ndarray:
        return Perplexity().score(statistics[..., :2])

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """log_probability in nats, the number of units by their name, such as `pieces`, and that of unknown pieces."""
        return dict(zip(("log_probability", f"{self.unit}s", "unknown"), statistics.tolist(), strict=True))

    def pairwise(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Scores float[H, R]: the score of each hypothesis, the same for all references."""
        check_sequences(hypotheses, references)
        scores = self.score(self.statistics(hypotheses)) if hypotheses else np.zeros(0)
        return np.repeat(scores[:, None], len(references), axis=1)

    def __call__(
        self,
        hypotheses: Sequence[str],
        references: References | None = None,
        sources: Sequence[str] | None = None,
    ) -> Result:
        """Score a corpus; references are ignored. Raises ValueError if sources are given."""
        self.given_sources(sources)
        return self.result(self.statistics(hypotheses), [0] * len(hypotheses))
