"""BERTScore (Zhang et al., 2020)."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from metrics_jax.api import check_texts, starts
from metrics_jax.embedding.baseline import Baseline
from metrics_jax.embedding.contextual import ContextualMetric, IdfMode, LongText, check_finite
from metrics_jax.embedding.encoder import Encoder, Tokens, encode
from metrics_jax.embedding.idf import Idf
from metrics_jax.embedding.token_batches import SPAN_BYTES, Side, Units, compare_pairs, spans

if TYPE_CHECKING:
    from metrics_jax.embedding.matching import Match


@dataclasses.dataclass(frozen=True)
class BERTScore(ContextualMetric):
    """The mean similarity of each token to the most similar token of the other text; at most 1. F is the score.

    Precision averages over the tokens of the hypothesis, recall over those of the reference (equations in section 3),
    both weighted by idf. Similarity is the cosine of the token vectors. [CLS] and [SEP] have no weight, but other
    tokens may be matched to them, as in bert-score. With several references, the best precision, the best recall and
    the best F are reported, each over all references. If either text is empty, the score is 0 before rescaling.

    layer: the hidden state whose vectors are compared; 0 is the embedding layer, -1 the last. bert-score uses layer 9
    of bert-base-uncased's 12, layer 17 of roberta-large's 24 and so on; the paper selected layers by correlation with
    human judgements. baseline: rescales precision, recall and F separately, so that unrelated sentences score 0 and
    identical ones 1. nonnegative: a token whose cosines are all negative counts as 0, as in bert-score for every text
    of a batch that is padded; if false, the largest cosine counts, as in the paper. idf, long: see `WeightedMetric`.
    """

    encoder: Encoder
    layer: int = -1
    idf: Idf | IdfMode = "uniform"
    baseline: Baseline | None = None
    nonnegative: bool = True
    long: LongText = "truncate"

    name: ClassVar[str] = "bertscore"
    columns: ClassVar[tuple[str, ...]] = ("f1", "precision", "recall")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.baseline is not None and len(self.baseline.rows) != (states := self._num_states()):
            raise ValueError(
                f"the baseline has {len(self.baseline.rows)} layers and the encoder {states}, embeddings included: "
                "they are not of the same model"
            )

    def _num_states(self) -> int:
        from metrics_jax.embedding.forward import shape_of_states

        return shape_of_states(self.encoder.embed)[0]

    def units(self, tokens: Tokens, idf: Idf | None) -> Units:
        return Units.of(tokens, np.ones(len(tokens.ids), bool), ~tokens.special, idf)

    @property
    def match(self) -> "Match":
        from metrics_jax.embedding.matching import Match, greedy

        return Match.of(greedy, n_gram=1, nonnegative=self.nonnegative)

    def values(self, matched: Any, x: Side, y: Side, pairwise: bool) -> np.ndarray:
        precision, recall = (np.asarray(side, np.float64) for side in matched)
        values = np.stack([f_score(precision, recall), precision, recall], axis=-1)
        if self.baseline is None:
            return values
        p, r, f = self.baseline.rows[self.layer]
        zero = np.array([f, p, r])
        return (values - zero) / (1 - zero)

    def over_references(self, values: np.ndarray, owner: np.ndarray) -> np.ndarray:
        return np.maximum.reduceat(values, starts(owner))

    def by_layer(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Precision, recall and F of P pairs for every layer, without rescaling: float64[L, P, 3].

        Use it to select the layer whose F agrees best with human judgements. Raises errors as `statistics`.
        """
        check_texts(hypotheses, references)
        layers = range(self._num_states())
        metric = dataclasses.replace(self.fitted(references), baseline=None)
        values = np.zeros((len(layers), len(hypotheses), 3))
        texts, others = ([text.strip() for text in side] for side in (hypotheses, references))
        for span in spans(texts, others, SPAN_BYTES // len(layers)):
            both = [texts[k] for k in span] + [others[k] for k in span]
            encoded = check_finite(encode(self.encoder, both, tuple(layers), long=self.long))
            units, pairs = metric.units(encoded, metric.hypothesis_weights), np.split(np.arange(len(both)), 2)
            compare = functools.partial(metric.compare, pairwise=False)
            for layer, vectors in enumerate(np.split(encoded.vectors, len(layers), axis=1)):
                values[layer, span] = compare_pairs(units, units, vectors, (pairs[0], pairs[1]), compare, 3)
        return values[..., [1, 2, 0]]

    def fit_baseline(self, texts: Sequence[str], num_pairs: int = 10_000, seed: int = 0) -> Baseline:
        """The mean scores of `num_pairs` randomly drawn pairs of different texts of a corpus.

        Raises ValueError if there are fewer than two different texts.
        """
        distinct = sorted(set(texts))
        if len(distinct) < 2:
            raise ValueError(f"{len(distinct)} different texts: a baseline needs several, preferably thousands")
        generator = np.random.default_rng(seed)
        first = generator.integers(len(distinct), size=num_pairs)
        second = (first + generator.integers(1, len(distinct), size=num_pairs)) % len(distinct)
        values = self.by_layer([distinct[i] for i in first], [distinct[i] for i in second])
        return Baseline(tuple((float(p), float(r), float(f)) for p, r, f in values.mean(axis=1)))


def f_score(precision: np.ndarray, recall: np.ndarray, alpha: float = 0.5) -> np.ndarray:
    """P R / (alpha P + (1 - alpha) R), 0 where it is undefined."""
    denominator = alpha * precision + (1 - alpha) * recall
    return np.divide(precision * recall, denominator, out=np.zeros_like(denominator), where=denominator != 0)
