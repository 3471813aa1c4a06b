"""YiSi-1 (Lo, 2019): semantic similarity of a translation and its reference."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.embedding.bertscore import f_score
from metrics_jax.embedding.contextual import ContextualMetric, Counted, Long, Side, Units
from metrics_jax.embedding.encoder import Encoded, Encoder, encode
from metrics_jax.embedding.idf import Idf
from metrics_jax.references import best


@dataclasses.dataclass(frozen=True)
class YiSi1(ContextualMetric):
    """The idf-weighted similarity of each run of tokens to the most similar run of the other text, 0 to 1.

    Without the structure of semantic roles (beta 0 in the paper's terms). Precision P averages over the hypothesis'
    runs of `n_gram` tokens, recall R over the reference's, each weighing the sum of its tokens' idf; two runs are as
    similar as, on weighted average, their tokens in order, and those as the cosine of their vectors in `layer`. Where a
    text has fewer tokens the runs of both have as many; similarities below 0 count as 0. The score is
    P R / (alpha P + (1 - alpha) R): alpha 0.7 to judge, 0.5 to tune by. The paper weighs tokens by
    log(1 + (N + 1) / (df + 1)).

    [CLS] and [SEP] do not take part. Of several references the one with the best score counts, the first of equals. An
    empty text, on either side, scores 0. For `idf` and `long` see `ContextualMetric`.
    """

    encoder: Encoder
    layer: int = -1
    n_gram: int = 1
    alpha: float = 0.7
    idf: Idf | Counted = "references"
    long: Long = "truncate"

    name: ClassVar[str] = "yisi1"
    idf_form: ClassVar[str] = "yisi"
    columns: ClassVar[tuple[str, ...]] = ("yisi1", "precision", "recall")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_gram < 1:
            raise ValueError(f"n_gram={self.n_gram}: at least 1")
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha={self.alpha}: the weight of recall lies between 0 and 1")

    def encoded(self, texts: Sequence[str]) -> Encoded:
        """The vectors of the tokens of N texts."""
        return encode(self.encoder, texts, (self.layer,), long=self.long)

    def units(self, encoded: Encoded, idf: Idf | None) -> Units:
        """All tokens but the special ones."""
        return Units.of(encoded, ~encoded.special, ~encoded.special, idf)

    def compare(self, x: Side, y: Side, pairwise: bool) -> np.ndarray:
        """-> float64[..., 3]: score, precision, recall."""
        from metrics_jax.embedding.matching import greedy

        sides = greedy(x, y, n_gram=self.n_gram, nonnegative=True, pairwise=pairwise)
        precision, recall = (np.asarray(side, np.float64) for side in sides)
        return np.stack([f_score(precision, recall, self.alpha), precision, recall], axis=-1)

    def over_references(self, values: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """The columns of the best reference."""
        return values[best(values[:, 0], owner)]
