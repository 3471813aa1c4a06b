"""BLEURT (Sellam et al., 2020): how good a text is, by an encoder that was trained on what people said of others."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np

from metrics_jax.api import AdditiveMetric, References, check_sequences
from metrics_jax.embedding.contextual import TextTooLongError
from metrics_jax.embedding.encoder import progress
from metrics_jax.embedding.forward import Forward
from metrics_jax.references import flatten, pair, starts

if TYPE_CHECKING:
    from jax import Array

SEGMENT = 1 << 24  # in a row a piece of the second text is its id plus this: more than any vocabulary has


class PairRow(NamedTuple):
    """What a pair becomes: ids and segments int32[S], and how many pieces its row would have had, were it not cut."""

    ids: np.ndarray
    segments: np.ndarray
    num_pieces: int


@dataclasses.dataclass(frozen=True, eq=False)
class PairScorer:
    """What BLEURT reads pairs with; any functions of these types make one.

    tokenize: P references and their P candidates -> P rows, [CLS] reference [SEP] candidate [SEP], of at most
    `max_length` pieces: of a longer one the longer text loses its last piece, the candidate of two equally long, until
    it fits. score: ids int[B, S], mask bool[B, S] (False: padding), segments int[B, S] -> float32[B], in JAX; a
    `jax.tree_util.Partial` whose arguments are the weights; a row's score depends on that row only. fingerprint:
    SHA-256 of all that changes the numbers: weights, vocabulary, precision. dtype: of its products, for signatures.
    """

    tokenize: Callable[[Sequence[str], Sequence[str]], list[PairRow]]
    score: Callable[[Array, Array, Array], Array]
    max_length: int
    fingerprint: str
    dtype: str = ""


class PairTooLongError(TextTooLongError):
    """A pair that the encoder cannot read at once, where long="error"."""

    def __init__(self, segment: int, num_pieces: int, max_length: int) -> None:
        self.segment = segment
        self.problem = f"too long: both have {num_pieces} pieces, the encoder takes {max_length}: choose long:truncate"
        ValueError.__init__(self, f"segment {segment}, with its reference, is {self.problem}")


@dataclasses.dataclass(frozen=True)
class BLEURT(AdditiveMetric):
    """What a trained encoder says of a candidate beside its reference; without bounds.

    The unit is that of the ratings which the encoder was trained on: for the published checkpoints and for ours a
    standard deviation of them, 0 being their mean. The corpus score is the mean over segments.

    Reference and candidate are read together, the reference first (section 3). Several references: the largest of their
    scores ("max"), or the mean; the published program has one reference only. An empty text is read like any other.
    long: of a pair that is longer than the encoder reads, the longer text loses its end ("truncate"), or it is an
    error.
    """

    scorer: PairScorer
    multi_reference: Literal["max", "mean"] = "max"
    long: Literal["truncate", "error"] = "truncate"

    name: ClassVar[str] = "bleurt"
    at_once: ClassVar[int] = sys.maxsize  # segments: the more come together, the fuller are the batches

    def __post_init__(self) -> None:
        if self.multi_reference not in ("max", "mean"):
            raise ValueError(f"multi_reference={self.multi_reference!r} is neither max nor mean")
        if self.long not in ("truncate", "error"):
            raise ValueError(f"long={self.long!r} is neither truncate nor error")

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """-> float[N, 3]: the score, whether it was cut, 1."""
        texts, owner = flatten(hypotheses, references)
        candidates, others = pair(texts, owner)
        rows = self.scorer.tokenize(others, candidates)
        cut = np.array([row.num_pieces > self.scorer.max_length for row in rows])
        if self.long == "error" and cut.any():
            first = int(cut.argmax())
            raise PairTooLongError(int(owner[first]), rows[first].num_pieces, self.scorer.max_length)
        scores = over_references(score_rows(self.scorer, rows), owner, self.multi_reference)
        cuts = np.maximum.reduceat(cut, starts(owner))
        return np.column_stack([scores, cuts, np.ones(len(scores))]).astype(np.float64)

    def score(self, statistics: np.ndarray) -> np.ndarray:
        """Summed statistics float[..., 3] -> the mean over segments float[...]."""
        return statistics[..., 0] / statistics[..., -1]

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """long: the number of segments that were cut."""
        return {"long": float(statistics[1])}

    def pairwise(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """-> float[H, R], the score of every hypothesis against every single reference; H R rows are read."""
        check_sequences(hypotheses, references)
        if not hypotheses or not references:
            return np.zeros((len(hypotheses), len(references)))
        candidates = [text for text in hypotheses for _ in references]
        values = self.score(self.statistics(candidates, list(references) * len(hypotheses)))
        return values.reshape(len(hypotheses), len(references))


def over_references(scores: np.ndarray, owner: np.ndarray, multi_reference: str) -> np.ndarray:
    """Scores float[R] of references, owner int[R] -> float[N]: the largest of each segment's, or their mean."""
    if multi_reference == "max":
        return np.maximum.reduceat(scores, starts(owner))
    return np.add.reduceat(scores, starts(owner)) / np.bincount(owner)


def score_rows(scorer: PairScorer, rows: Sequence[PairRow]) -> np.ndarray:
    """P rows -> float64[P]; equal rows are read once, and a score does not depend, to the bit, on the other rows.

    ValueError for scores that are not numbers.
    """
    import jax

    packed = [(row.ids + SEGMENT * row.segments).astype(np.int32) for row in rows]
    numbers: dict[bytes, int] = {}
    distinct = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in packed], int)
    todo = [packed[first] for first in np.unique(distinct, return_index=True)[1]]
    partial = scorer.score if isinstance(scorer.score, jax.tree_util.Partial) else jax.tree_util.Partial(scorer.score)
    embed = jax.tree_util.Partial(_score_packed, partial)
    forward = Forward(embed, (0,), "concatenate", normalize=False, max_length=scorer.max_length)
    found = np.zeros(len(todo))
    with progress("scoring", sum(map(len, todo))) as advance:
        for number, value in forward(todo, None):
            found[number] = value[0, 0]
            advance(len(todo[number]))
    if not np.isfinite(found).all():
        raise ValueError("a score is NaN or infinity: the weights of the pair scorer are damaged")
    return found[distinct]


def _score_packed(score: Callable[[Array, Array, Array], Array], packed: Array, mask: Array) -> Array:
    """Rows int[B, S] of ids and segments -> the form of an encoder's states, float[1, B, 1, 1]."""
    return score(packed % SEGMENT, mask, packed // SEGMENT)[None, :, None, None]
