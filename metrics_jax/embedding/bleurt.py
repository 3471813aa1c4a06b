"""BLEURT (Sellam et al., 2020): an encoder, trained on human ratings, that scores a candidate beside its reference."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np

from metrics_jax.api import References, check_sequences, flatten, pair
from metrics_jax.embedding.contextual import LearnedMetric, TextTooLongError
from metrics_jax.embedding.row_outputs import row_outputs

if TYPE_CHECKING:
    from jax import Array

SEGMENT = 1 << 24  # added to the ids of the second text when a row is packed; larger than any vocabulary


class PairRow(NamedTuple):
    """A tokenized pair: ids and segments int32[S], and the number of pieces that the row had before truncation."""

    ids: np.ndarray
    segments: np.ndarray
    num_pieces: int


@dataclasses.dataclass(frozen=True, eq=False)
class PairScorer:
    """The interface between BLEURT and a trained model; any functions with these signatures will do.

    tokenize: P references and their P candidates -> P rows, [CLS] reference [SEP] candidate [SEP], of at most
    `max_length` pieces. A pair that is too long loses the last piece of its longer text, or of the candidate if both
    are equally long, until it fits. score: ids int[B, S], mask bool[B, S] (False: padding), segments int[B, S] ->
    float32[B], in JAX; a `jax.tree_util.Partial` whose arguments are the weights. The score of a row must depend on
    that row only. fingerprint: SHA-256 of everything that changes the numbers: weights, vocabulary, precision. dtype:
    of the matrix products, shown in signatures.
    """

    tokenize: Callable[[Sequence[str], Sequence[str]], list[PairRow]]
    score: Callable[[Array, Array, Array], Array]
    max_length: int
    fingerprint: str
    dtype: str = ""


@dataclasses.dataclass(frozen=True)
class BLEURT(LearnedMetric):
    """The score that a trained encoder gives to a candidate beside its reference; unbounded.

    The unit is that of the ratings the encoder was trained on. For the published checkpoints and for ours, it is their
    standard deviation, and 0 is their mean. The corpus score is the mean over segments. The encoder reads the reference
    and then the candidate as one row (section 3). An empty text is read like any other.

    multi_reference: the maximum ("max") or the mean of the scores of several references; the published program accepts
    one reference only. long: a pair that is too long for the encoder loses the end of its longer text ("truncate") or
    raises TextTooLongError ("error").
    """

    scorer: PairScorer
    multi_reference: Literal["max", "mean"] = "max"
    long: Literal["truncate", "error"] = "truncate"

    name: ClassVar[str] = "bleurt"
    long_options: ClassVar[tuple[str, str]] = ("truncate", "error")

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Returns float64[N, 3]: the score, whether the pair was truncated, 1."""
        texts, owner = flatten(hypotheses, references)
        candidates, others = pair(texts, owner)
        rows = self.scorer.tokenize(others, candidates)
        cut = np.array([row.num_pieces > self.scorer.max_length for row in rows])
        if self.long == "error" and cut.any():
            first = int(cut.argmax())
            length = f"{rows[first].num_pieces} pieces with its reference"
            raise TextTooLongError(int(owner[first]), length, self.scorer.max_length, "long:truncate")
        return self.segment_statistics(score_rows(self.scorer, rows), cut, owner)

    def pairwise(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Scores float[H, R] as for any metric, in one call; the encoder reads H R rows."""
        check_sequences(hypotheses, references)
        if not hypotheses or not references:
            return np.zeros((len(hypotheses), len(references)))
        candidates = [text for text in hypotheses for _ in references]
        values = self.score(self.statistics(candidates, list(references) * len(hypotheses)))
        return values.reshape(len(hypotheses), len(references))


def score_rows(scorer: PairScorer, rows: Sequence[PairRow]) -> np.ndarray:
    """The scores of P rows, float64[P]; a score is bit-identical whatever the other rows, and equal rows are read once.

    Raises ValueError if a score is not finite.
    """
    import jax

    packed = [(row.ids + SEGMENT * row.segments).astype(np.int32) for row in rows]
    partial = scorer.score if isinstance(scorer.score, jax.tree_util.Partial) else jax.tree_util.Partial(scorer.score)
    found = row_outputs(jax.tree_util.Partial(_score_packed, partial), packed, scorer.max_length)
    return np.array([output[0, 0] for output in found], np.float64)


def _score_packed(score: Callable[[Array, Array, Array], Array], packed: Array, mask: Array) -> Array:
    """Scores of packed rows int[B, S], float[B, 1, 1]."""
    return score(packed % SEGMENT, mask, packed // SEGMENT)[:, None, None]
