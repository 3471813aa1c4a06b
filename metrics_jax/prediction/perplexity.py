"""How surprised a language model is by a text: perplexity, and bits per unit (Jelinek et al., 1977)."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.api import Result
from metrics_jax.signature import sign

Numbers = Sequence[float] | np.ndarray


@dataclasses.dataclass(frozen=True)
class Perplexity:
    """exp of the mean negative log-probability a token, pooled over segments; 1 (certainty) to infinity.

    Not averaged over segments: long ones weigh more. A text of no tokens leaves nothing to be surprised by and has
    perplexity 1; one with an impossible token, or a mean beyond e^709, has perplexity inf.
    """

    name: ClassVar[str] = "perplexity"
    higher_is_better: ClassVar[bool] = False

    def statistics(self, log_probabilities: Numbers, tokens: Numbers) -> np.ndarray:
        """Each segment's summed log-probability (nats) and number of predicted tokens -> float[N, 2], additive.

        Count what the model predicted: with an end-of-sentence symbol if its probability is in the sum. ValueError for
        unequal lengths, no segments, a log-probability above 0 or NaN, a negative count, or a sum over no tokens.
        """
        sums, counts = np.asarray(log_probabilities, np.float64), np.asarray(tokens, np.float64)
        if sums.ndim != 1 or counts.ndim != 1 or len(sums) != len(counts):
            raise ValueError(
                f"log-probabilities {sums.shape} and tokens {counts.shape} must be one number a segment each"
            )
        if not len(sums):
            raise ValueError("no segments: a corpus of no text has no perplexity")
        wrong = ~(sums <= 0) | ~((counts >= 0) & np.isfinite(counts)) | (counts == 0) & (sums != 0)
        if wrong.any():
            first = int(wrong.argmax())
            raise ValueError(
                f"segment {first}: no log-probability {sums[first]} of {counts[first]:g} tokens; sums are at most 0, "
                "0 for no tokens, and a loss is to be negated"
            )
        return np.stack([sums, counts], axis=-1)

    def score(self, statistics: np.ndarray) -> np.ndarray:
        """Summed statistics float[..., 2] -> perplexity float[...]."""
        with np.errstate(over="ignore"):
            return np.exp(_surprise(statistics))

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """log_probability (nats) and tokens, summed."""
        return {"log_probability": float(statistics[0]), "tokens": float(statistics[1])}

    @property
    def signature(self) -> str:
        """Name and version: there are no options, but tokens of different models cannot be compared."""
        return sign(self)

    def __call__(self, log_probabilities: Numbers, tokens: Numbers) -> Result:
        """Score a corpus; arguments and errors as `statistics`."""
        statistics = self.statistics(log_probabilities, tokens)
        total = statistics.sum(axis=0)
        return Result(float(self.score(total)), self.score(statistics), self.signature, self.parts(total))


@dataclasses.dataclass(frozen=True)
class BitsPerToken(Perplexity):
    """Mean negative log2-probability a token, 0 to infinity; bits per character if characters are counted as tokens.

    Per character (spaces and line ends included) it does not depend on the vocabulary: use it between models.
    """

    name: ClassVar[str] = "bits_per_token"

    def score(self, statistics: np.ndarray) -> np.ndarray:
        """Summed statistics float[..., 2] -> bits float[...]."""
        return _surprise(statistics) / np.log(2.0)


def _surprise(statistics: np.ndarray) -> np.ndarray:
    """Mean negative log-probability float[...], in nats; 0 for no tokens."""
    total, tokens = 0.0 - statistics[..., 0], statistics[..., 1]  # 0 - x, as -x would make a negative zero
    return np.divide(total, tokens, out=np.zeros_like(total), where=tokens > 0)
