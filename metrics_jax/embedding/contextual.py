"""The common parts of metrics that read texts with an encoder: by token vectors, or by a trained model."""

import dataclasses
import functools
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from metrics_jax import api
from metrics_jax.api import AdditiveMetric, IndexedTexts, References, Result, check_sequences, check_texts
from metrics_jax.embedding import platforms
from metrics_jax.embedding.encoder import (
    LONG,
    NOT_FINITE,
    Encoded,
    Encoder,
    TokenReader,
    Tokens,
    encode,
    read_tokens,
    tokenized,
    truncated,
)
from metrics_jax.embedding.idf import Idf
from metrics_jax.embedding.lengths import pack_by_length
from metrics_jax.embedding.token_batches import (
    BATCH_TOKENS,
    SPAN_BYTES,
    TINY,
    TOKEN_SPAN_BYTES,
    Side,
    Units,
    compare_pairs,
    spans,
)

if TYPE_CHECKING:
    from metrics_jax.embedding.matching import Match

IdfMode = Literal["uniform", "references"]
LongText = Literal["error", "truncate", "window"]


class TextTooLongError(ValueError):
    """Raised with long="error" for a text or pair of a `segment` that exceeds the encoder's maximum length."""

    def __init__(self, segment: int, length: str, max_length: int, choices: str) -> None:
        self.segment = segment
        self.problem = f"too long: {length}, but the encoder reads at most {max_length}; choose {choices}"
        super().__init__(f"segment {segment} is {self.problem}")


class EncoderMetric(AdditiveMetric):
    """A metric whose corpus score is the mean over segments; statistics are (score, other columns, too long, 1)."""

    segments_per_call: ClassVar[int] = sys.maxsize  # batches are fuller, and equal texts are encoded once
    columns: ClassVar[tuple[str, ...]] = ()  # the values of a pair that are reported; the score is the first

    def score(self, statistics: np.ndarray) -> np.ndarray:
        return statistics[..., 0] / statistics[..., -1]

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """The mean of each column by name, and long: the number of segments with a text too long for the encoder."""
        means = statistics[: len(self.columns)] / statistics[-1]
        return {**dict(zip(self.columns, means.tolist(), strict=True)), "long": float(statistics[-2])}


class LearnedMetric(EncoderMetric):
    """A metric whose segment scores are the outputs of a model that was trained on human ratings.

    Subclasses are dataclasses with the fields multi_reference, "max" ("min" for error scores) or "mean", and long, one
    of `long_options`.
    """

    multi_reference: str
    long: str

    long_options: ClassVar[tuple[str, str]]

    def __post_init__(self) -> None:
        best = "max" if self.higher_is_better else "min"
        for option, known in (("multi_reference", (best, "mean")), ("long", self.long_options)):
            if (value := getattr(self, option)) not in known:
                raise ValueError(f"{option}={value!r}: choose {' or '.join(known)}")

    def segment_statistics(self, scores: np.ndarray, too_long: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """Statistics float64[N, 3] from float[R] scores and bool[R] of all references; owner int[R]: their segments."""
        first = api.starts(owner)
        if self.multi_reference != "mean":
            combined = (np.maximum if self.higher_is_better else np.minimum).reduceat(scores, first)
        else:
            combined = np.add.reduceat(scores, first) / np.bincount(owner)
        cut = np.maximum.reduceat(too_long, first)
        return np.column_stack([combined, cut, np.ones(len(combined))]).astype(np.float64)


class WeightedMetric(EncoderMetric):
    """A metric that scores one pair of texts at a time by their tokens, with weights; the corpus score is the mean.

    Subclasses are dataclasses with these fields. encoder: reads the texts, with `tokenize` and `max_length` as those of
    an `Encoder`. idf: the weights; "uniform", a fitted `Idf`, or "references", which counts frequencies in the
    references of each call, so that the score of a segment depends on the references of the others (`fitted` freezes
    them). long: the treatment of texts that exceed the encoder's `max_length`, one of `long_options`, see `encode`.
    White space around a text is ignored.
    """

    encoder: TokenReader
    idf: Idf | IdfMode
    long: str

    hypothesis_idf: Idf | None = None  # a field of the metrics whose published programs weight both sides apart

    idf_form: ClassVar[str] = "bertscore"
    long_options: ClassVar[tuple[str, ...]] = LONG

    def __post_init__(self) -> None:
        if self.long not in self.long_options:
            raise ValueError(f"long={self.long!r} is none of {', '.join(self.long_options)}")
        if not isinstance(self.idf, Idf) and self.idf not in ("uniform", "references"):
            raise ValueError(f"idf={self.idf!r}: choose uniform, references, or frequencies counted by Idf.fit")

    def score_pairs(self, hypotheses: Sequence[str], references: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Values float64[P, C] of P pairs, and whether a text of each was too long, bool[P]."""
        raise NotImplementedError

    def over_references(self, values: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """Values of the segments float64[N, C] from those of all references float64[R, C]; owner int[R]: the segments.

        By default those of the reference with the best score, the first one if scores are equal.
        """
        return values[api.best(values[:, 0] if self.higher_is_better else -values[:, 0], owner)]

    @property
    def hypothesis_weights(self) -> Idf | None:
        """Weights of the hypotheses' tokens, by default those of the references'; None means uniform."""
        return self.hypothesis_idf or (self.idf if isinstance(self.idf, Idf) else None)

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Returns float64[N, C + 2]: the score, the other columns, whether a text was too long for the encoder, 1."""
        texts, owner = api.flatten(hypotheses, references)
        texts = [text.strip() for text in texts]
        if self.long == "error":
            segments = np.concatenate([np.arange(len(hypotheses)), owner])
            for segment, (ids, _) in zip(segments, self._tokens(texts), strict=True):
                if len(ids) > self.encoder.max_length:
                    choices = " or ".join(f"long:{option}" for option in self.long_options if option != "error")
                    raise TextTooLongError(int(segment), f"{len(ids)} tokens", self.encoder.max_length, choices)
        metric = self.fitted(references)
        values, long = metric.score_pairs(*api.pair(texts, owner))
        scores = self.over_references(values, owner)
        too_long = np.bincount(owner, weights=long) > 0
        if self.long == "truncate" and too_long.any():
            window = "; long:window reads them to the end" if "window" in self.long_options else ""
            warnings.warn(
                f"{too_long.sum()} of {len(scores)} segments were truncated to the encoder's maximum length of "
                f"{self.encoder.max_length} tokens{window}",
                stacklevel=2,
            )
        return np.column_stack([scores, too_long, np.ones(len(scores))]).astype(np.float64)

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
        """Score a corpus; `references[i]`, one string or several, belong to `hypotheses[i]`.

        The signature of the result contains the fingerprint of the idf counted in the references.
        """
        self.given_sources(sources)
        grouped = check_texts(hypotheses, references)
        metric = self.fitted(grouped)
        return metric.result(metric.statistics(hypotheses, grouped), [len(group) for group in grouped])


class ContextualMetric(WeightedMetric):
    """A metric that scores one pair of texts at a time by their token vectors; the corpus score is the mean.

    Subclasses are dataclasses with these fields, and those of `WeightedMetric`. encoder: makes the token vectors.
    layer: the hidden state whose vectors are compared, unless the subclass overrides `selection`.
    """

    encoder: Encoder
    layer: int

    @property
    def match(self) -> "Match":
        """The part of a comparison that runs on the devices."""
        raise NotImplementedError

    def values(self, matched: Any, x: Side, y: Side, pairwise: bool) -> np.ndarray:
        """Values float64[B, C] of B hypotheses x and B references y; with `pairwise`, [H, R, C] of H and R texts.

        matched: what `match` returned for them, on the host. x, y: need not have vectors.
        """
        raise NotImplementedError

    def units(self, tokens: Tokens, idf: Idf | None) -> Units:
        """The tokens that take part in the comparison."""
        raise NotImplementedError

    def encoded(self, texts: Sequence[str]) -> Encoded:
        """The token vectors of N texts. Raises ValueError if a vector is not finite."""
        layers, combine = self.selection
        return check_finite(encode(self.encoder, texts, layers, combine=combine, long=self.long))

    @property
    def selection(self) -> tuple[tuple[int, ...], str]:
        """The layers whose states are the token vectors, and how they are combined; by default `layer` alone."""
        return (self.layer,), "concatenate"

    def score_pairs(self, hypotheses: Sequence[str], references: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        from metrics_jax.embedding import devices, pair_scoring

        values = np.zeros((len(hypotheses), len(self.columns)))
        long = np.zeros(len(hypotheses), bool)
        one_program = self.encoder.cache is None and platforms.one_program(devices.platform())
        for span in spans(hypotheses, references, TOKEN_SPAN_BYTES if one_program else SPAN_BYTES):
            texts = [hypotheses[k] for k in span] + [references[k] for k in span]
            left, right = pairs = np.arange(len(span)), np.arange(len(span), 2 * len(span))
            if one_program:
                tokens = read_tokens(self.encoder, texts, self.long)
                values[span] = pair_scoring.score_pairs(self, tokens, *self._sides(tokens), pairs)
            else:
                tokens = encoded = self.encoded(texts)
                sides = *self._sides(encoded), encoded.vectors
                compare = functools.partial(self.compare, pairwise=False)
                values[span] = compare_pairs(*sides, pairs, compare, len(self.columns))
            long[span] = tokens.long[left] | tokens.long[right]
        return values, long

    def compare(self, x: Side, y: Side, pairwise: bool) -> np.ndarray:
        """Values of sides with vectors on the host, as `values` returns them; all devices share the rows of x."""
        from metrics_jax.embedding import devices

        mesh = devices.local_mesh()
        rows = devices.by_rows(mesh)
        placed = devices.put((x, y), (rows, devices.everywhere(mesh) if pairwise else rows))
        return self.values(devices.gathered(self.match(*placed, pairwise=pairwise)), x, y, pairwise)

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
        stripped = [text.strip() for text in texts]
        return EncodedTexts(self, stripped, self.encoded(stripped))

    def _sides(self, tokens: Tokens) -> tuple[Units, Units]:
        """The units of the texts as hypotheses, and as references."""
        y = self.units(tokens, self.idf if isinstance(self.idf, Idf) else None)
        return (self.units(tokens, self.hypothesis_weights) if self.hypothesis_weights is not self.idf else y), y


def check_finite(encoded: Encoded) -> Encoded:
    """The argument. Raises ValueError if a vector is not finite."""
    if not np.isfinite(encoded.vectors.sum()):
        raise ValueError(NOT_FINITE)
    return encoded


@dataclasses.dataclass(frozen=True, eq=False)
class EncodedTexts(IndexedTexts):
    """N texts and their token vectors, for comparison with one another by a `ContextualMetric`."""

    encoded: Encoded

    @functools.cached_property
    def _sides(self) -> tuple[Units, Units]:
        return self.metric._sides(self.encoded)

    def pairwise(self, hypotheses: np.ndarray, references: np.ndarray) -> np.ndarray:
        from metrics_jax.embedding.devices import local_mesh

        (x, y), vectors, devices = self._sides, self.encoded.vectors, local_mesh().size
        scores = np.zeros((len(hypotheses), len(references)))
        for rows, *left in pack_by_length(x.lengths[hypotheses], devices * BATCH_TOKENS, devices):
            for columns, *right in pack_by_length(y.lengths[references], BATCH_TOKENS):
                sides = x.padded(vectors, hypotheses[rows], *left), y.padded(vectors, references[columns], *right)
                values = self.metric.compare(*sides, pairwise=True)
                scores[np.ix_(rows, columns)] = values[: len(rows), : len(columns), 0]
        return scores

    def aggregated(self, hypotheses: np.ndarray, references: np.ndarray, weights: np.ndarray) -> np.ndarray:
        x, y = self._sides
        centroid = weights @ y.means(self.encoded.vectors, references)
        return x.means(self.encoded.vectors, hypotheses) @ centroid / max(float(np.linalg.norm(centroid)), TINY)
