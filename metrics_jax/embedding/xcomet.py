"""xCOMET (Guerreiro et al., 2024): a score of a translation, and the spans of its errors with their severities."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from metrics_jax.api import References, SourceMetric, check_sources, flatten, pair
from metrics_jax.embedding.comet import QualityEstimate, RowScorer, check_long
from metrics_jax.embedding.contextual import LearnedMetric
from metrics_jax.embedding.row_outputs import row_outputs

SEVERITIES = ("minor", "major", "critical")
PENALTIES = np.array([0, 1, 5, 10])  # of a span by its label; 0 is no error
MOST_PENALTY = 25
# Of the rows with the source, the reference, and both: in the score, and of the probabilities of labels. The last
# weight is that of the score by error spans (section 3.2).
SCORE_WEIGHTS = np.array([0.12, 0.33, 0.33, 0.22])
LABEL_WEIGHTS = np.array([0.1667, 0.3333, 0.5])


class ErrorSpan(NamedTuple):
    """An error in a hypothesis: characters [start, end), severity, and the mean probability of the labels."""

    start: int
    end: int
    severity: str
    confidence: float


@dataclasses.dataclass(frozen=True, eq=False)
class SpanScorer(RowScorer):
    """A RowScorer with labels: none, minor, major, critical.

    spans: texts -> the characters of each piece of their rows, int[S, 2]; they begin every row of `tokenize`.
    """

    spans: Callable[[Sequence[str]], list[np.ndarray]] = dataclasses.field(kw_only=True)


class _Read(NamedTuple):
    """What a model says of P pairs: scores float64[P], numbers of pieces int[P], and the labels of each piece."""

    scores: np.ndarray
    num_pieces: np.ndarray
    labels: list[np.ndarray]  # probabilities float64[S, 4] of the pieces of each hypothesis


def _read(scorer: SpanScorer, hypotheses: Sequence[str], *others: Sequence[str]) -> _Read:
    """Read rows of a hypothesis and other texts; labels are those of its pieces."""
    rows = scorer.tokenize(hypotheses, *others)
    found = row_outputs(scorer.outputs, [row.ids for row in rows], scorer.max_length)
    num_pieces = np.array([row.num_pieces for row in rows], int)
    lengths = [len(spans) for spans in scorer.spans(hypotheses)]
    labels = [np.asarray(output[:length, 1:], np.float64) for output, length in zip(found, lengths, strict=True)]
    return _Read(np.array([output[0, 0] for output in found], np.float64), num_pieces, labels)


def _error_spans(spans: np.ndarray, labels: np.ndarray) -> list[ErrorSpan]:
    """The spans of pieces int[S, 2] whose most probable label is an error.

    A span has the severity of its first piece. One that reaches the last piece is dropped, as in the published program.
    """
    best, found, start = labels.argmax(axis=1), [], None
    for piece, label in enumerate(best):
        if label and start is None:
            start = piece
        elif not label and start is not None:
            inside = slice(start, piece)
            confidence = float(labels[inside].max(axis=1).mean())
            severity = SEVERITIES[best[start] - 1]
            found.append(ErrorSpan(int(spans[start, 0]), int(spans[piece - 1, 1]), severity, confidence))
            start = None
    return found


def _by_spans(errors: Sequence[Sequence[ErrorSpan]]) -> np.ndarray:
    """Scores float64[P] from 0 to 1 by the penalties of error spans."""
    penalties = [sum(PENALTIES[1 + SEVERITIES.index(error.severity)] for error in group) for group in errors]
    return 1 - np.minimum(penalties, MOST_PENALTY) / MOST_PENALTY


@dataclasses.dataclass(frozen=True)
class XCOMET(LearnedMetric, SourceMetric):
    """The score of a translation, about 0 to 1, from three readings and from its error spans.

    The model reads the translation with its source, with the reference, and with both. The score is the weighted mean
    of the three scores, each at most 1, and of a score by error spans, 1 minus a 25th of their penalties: 1 if minor, 5
    if major, 10 if critical. The corpus score is the mean over segments. Several references and long texts as for
    COMET.
    """

    estimator: SpanScorer
    multi_reference: Literal["max", "mean"] = "max"
    long: Literal["truncate", "error"] = "truncate"

    name: ClassVar[str] = "xcomet"
    long_options: ClassVar[tuple[str, str]] = ("truncate", "error")

    def statistics(
        self, hypotheses: Sequence[str], references: References, sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """Returns float64[N, 3]: the score, whether a row was truncated, 1."""
        texts, owner = flatten(hypotheses, references)
        sources = check_sources(self.name, sources, hypotheses)
        candidates, others = pair(texts, owner)
        scores, num_pieces, errors = self._estimates(candidates, others, [sources[segment] for segment in owner])
        cut = check_long(self.long, num_pieces, owner, self.estimator.max_length)
        return self.segment_statistics(scores @ SCORE_WEIGHTS[:3] + SCORE_WEIGHTS[3] * _by_spans(errors), cut, owner)

    def error_spans(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str]
    ) -> list[list[ErrorSpan]]:
        """The errors in each of N hypotheses, each with one reference and its source."""
        flatten(hypotheses, references)
        return self._estimates(hypotheses, references, check_sources(self.name, sources, hypotheses))[2]

    def _estimates(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str]
    ) -> tuple[np.ndarray, np.ndarray, list[list[ErrorSpan]]]:
        """Scores float64[P, 3] of the three readings, the pieces of the longest one, int[P], and the errors."""
        others: tuple[tuple[Sequence[str], ...], ...] = (sources,), (references,), (sources, references)
        readings = [_read(self.estimator, hypotheses, *texts) for texts in others]
        weighted = [
            sum(weight * reading.labels[k] for weight, reading in zip(LABEL_WEIGHTS, readings, strict=True))
            for k in range(len(hypotheses))
        ]
        spans = self.estimator.spans(hypotheses)
        errors = [_error_spans(*both) for both in zip(spans, map(np.asarray, weighted), strict=True)]
        scores = np.minimum(np.column_stack([reading.scores for reading in readings]), 1)
        return scores, np.maximum.reduce([reading.num_pieces for reading in readings]), errors


@dataclasses.dataclass(frozen=True)
class XCOMETQE(QualityEstimate):
    """The score of xCOMET without a reference: that of the reading with the source, and that by its error spans."""

    estimator: SpanScorer
    long: Literal["truncate", "error"] = "truncate"

    name: ClassVar[str] = "xcometqe"

    def estimates(self, hypotheses: Sequence[str], sources: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        found = _read(self.estimator, hypotheses, sources)
        by_spans = _by_spans(self.error_spans(hypotheses, sources, found))
        weights = SCORE_WEIGHTS[:3].sum(), SCORE_WEIGHTS[3]
        return weights[0] * np.minimum(found.scores, 1) + weights[1] * by_spans, found.num_pieces

    def error_spans(
        self, hypotheses: Sequence[str], sources: Sequence[str], found: _Read | None = None
    ) -> list[list[ErrorSpan]]:
        """The errors in each of N hypotheses, each with its source."""
        labels = (found or _read(self.estimator, hypotheses, sources)).labels
        return [_error_spans(*both) for both in zip(self.estimator.spans(hypotheses), labels, strict=True)]
