"""The common part of metrics that compare contextual token vectors: batching of texts, and segment statistics."""

import dataclasses
import functools
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from metrics_jax.api import AdditiveMetric, IndexedTexts, References, Result, check_sequences, check_texts
from metrics_jax.embedding.encoder import LONG, Encoded, Encoder, encode, progress, tokenized, truncated
from metrics_jax.embedding.forward import bucket
from metrics_jax.embedding.idf import Idf
from metrics_jax.references import best, flatten, pair

IdfMode = Literal["uniform", "references"]
LongText = Literal["error", "truncate", "window"]

SPAN_BYTES = 2**20  # bytes of text encoded at a time, about 250,000 tokens whose vectors are in memory together
BATCH_TOKENS = 4096  # per side of one batch
_TINY = 1e-30  # keeps zero vectors at zero instead of dividing by zero


class Side(NamedTuple):
    """The tokens of one or B texts: vectors [..., S, E], weights [..., S], real bool[..., S] (False: padding)."""

    vectors: Any  # np.ndarray or jax.Array
    weights: Any
    real: Any


@dataclasses.dataclass(frozen=True, eq=False)
class Units:
    """The tokens of N texts that a metric compares; those of text n are `rows[starts[n]:][:lengths[n]]` of the table.

    The table has vectors float32[R, E], ids int[R] and words bool[R], which marks tokens that have weight. weigh: ids
    int[B, S] and a mask bool[B, S] of those with weight -> weights float64[B, S].
    """

    vectors: np.ndarray
    ids: np.ndarray
    words: np.ndarray
    rows: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    weigh: Callable[[np.ndarray, np.ndarray], np.ndarray]

    @classmethod
    def of(cls, encoded: Encoded, kept: np.ndarray, words: np.ndarray, idf: Idf | None) -> "Units":
        """The tokens selected by kept bool[R], of which words bool[R] have weight.

        Raises ValueError if a vector is not finite.
        """
        if not np.isfinite(encoded.vectors.sum()):
            raise ValueError("the encoder's vectors contain NaN or infinity: its weights are damaged")
        before = np.concatenate([[0], np.cumsum(kept)])
        starts = before[encoded.starts]
        lengths = before[encoded.starts + encoded.lengths] - starts
        weigh = idf.weights if idf else lambda ids, mask: mask.astype(np.float64)
        return cls(encoded.vectors, encoded.ids, words, np.flatnonzero(kept), starts, lengths, weigh)

    def padded(self, texts: np.ndarray, size: int, length: int) -> Side:
        """A batch of shape [size, length] with at most `size` texts of at most `length` tokens each."""
        places, real = np.arange(length)[None], np.zeros((size, length), bool)
        real[: len(texts)] = places < self.lengths[texts, None]
        if not real.any():
            return Side(np.zeros((*real.shape, self.vectors.shape[1]), np.float32), np.zeros(real.shape), real)
        # Padding repeats some real token: it is never read, so it need not be filled with zeros.
        starts = np.zeros((size, 1), int)
        starts[: len(texts), 0] = self.starts[texts]
        rows = self.rows[np.where(real, starts + places, 0)]
        weights, some = np.zeros(real.shape), slice(len(texts))
        weights[some] = self.weigh(self.ids[rows[some]], (real & self.words[rows])[some])
        return Side(self.vectors[rows], weights, real)

    def means(self, texts: np.ndarray) -> np.ndarray:
        """The weighted mean of each text's tokens, scaled to length 1: float64[N, E]; 0 for a text without tokens."""
        means = np.zeros((len(texts), self.vectors.shape[1]))
        for mean, text in zip(means, texts, strict=True):
            rows = self.rows[self.starts[text] :][: self.lengths[text]]
            mean += self.weigh(self.ids[rows][None], self.words[rows][None])[0] @ self.vectors[rows]
        return means / np.maximum(np.linalg.norm(means, axis=-1, keepdims=True), _TINY)


class TextTooLongError(ValueError):
    """Raised with long="error" for a text of a `segment` that exceeds the encoder's maximum length."""

    def __init__(self, segment: int, num_tokens: int, max_length: int) -> None:
        self.segment = segment
        self.problem = (
            f"a text of {num_tokens} tokens, but the encoder reads at most {max_length}: "
            "choose long:truncate or long:window"
        )
        super().__init__(f"segment {segment} has {self.problem}")


class ContextualMetric(AdditiveMetric):
    """A metric that scores one pair of texts at a time by their token vectors; the corpus score is the mean.

    Subclasses are dataclasses with at least these fields. encoder: makes the token vectors. idf: the token weights;
    "uniform", a fitted `Idf`, or "references", which counts frequencies in the references of each call, so that the
    score of a segment depends on the references of the others (`fitted` freezes them). long: the treatment of texts
    that exceed the encoder's `max_length`, see `encode`. White space around a text is ignored.
    """

    encoder: Encoder
    idf: Idf | IdfMode
    long: str

    segments_per_call: ClassVar[int] = sys.maxsize  # segments: a text that occurs several times is encoded once
    idf_form: ClassVar[str] = "bertscore"
    columns: ClassVar[tuple[str, ...]]  # the values computed for a pair; the score is the first

    def __post_init__(self) -> None:
        if self.long not in LONG:
            raise ValueError(f"long={self.long!r} is none of {', '.join(LONG)}")
        if not isinstance(self.idf, Idf) and self.idf not in ("uniform", "references"):
            raise ValueError(f"idf={self.idf!r}: choose uniform, references, or frequencies counted by Idf.fit")

    def compare(self, x: Side, y: Side, pairwise: bool) -> np.ndarray:
        """Values float64[B, C] of B hypotheses x and B references y; with `pairwise`, [H, R, C] of H and R texts."""
        raise NotImplementedError

    def units(self, encoded: Encoded, idf: Idf | None) -> Units:
        """The tokens that take part in the comparison."""
        raise NotImplementedError

    def encoded(self, texts: Sequence[str]) -> Encoded:
        """The token vectors of N texts; by default those of the metric's `layer`."""
        return encode(self.encoder, texts, (self.layer,), long=self.long)  # type: ignore[attr-defined]

    def over_references(self, values: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """Values of the segments float64[N, C] from those of all references float64[R, C]; owner int[R]: the segments.

        By default those of the reference with the highest score, the first one if scores are equal.
        """
        return values[best(values[:, 0], owner)]

    @property
    def hypothesis_weights(self) -> Idf | None:
        """Weights of the hypotheses' tokens; None means uniform."""
        return self.idf if isinstance(self.idf, Idf) else None

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Returns float64[N, C + 2]: the score, the other columns, whether a text was too long for the encoder, 1."""
        texts, owner = flatten(hypotheses, references)
        texts = [text.strip() for text in texts]
        if self.long == "error":
            segments = np.concatenate([np.arange(len(hypotheses)), owner])
            for segment, (ids, _) in zip(segments, self._tokens(texts), strict=True):
                if len(ids) > self.encoder.max_length:
                    raise TextTooLongError(int(segment), len(ids), self.encoder.max_length)
        metric = self.fitted(references)
        values, long = metric.score_pairs(*pair(texts, owner))
        scores = self.over_references(values, owner)
        too_long = np.bincount(owner, weights=long) > 0
        if self.long == "truncate" and too_long.any():
            warnings.warn(
                f"{too_long.sum()} of {len(scores)} segments were truncated to the encoder's maximum length of "
                f"{self.encoder.max_length} tokens; long:window reads them to the end",
                stacklevel=2,
            )
        return np.column_stack([scores, too_long, np.ones(len(scores))]).astype(np.float64)

    def score_pairs(self, hypotheses: Sequence[str], references: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Values float64[P, C] of P pairs, and whether a text of each was too long, bool[P]."""
        values = np.zeros((len(hypotheses), len(self.columns)))
        long = np.zeros(len(hypotheses), bool)
        for span in spans(hypotheses, references, SPAN_BYTES):
            encoded = self.encoded([hypotheses[k] for k in span] + [references[k] for k in span])
            left, right = np.arange(len(span)), np.arange(len(span), 2 * len(span))
            long[span] = encoded.long[left] | encoded.long[right]
            compare = functools.partial(self.compare, pairwise=False)
            values[span] = compare_pairs(*self._sides(encoded), left, right, compare, len(self.columns))
        return values, long

    def pairwise(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """The score of every hypothesis against every single reference, float[H, R]; each text is encoded once."""
        check_sequences(hypotheses, references)
        if not hypotheses or not references:
            return np.zeros((len(hypotheses), len(references)))
        left, right = np.split(np.arange(len(hypotheses) + len(references)), [len(hypotheses)])
        return self.index_texts([*hypotheses, *references]).fitted(right).pairwise(left, right)

    def aggregated(self, hypotheses: Sequence[str], references: Sequence[str], weights: np.ndarray) -> np.ndarray:
        """The cosine of each hypothesis vector with the weighted mean of the reference vectors, float[H]; weights [R].

        The vector of a text is the weighted mean of its token vectors, scaled to length 1, or 0 if it has no tokens.
        This is not the metric itself, but ranks texts similarly with one comparison each (Vamvas and Sennrich, 2024).
        """
        check_sequences(hypotheses, references)
        left, right = np.split(np.arange(len(hypotheses) + len(references)), [len(hypotheses)])
        return self.index_texts([*hypotheses, *references]).fitted(right).aggregated(left, right, weights)

    def index_texts(self, texts: Sequence[str]) -> "EncodedTexts":
        """N texts, each encoded once, for comparison with one another."""
        stripped = [text.strip() for text in texts]
        return EncodedTexts(self, stripped, self.encoded(stripped))

    def _sides(self, encoded: Encoded) -> tuple[Units, Units]:
        """The units of the texts as hypotheses, and as references."""
        y = self.units(encoded, self.idf if isinstance(self.idf, Idf) else None)
        return (self.units(encoded, self.hypothesis_weights) if self.hypothesis_weights is not self.idf else y), y

    def score(self, statistics: np.ndarray) -> np.ndarray:
        """The mean over segments, float[...], of summed statistics float[..., K]."""
        return statistics[..., 0] / statistics[..., -1]

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """The mean of each column by name, and long: the number of segments with a text too long for the encoder."""
        means = statistics[: len(self.columns)] / statistics[-1]
        return {**dict(zip(self.columns, means.tolist(), strict=True)), "long": float(statistics[-2])}

    def fitted(self, references: References) -> Self:
        """This metric with idf="references" counted; each reference is one document, special tokens included."""
        if isinstance(self.idf, Idf) or self.idf != "references":
            return self
        texts = [text for group in references for text in ([group] if isinstance(group, str) else group)]
        return dataclasses.replace(self, idf=self.count(texts))  # type: ignore[type-var]

    def count(self, texts: Sequence[str]) -> Idf:
        """Document frequencies of the encoder's tokens in these texts, with this metric's form of idf."""
        return Idf.fit((ids for ids, _ in self._tokens([text.strip() for text in texts])), self.idf_form)

    def _tokens(self, texts: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Ids int[S] and special bool[S] of every text, truncated if `long` says so."""
        for ids, special in tokenized(self.encoder, texts):
            yield truncated(ids, special, self.encoder.max_length) if self.long == "truncate" else (ids, special)

    def __call__(
        self, hypotheses: Sequence[str], references: References, sources: Sequence[str] | None = None
    ) -> Result:
        """Score a corpus; `references[i]`, one string or several, belong to `hypotheses[i]`; sources are ignored.

        The signature of the result contains the fingerprint of the idf counted in the references.
        """
        grouped = check_texts(hypotheses, references)
        metric = self.fitted(grouped)
        return metric.result(metric.statistics(hypotheses, grouped), [len(group) for group in grouped])


@dataclasses.dataclass(frozen=True, eq=False)
class EncodedTexts(IndexedTexts):
    """N texts and their token vectors, for comparison with one another by a `ContextualMetric`."""

    encoded: Encoded

    @functools.cached_property
    def _sides(self) -> tuple[Units, Units]:
        return self.metric._sides(self.encoded)

    def pairwise(self, hypotheses: np.ndarray, references: np.ndarray) -> np.ndarray:
        """The metric's `pairwise`, float[H, R], of texts given by number: int[H] and int[R]."""
        x, y = self._sides
        scores = np.zeros((len(hypotheses), len(references)))
        for left in tiles(x.lengths[hypotheses]):
            for right in tiles(y.lengths[references]):
                sides = x.padded(hypotheses[left.texts], *left[1:]), y.padded(references[right.texts], *right[1:])
                values = self.metric.compare(*sides, pairwise=True)
                scores[np.ix_(left.texts, right.texts)] = values[: len(left.texts), : len(right.texts), 0]
        return scores

    def aggregated(self, hypotheses: np.ndarray, references: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The metric's `aggregated`, float[H], of texts given by number: int[H] and int[R] with weights float[R]."""
        x, y = self._sides
        centroid = weights @ y.means(references)
        return x.means(hypotheses) @ centroid / max(float(np.linalg.norm(centroid)), _TINY)


def spans(hypotheses: Sequence[str], references: Sequence[str], size: int) -> list[np.ndarray]:
    """Groups of pairs with about `size` bytes of text each, sorted by reference; equal references are adjacent."""
    order = np.array(sorted(range(len(references)), key=lambda k: (len(references[k]), references[k])), int)
    sizes = [len(text.encode("utf-8", "replace")) for k in order for text in (hypotheses[k], references[k])]
    ends = np.cumsum(np.reshape(sizes, (-1, 2)).sum(axis=1))
    return np.split(order, np.flatnonzero(np.diff(ends // size)) + 1)


def compare_pairs(
    x: Units,
    y: Units,
    left: np.ndarray,
    right: np.ndarray,
    compare: Callable[[Side, Side], np.ndarray],
    num_columns: int,
) -> np.ndarray:
    """Values float64[P, C] of text `left[p]` of x and `right[p]` of y; batch shapes depend on text lengths only."""
    values = np.zeros((len(left), num_columns))
    longest = np.maximum(x.lengths[left], y.lengths[right])
    # Fewer lengths than for encoding: here, compiling another program costs more than padding.
    lengths = np.array([bucket(max(int(length), 1), steps=2) for length in longest], int)
    with progress("comparing", len(left)) as advance:
        for length in np.unique(lengths)[::-1].tolist():
            numbers = np.flatnonzero(lengths == length)
            size = _batch_size(length)
            for first in range(0, len(numbers), size):
                chosen = numbers[first : first + size]
                sides = x.padded(left[chosen], size, length), y.padded(right[chosen], size, length)
                values[chosen] = compare(*sides)[: len(chosen)]
                advance(len(chosen))
    return values


class Tile(NamedTuple):
    """The numbers of some texts, and the shape of the batch that holds them."""

    texts: np.ndarray
    size: int
    length: int


def tiles(lengths: np.ndarray) -> Iterator[Tile]:
    """Divides texts of these lengths into batches of a few shapes, longest first."""
    order = np.argsort(-lengths, kind="stable")
    while len(order):
        length = bucket(max(int(lengths[order[0]]), 1))
        size = min(_batch_size(length), 1 << (len(order) - 1).bit_length())
        chosen, order = order[:size], order[size:]
        yield Tile(chosen, size, length)


def _batch_size(length: int) -> int:
    """The number of rows of this length in a batch, a power of two."""
    return 1 << max(BATCH_TOKENS // length, 1).bit_length() - 1
