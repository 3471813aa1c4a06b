"""Tempered Word Mover Distance (Chen et al., 2020), as a similarity."""

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from metrics_jax.api import check_range
from metrics_jax.embedding.bertscore import f_score
from metrics_jax.embedding.contextual import ContextualMetric, IdfMode, LongText
from metrics_jax.embedding.encoder import Encoder, Tokens
from metrics_jax.embedding.idf import Idf
from metrics_jax.embedding.token_batches import Side, Units

if TYPE_CHECKING:
    from metrics_jax.embedding.matching import Match


@dataclasses.dataclass(frozen=True)
class TemperedWMD(ContextualMetric):
    """The mean similarity of the tokens of two texts under a transport plan of finite temperature; 1 for equal texts.

    TWMD: the plan maximizes the mean cosine of the tokens that it pairs plus `temperature` times its entropy. It is
    approximated by `num_iters` Sinkhorn iterations from exp(cosine / temperature); each iteration normalizes one side's
    sums and then the other's. Precision is the mean cosine under the plan normalized last over the hypothesis, recall
    under the one normalized last over the reference; after many iterations both are equal. relaxed: TRWMD, where each
    token has a softmax over the tokens of the other text, whose sums are unconstrained. Precision, recall and F are
    divided by the geometric mean of those of each text with itself. The entropy is not part of the score. F is 0 if
    precision and recall differ in sign.

    Definitions and defaults, except for the layer, are those of the authors' program without its batch centering: one
    iteration, temperature 0.02, equal token weights, with [CLS] and without [SEP]. That program used layer 10 of 12 or
    layer 19 of 24. Centering is not implemented, because with it a score depends on the other segments. The idf option,
    which makes sums proportional to idf, is not in the paper.

    Of several references, the one with the highest F counts. A text without tokens scores 0, and two of them 1. idf,
    long: see `WeightedMetric`.
    """

    encoder: Encoder
    layer: int = -1
    temperature: float = 0.02
    relaxed: bool = False
    num_iters: int = 1
    idf: Idf | IdfMode = "uniform"
    long: LongText = "truncate"

    name: ClassVar[str] = "twmd"
    columns: ClassVar[tuple[str, ...]] = ("f1", "precision", "recall")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.temperature < np.inf:
            raise ValueError(f"temperature={self.temperature}: must be positive and finite; the authors use 0.02")
        check_range("num_iters", self.num_iters, 1, 10_000)
        if self.relaxed and self.num_iters > 1:
            raise ValueError(f"num_iters={self.num_iters}: must be exactly 1 with relaxed")

    def units(self, tokens: Tokens, idf: Idf | None) -> Units:
        """Excludes special tokens other than the first of a text."""
        kept = ~tokens.special
        kept[tokens.starts[tokens.lengths > 0]] = True
        return Units.of(tokens, kept, kept, idf)

    @property
    def match(self) -> "Match":
        from metrics_jax.embedding.matching import Match, tempered_similarities

        options = {"temperature": self.temperature, "relaxed": self.relaxed, "num_iters": self.num_iters}
        return Match.of(tempered_similarities, **options)

    def values(self, matched: Any, x: Side, y: Side, pairwise: bool) -> np.ndarray:
        same_x, same_y, values = (_with_f(*sides) for sides in matched)
        squares = same_x[:, None] * same_y[None] if pairwise else same_x * same_y
        scores = np.divide(values, np.sqrt(np.maximum(squares, 0)), out=np.zeros_like(values), where=squares > 0)
        left, right = (side.real.any(axis=-1) for side in (x, y))
        left, right = (left[:, None], right[None]) if pairwise else (left, right)
        return np.where((left & right)[..., None], scores, (left == right)[..., None])


def _with_f(*sides: np.ndarray) -> np.ndarray:
    """F, precision and recall before normalization, float64[..., 3], from precision and recall."""
    precision, recall = (np.asarray(side, np.float64) for side in sides)
    f1 = np.where(precision * recall > 0, f_score(precision, recall), 0)
    return np.stack([f1, precision, recall], axis=-1)
