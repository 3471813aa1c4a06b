"""YiSi-1 (Lo, 2019)."""

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from metrics_jax.api import MOST_ORDER, check_range
from metrics_jax.embedding.bertscore import f_score
from metrics_jax.embedding.contextual import ContextualMetric, IdfMode, LongText
from metrics_jax.embedding.encoder import Encoder, Tokens
from metrics_jax.embedding.idf import Idf
from metrics_jax.embedding.token_batches import Side, Units

if TYPE_CHECKING:
    from metrics_jax.embedding.matching import Match


@dataclasses.dataclass(frozen=True)
class YiSi1(ContextualMetric):
    """The idf-weighted similarity of each run of tokens to the most similar run of the other text, 0 to 1.

    Semantic role structure is not used (beta = 0 in the paper's notation). Precision P averages over the runs of
    `n_gram` tokens of the hypothesis, recall R over those of the reference; the weight of a run is the sum of its
    tokens' idf. The similarity of two runs is the weighted mean of the cosines of their tokens in order, 0 if negative.
    If a text has fewer than `n_gram` tokens, the runs of both have that many. The score is
    P R / (alpha P + (1 - alpha) R). The paper's weights are log(1 + (N + 1) / (df + 1)).

    [CLS] and [SEP] take no part. Of several references, the first one with the highest score counts. If either text is
    empty, the score is 0.

    layer: the hidden state whose vectors are compared; 0 is the embedding layer, -1 the last. alpha: 0.7 for
    evaluation, 0.5 for tuning systems. idf, long: see `WeightedMetric`.
    """

    encoder: Encoder
    layer: int = -1
    n_gram: int = 1
    alpha: float = 0.7
    idf: Idf | IdfMode = "references"
    long: LongText = "truncate"

    name: ClassVar[str] = "yisi1"
    idf_form: ClassVar[str] = "yisi"
    columns: ClassVar[tuple[str, ...]] = ("yisi1", "precision", "recall")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("n_gram", self.n_gram, 1, MOST_ORDER)
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha={self.alpha}: must lie between 0 and 1")

    def units(self, tokens: Tokens, idf: Idf | None) -> Units:
        return Units.of(tokens, ~tokens.special, ~tokens.special, idf)

    @property
    def match(self) -> "Match":
        from metrics_jax.embedding.matching import Match, greedy

        return Match.of(greedy, n_gram=self.n_gram, nonnegative=True)

    def values(self, matched: Any, x: Side, y: Side, pairwise: bool) -> np.ndarray:
        precision, recall = (np.asarray(side, np.float64) for side in matched)
        return np.stack([f_score(precision, recall, self.alpha), precision, recall], axis=-1)
