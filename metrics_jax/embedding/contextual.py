"""What metrics that compare the contextual vectors of tokens share: how texts become batches, and batches scores."""

import dataclasses
import functools
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from metrics_jax.api import AdditiveMetric, References, Result, Texts, check_sequences, check_texts
from metrics_jax.embedding.encoder import LONG, Encoded, Encoder, progress, tokenized, truncated
from metrics_jax.embedding.forward import bucket
from metrics_jax.embedding.idf import Idf
from metrics_jax.references import flatten, pair

Counted = Literal["uniform", "references"]
Long = Literal["error", "truncate", "window"]

SPAN_BYTES = 2**20  # of text encoded at a time, some 250,000 tokens: their vectors are in memory together
BATCH_TOKENS = 4096  # of a side of one batch
_TINY = 1e-30  # a vector that is 0 stays so


class Side(NamedTuple):
    """The tokens of one text, or of B: vectors [..., S, E], weights [..., S], real bool[..., S], False in padding."""

    vectors: Any  # np.ndarray, or jax.Array
    weights: Any
    real: Any


@dataclasses.dataclass(frozen=True, eq=False)
class Units:
    """The tokens of N texts that a metric compares: text n's are `rows[starts[n]:][:lengths[n]]` of the table.

    The table: vectors float32[R, E], ids int[R], words bool[R], whether a token has weight. weigh: ids int[B, S] and
    which of them have weight, bool[B, S], -> weights float64[B, S].
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
        """Those tokens of the table that are kept, bool[R]; words bool[R]: those of them that have weight.

        ValueError for vectors that are not numbers.
        """
        if not np.isfinite(encoded.vectors.sum()):
            raise ValueError("the encoder's vectors hold NaN or infinity: its weights are damaged")
        before = np.concatenate([[0], np.cumsum(kept)])
        starts = before[encoded.starts]
        lengths = before[encoded.starts + encoded.lengths] - starts
        weigh = idf.weights if idf else lambda ids, mask: mask.astype(np.float64)
        return cls(encoded.vectors, encoded.ids, words, np.flatnonzero(kept), starts, lengths, weigh)

    def padded(self, texts: np.ndarray, size: int, length: int) -> Side:
        """At most `size` texts, of at most `length` tokens each, as a batch of this shape."""
        places, real = np.arange(length)[None], np.zeros((size, length), bool)
        real[: len(texts)] = places < self.lengths[texts, None]
        if not real.any():
            return Side(np.zeros((*real.shape, self.vectors.shape[1]), np.float32), np.zeros(real.shape), real)
        # Padding is a copy of some token: it need not be filled with zeros, and nothing looks at it.
        starts = np.zeros((size, 1), int)
        starts[: len(texts), 0] = self.starts[texts]
        rows = self.rows[np.where(real, starts + places, 0)]
        weights, some = np.zeros(real.shape), slice(len(texts))
        weights[some] = self.weigh(self.ids[rows[some]], (real & self.words[rows])[some])
        return Side(self.vectors[rows], weights, real)

    def means(self, texts: np.ndarray) -> np.ndarray:
        """-> float64[N, E], the weighted mean of each text's tokens, scaled to length 1; 0 for a text without any."""
        means = np.zeros((len(texts), self.vectors.shape[1]))
        for mean, text in zip(means, texts, strict=True):
            rows = self.rows[self.starts[text] :][: self.lengths[text]]
            mean += self.weigh(self.ids[rows][None], self.words[rows][None])[0] @ self.vectors[rows]
        return means / np.maximum(np.linalg.norm(means, axis=-1, keepdims=True), _TINY)


class TextTooLongError(ValueError):
    """A text of a `segment` that the encoder cannot read at once, where long="error"."""

    def __init__(self, segment: int, num_tokens: int, max_length: int) -> None:
        self.segment = segment
        self.problem = (
            f"a text of {num_tokens} tokens, the encoder takes {max_length} at once: "
            "choose long:truncate or long:window"
        )
        super().__init__(f"segment {segment} has {self.problem}")


class ContextualMetric(AdditiveMetric):
    """A metric whose segments are scored one pair of texts at a time, and whose corpus score is their mean.

    The fields that every such metric has: encoder. idf: the weights of tokens; "uniform", or an `Idf` of their ids, or
    "references": counted in the references of each call, so that a segment's score depends on the others' references;
    `fitted` freezes them. long: what becomes of a text that is longer than the encoder's `max_length`, see `encode`.
    White space round a text does not matter.
    """

    encoder: Encoder
    idf: Idf | Counted
    long: str

    at_once: ClassVar[int] = sys.maxsize  # segments: the more come together, the fewer are encoded twice
    idf_form: ClassVar[str] = "bertscore"
    columns: ClassVar[tuple[str, ...]]  # what a pair is scored by, the score itself first

    def __post_init__(self) -> None:
        if self.long not in LONG:
            raise ValueError(f"long={self.long!r} is none of {', '.join(LONG)}")
        if not isinstance(self.idf, Idf) and self.idf not in ("uniform", "references"):
            raise ValueError(f"idf={self.idf!r} is neither uniform, nor references, nor frequencies counted by Idf.fit")

    def compare(self, x: Side, y: Side, pairwise: bool) -> np.ndarray:
        """Hypotheses and references, B each -> float64[B, C]; `pairwise`, H and R of them -> float64[H, R, C]."""
        raise NotImplementedError

    def over_references(self, values: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """Values float64[R, C] of all references, owner int[R] -> float64[N, C], those of the segments."""
        raise NotImplementedError

    def encoded(self, texts: Sequence[str]) -> Encoded:
        """The vectors of the tokens of N texts."""
        raise NotImplementedError

    def units(self, encoded: Encoded, idf: Idf | None) -> Units:
        """What is compared of them."""
        raise NotImplementedError

    @property
    def hypothesis_weights(self) -> Idf | None:
        """The weights of the hypotheses' tokens; None: uniform."""
        return self.idf if isinstance(self.idf, Idf) else None

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """-> float[N, C + 2]: the score, other columns, whether a text was too long for the encoder, 1."""
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
                f"{too_long.sum()} of {len(scores)} segments are longer than the encoder's {self.encoder.max_length} "
                "tokens and were cut off: with long:window they are read to the end",
                stacklevel=2,
            )
        return np.column_stack([scores, too_long, np.ones(len(scores))]).astype(np.float64)

    def score_pairs(self, hypotheses: Sequence[str], references: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """P hypotheses and a reference for each -> float64[P, C], bool[P]: too long."""
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
        """-> float[H, R], the score of every hypothesis against every single reference; each text is encoded once."""
        check_sequences(hypotheses, references)
        if not hypotheses or not references:
            return np.zeros((len(hypotheses), len(references)))
        left, right = np.split(np.arange(len(hypotheses) + len(references)), [len(hypotheses)])
        return self.among([*hypotheses, *references]).fitted(right).pairwise(left, right)

    def aggregated(self, hypotheses: Sequence[str], references: Sequence[str], weights: np.ndarray) -> np.ndarray:
        """-> float[H], the cosine of each hypothesis' vector with the mean of the references', weighted by float[R].

        A text's vector is the weighted mean of its tokens', scaled to length 1; 0 for a text without any. This is not
        the metric: it ranks texts much like it, by one comparison each (Vamvas and Sennrich, 2024).
        """
        check_sequences(hypotheses, references)
        left, right = np.split(np.arange(len(hypotheses) + len(references)), [len(hypotheses)])
        return self.among([*hypotheses, *references]).fitted(right).aggregated(left, right, weights)

    def among(self, texts: Sequence[str]) -> "EncodedTexts":
        """N texts, each encoded once, to be compared with one another."""
        stripped = [text.strip() for text in texts]
        return EncodedTexts(self, stripped, self.encoded(stripped))

    def _sides(self, encoded: Encoded) -> tuple[Units, Units]:
        """What is compared of the hypotheses, and of the references."""
        y = self.units(encoded, self.idf if isinstance(self.idf, Idf) else None)
        return (self.units(encoded, self.hypothesis_weights) if self.hypothesis_weights is not self.idf else y), y

    def score(self, statistics: np.ndarray) -> np.ndarray:
        """Summed statistics float[..., K] -> the mean over segments float[...]."""
        return statistics[..., 0] / statistics[..., -1]

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """The columns' means by name; long: the number of segments with a text too long for the encoder."""
        means = statistics[: len(self.columns)] / statistics[-1]
        return {**dict(zip(self.columns, means.tolist(), strict=True)), "long": float(statistics[-2])}

    def fitted(self, references: References) -> Self:
        """This metric with idf="references" counted: each reference is a document, special tokens included."""
        if isinstance(self.idf, Idf) or self.idf != "references":
            return self
        texts = [text for group in references for text in ([group] if isinstance(group, str) else group)]
        return dataclasses.replace(self, idf=self.count(texts))  # type: ignore[type-var]

    def count(self, texts: Sequence[str]) -> Idf:
        """In how many of these texts each token of the encoder occurs, in this metric's form of idf."""
        return Idf.fit((ids for ids, _ in self._tokens([text.strip() for text in texts])), self.idf_form)

    def _tokens(self, texts: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Ids int[S] and special bool[S] of every text; what is to be cut off is cut off."""
        for ids, special in tokenized(self.encoder, texts):
            yield truncated(ids, special, self.encoder.max_length) if self.long == "truncate" else (ids, special)

    def __call__(
        self, hypotheses: Sequence[str], references: References, sources: Sequence[str] | None = None
    ) -> Result:
        """Score a corpus; `references[i]`, a string or several, belong to `hypotheses[i]`; sources do not matter.

        The result is signed with what was counted in the references.
        """
        grouped = check_texts(hypotheses, references)
        metric = self.fitted(grouped)
        return metric.result(metric.statistics(hypotheses, grouped), [len(group) for group in grouped])


@dataclasses.dataclass(frozen=True, eq=False)
class EncodedTexts(Texts):
    """N texts and the vectors of their tokens, to be compared with one another by a `ContextualMetric`."""

    encoded: Encoded

    @functools.cached_property
    def _sides(self) -> tuple[Units, Units]:
        return self.metric._sides(self.encoded)

    def pairwise(self, hypotheses: np.ndarray, references: np.ndarray) -> np.ndarray:
        """int[H] and int[R] -> float[H, R], as the metric's."""
        x, y = self._sides
        scores = np.zeros((len(hypotheses), len(references)))
        for left in tiles(x.lengths[hypotheses]):
            for right in tiles(y.lengths[references]):
                sides = x.padded(hypotheses[left.texts], *left[1:]), y.padded(references[right.texts], *right[1:])
                values = self.metric.compare(*sides, pairwise=True)
                scores[np.ix_(left.texts, right.texts)] = values[: len(left.texts), : len(right.texts), 0]
        return scores

    def aggregated(self, hypotheses: np.ndarray, references: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """int[H], int[R] and their weights float[R] -> float[H], as the metric's."""
        x, y = self._sides
        centroid = weights @ y.means(references)
        return x.means(hypotheses) @ centroid / max(float(np.linalg.norm(centroid)), _TINY)


def spans(hypotheses: Sequence[str], references: Sequence[str], size: int) -> list[np.ndarray]:
    """Pairs whose texts are some `size` bytes together, by the length of the reference; equal ones are neighbours."""
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
    """Text `left[p]` of x with `right[p]` of y -> float64[P, C], in batches whose shapes depend on lengths only."""
    values = np.zeros((len(left), num_columns))
    longest = np.maximum(x.lengths[left], y.lengths[right])
    # Fewer lengths than for encoding: here a program more costs more than padding does.
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
    """Texts, and the shape of the batch that they fit in."""

    texts: np.ndarray
    size: int
    length: int


def tiles(lengths: np.ndarray) -> Iterator[Tile]:
    """The texts of these lengths in groups of a few shapes, longest first."""
    order = np.argsort(-lengths, kind="stable")
    while len(order):
        length = bucket(max(int(lengths[order[0]]), 1))
        size = min(_batch_size(length), 1 << (len(order) - 1).bit_length())
        chosen, order = order[:size], order[size:]
        yield Tile(chosen, size, length)


def _batch_size(length: int) -> int:
    """A power of two of rows of this length."""
    return 1 << max(BATCH_TOKENS // length, 1).bit_length() - 1
