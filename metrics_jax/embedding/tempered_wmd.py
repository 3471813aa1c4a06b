"""Tempered Word Mover Distance (Chen et al., 2020), a similarity."""

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
class TemperedWMD(ContextualMetric):
    """How similar the tokens of two texts are under a plan of finite temperature; 1 for equal texts.

    The plan that maximises the mean cosine of what it pairs plus `temperature` times its entropy, TWMD, is approached
    from exp(cosine / temperature) by `num_iters` of Sinkhorn's iterations, each of which makes one side's sums right
    and then the other's. Precision is the mean cosine under the plan whose sums over the hypothesis' tokens were made
    right last, recall under the other one; after many iterations they are the same. relaxed: TRWMD, each token has a
    softmax over those of the other text, whose sums are let go. Precision, recall and F are divided by the geometric
    mean of those of each text with itself; the entropy is no part of them. F is 0 where P and R differ in sign.

    Defaults, the layer excepted, are of the authors' program without its batch centering, from which definitions are
    taken, too: one iteration, temperature 0.02, all tokens alike, [CLS] among them and [SEP] not. That program took
    the 10th of 12 layers or the 19th of 24. Not in the paper: idf, with which sums are shares of it. Not here:
    centering, by which a score depends on its neighbours.

    Of several references the one with the best F counts. A text without tokens scores 0, two of them 1. For `idf` and
    `long` see `ContextualMetric`.
    """

    encoder: Encoder
    layer: int = -1
    temperature: float = 0.02
    relaxed: bool = False
    num_iters: int = 1
    idf: Idf | Counted = "uniform"
    long: Long = "truncate"

    name: ClassVar[str] = "twmd"
    columns: ClassVar[tuple[str, ...]] = ("f1", "precision", "recall")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.temperature < np.inf:
            raise ValueError(f"temperature={self.temperature}: above 0, the authors' is 0.02")
        if self.num_iters < 1 or (self.relaxed and self.num_iters > 1):
            raise ValueError(f"num_iters={self.num_iters}: at least 1, and relaxed there is no more than 1")

    def encoded(self, texts: Sequence[str]) -> Encoded:
        """The vectors of the tokens of N texts."""
        return encode(self.encoder, texts, (self.layer,), long=self.long)

    def units(self, encoded: Encoded, idf: Idf | None) -> Units:
        """All tokens but the special ones that are not a text's first."""
        kept = ~encoded.special
        kept[encoded.starts[encoded.lengths > 0]] = True
        return Units.of(encoded, kept, kept, idf)

    def compare(self, x: Side, y: Side, pairwise: bool) -> np.ndarray:
        """-> float64[..., 3]: F, precision, recall."""
        own, others = self._similarities(x, x, False), self._similarities(y, y, False)
        squares = own[:, None] * others[None] if pairwise else own * others
        values = self._similarities(x, y, pairwise)
        scores = np.divide(values, np.sqrt(np.maximum(squares, 0)), out=np.zeros_like(values), where=squares > 0)
        left, right = (side.real.any(axis=-1) for side in (x, y))
        left, right = (left[:, None], right[None]) if pairwise else (left, right)
        return np.where((left & right)[..., None], scores, (left == right)[..., None])

    def _similarities(self, x: Side, y: Side, pairwise: bool) -> np.ndarray:
        """-> float64[..., 3]: F, precision, recall, as they are."""
        from metrics_jax.embedding.tempered_plan import similarity

        options = {"temperature": self.temperature, "relaxed": self.relaxed, "num_iters": self.num_iters}
        sides = similarity(x, y, **options, pairwise=pairwise)
        precision, recall = (np.asarray(side, np.float64) for side in sides)
        f1 = np.where(precision * recall > 0, f_score(precision, recall), 0)
        return np.stack([f1, precision, recall], axis=-1)

    def over_references(self, values: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """The columns of the best reference."""
        return values[best(values[:, 0], owner)]
