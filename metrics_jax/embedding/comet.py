"""COMET (Rei et al., 2020): estimators, trained on human ratings, over vectors of a translation, source and reference.

Also its variants without a reference: COMET-QE over vectors of two texts, and CometKiwi (Rei et al., 2022), which reads
both texts as one row.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from metrics_jax.api import (
    IndexedSourceTexts,
    ReferenceFreeMetric,
    References,
    SourceMetric,
    check_sequences,
    check_sources,
    check_texts,
    flatten,
)
from metrics_jax.embedding.contextual import LearnedMetric, TextTooLongError
from metrics_jax.embedding.embedding_cache import EmbeddingCache
from metrics_jax.embedding.row_outputs import row_outputs

if TYPE_CHECKING:
    from jax import Array

BLOCK = 32  # rows per device of one call of the estimator; a fixed number, so that other rows change no bit


class TextRow(NamedTuple):
    """A tokenized text: ids int32[S], and the number of pieces that it had before truncation."""

    ids: np.ndarray
    num_pieces: int


@dataclasses.dataclass(frozen=True, eq=False)
class SentenceEstimator:
    """The interface between COMET and a trained model; any functions with these signatures will do.

    tokenize: texts -> rows with special tokens, of at most `max_length` pieces. embed: ids int[B, S], mask bool[B, S]
    (False: padding) -> vectors float32[B, 1, D], in JAX, or a generator, as for `row_outputs`. estimate: features
    float32[B, F] -> float32[B], in JAX. Both are a `jax.tree_util.Partial` whose arguments are the weights, and what
    they return for a row depends on that row only. fingerprint: SHA-256 of everything that changes the numbers. dtype:
    of the matrix products. cache: a folder that stores vectors, so that no text is encoded twice.
    """

    tokenize: Callable[[Sequence[str]], list[TextRow]]
    embed: Callable[[Array, Array], Any]
    estimate: Callable[[Array], Array]
    max_length: int
    fingerprint: str
    dtype: str = ""
    cache: str | os.PathLike[str] | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class RowScorer:
    """The interface between CometKiwi or xCOMET and a trained model; any functions with these signatures will do.

    tokenize: the first texts of all rows, the second ones, and so on -> rows of several texts, of at most `max_length`
    pieces. outputs: ids int[B, S], mask bool[B, S] -> float32[B, 1 or S, E], as for `row_outputs`; E is the score,
    and with labels the probabilities of the labels of each piece. fingerprint, dtype: as for SentenceEstimator.
    """

    tokenize: Callable[..., list[TextRow]]
    outputs: Callable[[Array, Array], Any]
    max_length: int
    fingerprint: str
    dtype: str = ""


@dataclasses.dataclass(frozen=True, eq=False)
class TextVectors:
    """The vectors float32[M, D] of M distinct texts, their numbers of pieces, int[M], and their rows by text."""

    vectors: np.ndarray
    num_pieces: np.ndarray
    row_of: dict[str, int]

    @classmethod
    def of(cls, estimator: SentenceEstimator, texts: Sequence[str]) -> TextVectors:
        """Encode each distinct text once. Raises ValueError if a vector is not finite."""
        row_of = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        rows = estimator.tokenize([*row_of])
        cache = EmbeddingCache(estimator.cache, estimator.fingerprint) if estimator.cache is not None else None
        found = row_outputs(estimator.embed, [row.ids for row in rows], estimator.max_length, "encoding", cache)
        return cls(np.concatenate(found), np.array([row.num_pieces for row in rows], int), row_of)

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """The rows int[N] of N texts."""
        return np.array([self.row_of[text] for text in texts], int)

    def estimates(self, estimator: SentenceEstimator, *rows: np.ndarray) -> np.ndarray:
        """The estimates float64[P] for P tuples of texts, by the rows int[P] of each of their members."""
        from metrics_jax.embedding import devices

        mesh = devices.local_mesh()
        size, place = BLOCK * mesh.size, devices.by_rows(mesh)
        estimate = devices.put_weights(estimator.estimate, mesh)
        count = len(rows[0])

        def start(first: int) -> Any:
            blocks = [np.zeros((size, self.vectors.shape[1]), np.float32) for _ in rows]
            for block, numbers in zip(blocks, rows, strict=True):
                chosen = numbers[first : first + size]
                block[: len(chosen)] = self.vectors[chosen]
            return _estimate()(estimate, *devices.put(tuple(blocks), place))

        found = np.zeros(count)
        for first, values in devices.overlapped(start, range(0, count, size)):
            found[first : first + size] = values[: count - first]
        if not np.isfinite(found).all():
            raise ValueError("a score is NaN or infinity: the weights of the estimator are damaged")
        return found


@functools.cache
def _estimate() -> Any:
    """The compiled function from an estimator and the vectors float[B, D] of a tuple of texts to float[B]."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def estimate(function: Any, translation: Array, *others: Array) -> Array:
        products = ((translation * other, jnp.abs(translation - other)) for other in others)
        parts = [translation, others[0], *itertools.chain.from_iterable(products)]
        return jnp.asarray(function(jnp.concatenate(parts, axis=-1)))

    return estimate


@dataclasses.dataclass(frozen=True)
class COMET(LearnedMetric, SourceMetric):
    """The estimate for a translation h of a source s beside a reference r; unbounded.

    A trained network reads h, r, h * r, |h - r|, h * s and |h - s| of their vectors (Rei et al., 2020, section 2.3).
    Each distinct text is encoded once. The unit is that of the ratings the model was trained on: wmt22-comet-da is
    about 0 to 1, wmt20-comet-da has z-scores. The corpus score is the mean over segments. An empty text is read like
    any other.

    multi_reference: the maximum ("max") or the mean of the estimates for several references; the published program
    accepts one reference only. long: a text that is too long for the encoder loses its end ("truncate") or raises
    TextTooLongError ("error").
    """

    estimator: SentenceEstimator
    multi_reference: Literal["max", "mean"] = "max"
    long: Literal["truncate", "error"] = "truncate"

    name: ClassVar[str] = "comet"
    long_options: ClassVar[tuple[str, str]] = ("truncate", "error")

    def statistics(
        self, hypotheses: Sequence[str], references: References, sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """Returns float64[N, 3]: the estimate, whether one of the texts was truncated, 1."""
        texts, owner = flatten(hypotheses, references)
        sources = check_sources(self.name, sources, hypotheses)
        vectors = TextVectors.of(self.estimator, [*texts, *sources])
        of_texts, of_sources = vectors.rows(texts), vectors.rows(sources)
        rows = of_texts[owner], of_texts[len(hypotheses) :], of_sources[owner]
        longest = np.maximum.reduce([vectors.num_pieces[numbers] for numbers in rows])
        cut = check_long(self.long, longest, owner, self.estimator.max_length)
        return self.segment_statistics(vectors.estimates(self.estimator, *rows), cut, owner)

    def pairwise(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """Scores float[H, R] of every hypothesis, with its source, against every reference; texts are encoded once."""
        check_sequences(hypotheses, references)
        sources = check_sources(self.name, sources, hypotheses)
        if not hypotheses or not references:
            return np.zeros((len(hypotheses), len(references)))
        texts = [*hypotheses, *references]
        indexed = self.index_texts(texts, [*sources, *[sources[0]] * len(references)])
        return indexed.pairwise(*np.split(np.arange(len(texts)), [len(hypotheses)]))

    def index_texts(self, texts: Sequence[str], sources: Sequence[str] | None = None) -> IndexedSourceTexts:
        sources = check_sources(self.name, sources, texts)
        return EncodedSourceTexts(self, texts, sources, TextVectors.of(self.estimator, [*texts, *sources]))


@dataclasses.dataclass(frozen=True, eq=False)
class EncodedSourceTexts(IndexedSourceTexts):
    """N texts with their sources, all encoded, for comparison with one another by COMET."""

    encoded: TextVectors

    def pairwise(self, hypotheses: np.ndarray, references: np.ndarray) -> np.ndarray:
        of_texts, of_sources = self.encoded.rows(self.texts), self.encoded.rows(self.sources)
        h, r = (numbers.ravel() for numbers in np.meshgrid(hypotheses, references, indexing="ij"))
        scores = self.encoded.estimates(self.metric.estimator, of_texts[h], of_texts[r], of_sources[h])
        return scores.reshape(len(hypotheses), len(references))


def check_long(long: str, num_pieces: np.ndarray, owner: np.ndarray, max_length: int) -> np.ndarray:
    """Return which rows of num_pieces int[R] are truncated, bool[R]; owner int[R]: their segments.

    Raises TextTooLongError for the first one if `long` is "error".
    """
    cut = num_pieces > max_length
    if long == "error" and cut.any():
        first = int(cut.argmax())
        raise TextTooLongError(
            int(owner[first]), f"an input of {num_pieces[first]} pieces", max_length, "long:truncate"
        )
    return cut


class QualityEstimate(LearnedMetric, ReferenceFreeMetric):
    """Base class of learned metrics without references; `long` as for COMET."""

    multi_reference = "max"
    long_options: ClassVar[tuple[str, str]] = ("truncate", "error")

    def statistics(
        self, hypotheses: Sequence[str], references: References | None = None, sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """Returns float64[N, 3]: the score, whether a text was truncated, 1. Raises ValueError without sources."""
        sources = check_sources(self.name, sources, hypotheses)
        check_texts(hypotheses, sources)
        scores, num_pieces = self.estimates(hypotheses, sources)
        cut = check_long(self.long, num_pieces, np.arange(len(scores)), self.max_length)
        return np.column_stack([scores, cut, np.ones(len(scores))]).astype(np.float64)

    def estimates(self, hypotheses: Sequence[str], sources: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Scores float[N] of N hypotheses, and the number of pieces of the longest row that was read, int[N]."""
        raise NotImplementedError

    @property
    def max_length(self) -> int:
        """The length of the longest row that the encoder reads, in pieces."""
        return int(self.estimator.max_length)  # type: ignore[attr-defined]


@dataclasses.dataclass(frozen=True)
class COMETQE(QualityEstimate):
    """The estimate for a translation h of a source s without a reference, from h, s, h * s and |h - s|; unbounded.

    The models wmt20-comet-qe-da and wmt21-comet-qe-mqm. See COMET.
    """

    estimator: SentenceEstimator
    long: Literal["truncate", "error"] = "truncate"

    name: ClassVar[str] = "cometqe"

    def estimates(self, hypotheses: Sequence[str], sources: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        vectors = TextVectors.of(self.estimator, [*hypotheses, *sources])
        rows = vectors.rows(hypotheses), vectors.rows(sources)
        longest = np.maximum.reduce([vectors.num_pieces[numbers] for numbers in rows])
        return vectors.estimates(self.estimator, *rows), longest


@dataclasses.dataclass(frozen=True)
class CometKiwi(QualityEstimate):
    """The estimate for a translation and its source, read as one row, without a reference (Rei et al., 2022).

    Scores of the published models are about 0 to 1. A row that is too long loses its end. See COMET.
    """

    estimator: RowScorer
    long: Literal["truncate", "error"] = "truncate"

    name: ClassVar[str] = "cometkiwi"

    def estimates(self, hypotheses: Sequence[str], sources: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        rows = self.estimator.tokenize(hypotheses, sources)
        found = row_outputs(self.estimator.outputs, [row.ids for row in rows], self.estimator.max_length)
        scores = np.array([output[0, 0] for output in found], np.float64)
        return scores, np.array([row.num_pieces for row in rows], int)
