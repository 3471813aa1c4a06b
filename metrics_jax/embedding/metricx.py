"""MetricX (Juraska et al., 2023, 2024): the error score that a trained mT5 predicts for a translation."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from metrics_jax.api import References, SourceMetric, check_sources, flatten, pair
from metrics_jax.embedding.comet import QualityEstimate, RowScorer, check_long
from metrics_jax.embedding.contextual import LearnedMetric
from metrics_jax.embedding.row_outputs import row_outputs

WORST = 25  # MQM errors of the worst translation


def predictions(estimator: RowScorer, prompts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Error scores float64[P] from 0 to 25 of prompts, and their numbers of pieces, int[P]."""
    rows = estimator.tokenize(prompts)
    found = row_outputs(estimator.outputs, [row.ids for row in rows], estimator.max_length)
    scores = np.clip([output[0, 0] for output in found], 0, WORST).astype(np.float64)
    return scores, np.array([row.num_pieces for row in rows], int)


@dataclasses.dataclass(frozen=True)
class MetricX23(LearnedMetric):
    """The predicted MQM error score of a translation beside a reference, 0 (best) to 25.

    The model reads "candidate: … reference: …". The corpus score is the mean over segments.

    multi_reference: the least ("min") or the mean of the scores for several references; the published program accepts
    one. long: a prompt that is too long for the model loses its end ("truncate") or raises TextTooLongError ("error").
    """

    estimator: RowScorer
    multi_reference: Literal["min", "mean"] = "min"
    long: Literal["truncate", "error"] = "truncate"

    name: ClassVar[str] = "metricx23"
    higher_is_better: ClassVar[bool] = False
    long_options: ClassVar[tuple[str, str]] = ("truncate", "error")

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Returns float64[N, 3]: the score, whether the prompt was truncated, 1."""
        texts, owner = flatten(hypotheses, references)
        pairs = zip(*pair(texts, owner), strict=True)
        scores, num_pieces = predictions(self.estimator, [f"candidate: {h} reference: {r}" for h, r in pairs])
        cut = check_long(self.long, num_pieces, owner, self.estimator.max_length)
        return self.segment_statistics(scores, cut, owner)


@dataclasses.dataclass(frozen=True)
class MetricX24(LearnedMetric, SourceMetric):
    """The predicted MQM error score of a translation of a source beside a reference, 0 (best) to 25.

    The hybrid models of 2024 read "source: … candidate: … reference: …". Options as for MetricX23.
    """

    estimator: RowScorer
    multi_reference: Literal["min", "mean"] = "min"
    long: Literal["truncate", "error"] = "truncate"

    name: ClassVar[str] = "metricx24"
    higher_is_better: ClassVar[bool] = False
    long_options: ClassVar[tuple[str, str]] = ("truncate", "error")

    def statistics(
        self, hypotheses: Sequence[str], references: References, sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """Returns float64[N, 3]: the score, whether the prompt was truncated, 1."""
        texts, owner = flatten(hypotheses, references)
        sources = check_sources(self.name, sources, hypotheses)
        groups = zip((sources[segment] for segment in owner), *pair(texts, owner), strict=True)
        prompts = [f"source: {s} candidate: {h} reference: {r}" for s, h, r in groups]
        scores, num_pieces = predictions(self.estimator, prompts)
        cut = check_long(self.long, num_pieces, owner, self.estimator.max_length)
        return self.segment_statistics(scores, cut, owner)


class _QualityEstimate(QualityEstimate):
    """A model of MetricX that reads no reference; prompt: what it reads."""

    higher_is_better: ClassVar[bool] = False
    multi_reference = "min"
    prompt: ClassVar[str]
    estimator: RowScorer

    def estimates(self, hypotheses: Sequence[str], sources: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        pairs = zip(hypotheses, sources, strict=True)
        return predictions(self.estimator, [self.prompt.format(hypothesis=h, source=s) for h, s in pairs])


@dataclasses.dataclass(frozen=True)
class MetricX23QE(_QualityEstimate):
    """The error score that the models for quality estimation of 2023 predict from "candidate: … source: …"."""

    estimator: RowScorer
    long: Literal["truncate", "error"] = "truncate"

    name: ClassVar[str] = "metricx23qe"
    prompt: ClassVar[str] = "candidate: {hypothesis} source: {source}"


@dataclasses.dataclass(frozen=True)
class MetricX24QE(_QualityEstimate):
    """The error score that the hybrid models of 2024 predict without a reference, from "source: … candidate: …"."""

    estimator: RowScorer
    long: Literal["truncate", "error"] = "truncate"

    name: ClassVar[str] = "metricx24qe"
    prompt: ClassVar[str] = "source: {source} candidate: {hypothesis}"
