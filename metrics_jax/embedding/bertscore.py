"""BERTScore (Zhang et al., 2020)."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.embedding.baseline import Baseline
from metrics_jax.embedding.contextual import (
    SPAN_BYTES,
    ContextualMetric,
    Counted,
    Long,
    Side,
    Units,
    compare_pairs,
    spans,
)
from metrics_jax.embedding.encoder import Encoded, Encoder, encode
from metrics_jax.embedding.forward import shape_of_states
from metrics_jax.embedding.idf import Idf
from metrics_jax.references import starts


@dataclasses.dataclass(frozen=True)
class BERTScore(ContextualMetric):
    """The mean similarity of each token to the most similar one of the other text; at most 1, F is the score.

    Precision averages over the hypothesis' tokens, recall over the reference's (equations in section 3), both weighted
    by idf; similarity is the cosine of the vectors of `layer`, 0 the embeddings, -1 the last. bert-score takes the 9th
    of bert-base-uncased's 12, the 17th of roberta-large's 24 and so on; the paper chose them by correlation with
    judgements. [CLS] and [SEP] weigh nothing, but may be what a token is most similar to, as in bert-score. baseline:
    rescales precision, recall and F, each on its own: 0 is what unrelated sentences get, 1 stays 1.

    Of several references the best precision, the best recall and the best F count, whichever reference they are of. An
    empty text, on either side, scores 0, before rescaling. nonnegative: a token that no other is like, every cosine
    being negative, counts 0, as it does in bert-score wherever a text is padded, that is for all but the longest of a
    batch; off, as in the paper, it counts the largest cosine. For `idf` and `long` see `ContextualMetric`.
    """

    encoder: Encoder
    layer: int = -1
    idf: Idf | Counted = "uniform"
    baseline: Baseline | None = None
    nonnegative: bool = True
    long: Long = "truncate"

    name: ClassVar[str] = "bertscore"
    columns: ClassVar[tuple[str, ...]] = ("f1", "precision", "recall")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.baseline is not None and len(self.baseline.rows) != (states := shape_of_states(self.encoder.embed)[0]):
            raise ValueError(
                f"a baseline of {len(self.baseline.rows)} layers and an encoder of {states}, embeddings included: they "
                "are not of the same model"
            )

    def encoded(self, texts: Sequence[str]) -> Encoded:
        """The vectors of the tokens of N texts."""
        return encode(self.encoder, texts, (self.layer,), long=self.long)

    def units(self, encoded: Encoded, idf: Idf | None) -> Units:
        """All tokens; the special ones without weight."""
        return Units.of(encoded, np.ones(len(encoded.ids), bool), ~encoded.special, idf)

    def compare(self, x: Side, y: Side, pairwise: bool) -> np.ndarray:
        """-> float64[..., 3]: F, precision, recall."""
        from metrics_jax.embedding.matching import greedy

        sides = greedy(x, y, n_gram=1, nonnegative=self.nonnegative, pairwise=pairwise)
        precision, recall = (np.asarray(side, np.float64) for side in sides)
        values = np.stack([f_score(precision, recall), precision, recall], axis=-1)
        if self.baseline is None:
            return values
        p, r, f = self.baseline.rows[self.layer]
        zero = np.array([f, p, r])
        return (values - zero) / (1 - zero)

    def over_references(self, values: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """The best of each column."""
        return np.maximum.reduceat(values, starts(owner))

    def by_layer(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """P hypotheses, a reference for each -> precision, recall and F, not rescaled, by every layer float64[L, P, 3].

        What a layer is chosen by: the one whose F agrees best with judgements.
        """
        layers = range(shape_of_states(self.encoder.embed)[0])
        metrics = [dataclasses.replace(self.fitted(references), layer=layer, baseline=None) for layer in layers]
        values = np.zeros((len(layers), len(hypotheses), 3))
        texts, others = ([text.strip() for text in side] for side in (hypotheses, references))
        for span in spans(texts, others, SPAN_BYTES // len(layers)):
            both = [texts[k] for k in span] + [others[k] for k in span]
            encoded = encode(self.encoder, both, tuple(layers), long=self.long)
            left, right = np.arange(len(span)), np.arange(len(span), len(both))
            for metric, vectors in zip(metrics, np.split(encoded.vectors, len(layers), axis=1), strict=True):
                units = metric.units(dataclasses.replace(encoded, vectors=vectors), metric.hypothesis_weights)
                compare = functools.partial(metric.compare, pairwise=False)
                values[metric.layer, span] = compare_pairs(units, units, left, right, compare, 3)
        return values[..., [1, 2, 0]]

    def fit_baseline(self, texts: Sequence[str], num_pairs: int = 10_000, seed: int = 0) -> Baseline:
        """The mean of `num_pairs` pairs of different texts of a corpus, drawn at random; ValueError for one text."""
        if len(set(texts)) < 2:
            raise ValueError(f"{len(set(texts))} different texts: a baseline needs unrelated ones, some thousands")
        distinct = sorted(set(texts))
        generator = np.random.default_rng(seed)
        first = generator.integers(len(distinct), size=num_pairs)
        second = (first + generator.integers(1, len(distinct), size=num_pairs)) % len(distinct)
        values = self.by_layer([distinct[i] for i in first], [distinct[i] for i in second])
        return Baseline(tuple((float(p), float(r), float(f)) for p, r, f in values.mean(axis=1)))


def f_score(precision: np.ndarray, recall: np.ndarray, alpha: float = 0.5) -> np.ndarray:
    """P R / (alpha P + (1 - alpha) R), 0 where it is not defined."""
    denominator = alpha * precision + (1 - alpha) * recall
    return np.divide(precision * recall, denominator, out=np.zeros_like(denominator), where=denominator != 0)
