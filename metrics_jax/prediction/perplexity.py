"""Perplexity, and bits per token, of a text under a language model (Jelinek et al., 1977)."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.api import Result
from metrics_jax.signature import sign

Numbers = Sequence[float] | np.ndarray


@dataclasses.dataclass(frozen=True)
class Perplexity:
    """exp of the mean negative log-probability per token, pooled over segments; from 1 (certainty) to infinity.

    It is not averaged over segments: long ones weigh more. A text without tokens has perplexity 1; a text with a token
    of probability 0, or with a mean above e^709, has perplexity inf.
    """

    name: ClassVar[str] = "perplexity"
    higher_is_better: ClassVar[bool] = False

    def statistics(self, log_probabilities: Numbers, tokens: Numbers) -> np.ndarray:
        """Statistics float[N, 2]: the summed log-probability (nats) and the number of predicted tokens of each segment.

        Count the tokens that the model predicted: include the end-of-sentence symbol if its probability is in the sum.
        Raises ValueError for unequal lengths, no segments, a log-probability above 0 or NaN, a negative count, or a
        nonzero sum over no tokens.
        """
        sums, counts = np.asarray(log_probabilities, np.float64), np.asarray(tokens, np.float64)
        if sums.ndim != 1 or counts.ndim != 1 or len(sums) != len(counts):
            raise ValueError(
                f"log-probabilities {sums.shape} and tokens {counts.shape} must both have one number per segment"
            )
        if not len(sums):
            raise ValueError("no segments: an empty corpus has no perplexity")
        wrong = ~(sums <= 0) | ~((counts >= 0) & np.isfinite(counts)) | (counts == 0) & (sums != 0)
        if wrong.any():
            first = int(wrong.argmax())
            raise ValueError(
                f"segment {first}: invalid log-probability {sums[first]} of {counts[first]:g} tokens: it must be at "
                "most 0, and 0 for no tokens (negate losses)"
            )
        return np.stack([sums, counts], axis=-1)

    def score(self, statistics: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.exp(_cross_entropy(statistics))

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        return {"log_probability": float(statistics[0]), "tokens": float(statistics[1])}

    @property
    def signature(self) -> str:
        """Name and version. There are no options, but perplexities over different vocabularies are not comparable."""
        return sign(self)

    def __call__(self, log_probabilities: Numbers, tokens: Numbers) -> Result:
        """Score a corpus; arguments and errors as in `statistics`."""
        statistics = self.statistics(log_probabilities, tokens)
        total = statistics.sum(axis=0)
        return Result(float(self.score(total)), self.score(statistics), self.signature, self.parts(total))


@dataclasses.dataclass(frozen=True)
class BitsPerToken(Perplexity):
    """Mean negative log2-probability per token, 0 to infinity.

    If characters (including spaces and line ends) are counted as tokens, these are bits per character, which do not
    depend on the vocabulary and allow comparisons between models.
    """

    name: ClassVar[str] = "bits_per_token"

    def score(self, statistics: np.ndarray) -> np.ndarray:
        return _cross_entropy(statistics) / np.log(2.0)


def _cross_entropy(statistics: np.ndarray) -> np.ndarray:
    """Mean negative log-probability float[...], in nats; 0 for no tokens."""
    total, tokens = 0.0 - statistics[..., 0], statistics[..., 1]  # 0 - x, since -x would be a negative zero
    return np.divide(total, tokens, out=np.zeros_like(total), where=tokens > 0)
