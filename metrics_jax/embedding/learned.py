"""The common part of metrics that a model has learned from human ratings."""

from __future__ import annotations

import sys
from typing import ClassVar

import numpy as np

from metrics_jax.api import AdditiveMetric, starts


class LearnedMetric(AdditiveMetric):
    """A metric whose segment scores are the outputs of a trained model; its statistics are (score, too long, 1).

    Subclasses are dataclasses with the fields multi_reference, "max" or "mean", and long, one of `long_options`.
    """

    multi_reference: str
    long: str

    long_options: ClassVar[tuple[str, str]]
    segments_per_call: ClassVar[int] = sys.maxsize  # batches are fuller, and equal texts are encoded once

    def __post_init__(self) -> None:
        if self.multi_reference not in ("max", "mean"):
            raise ValueError(f"multi_reference={self.multi_reference!r}: choose max or mean")
        if self.long not in self.long_options:
            raise ValueError(f"long={self.long!r}: choose {' or '.join(self.long_options)}")

    def segment_statistics(self, scores: np.ndarray, too_long: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """Statistics float64[N, 3] from float[R] scores and bool[R] of all references; owner int[R]: their segments."""
        first = starts(owner)
        if self.multi_reference == "max":
            combined = np.maximum.reduceat(scores, first)
        else:
            combined = np.add.reduceat(scores, first) / np.bincount(owner)
        cut = np.maximum.reduceat(too_long, first)
        return np.column_stack([combined, cut, np.ones(len(combined))]).astype(np.float64)

    def score(self, statistics: np.ndarray) -> np.ndarray:
        """The mean over segments, float[...], of summed statistics float[..., 3]."""
        return statistics[..., 0] / statistics[..., -1]

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """long: the number of segments with a text too long for the model."""
        return {"long": float(statistics[1])}
