"""MoverScore (Zhao et al., 2019)."""

import dataclasses
import string
from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from metrics_jax.embedding.contextual import ContextualMetric, Counted, Long, Side, Units
from metrics_jax.embedding.encoder import Encoded, Encoder, encode
from metrics_jax.embedding.exact_transport import Problem
from metrics_jax.embedding.idf import Idf
from metrics_jax.embedding.transport import check_method, solution
from metrics_jax.references import starts
from metrics_jax.surface import stop_words

LAYERS = {"v1": (-5, -4, -3, -2, -1), "v2": (-1,)}  # a variant's
_PUNCTUATION = frozenset(string.punctuation)


@dataclasses.dataclass(frozen=True)
class MoverScore(ContextualMetric):
    """How little it takes to move the tokens of the hypothesis onto the reference's; 1 for nothing to move.

    variant "v1", the paper's (section 3): vectors are the element-wise minimum, mean and maximum of `layers`, by
    default the last five; what moves is runs of `n_gram` tokens, their vectors weighted by idf and scaled to length 1;
    the score is 1 less the least cost, of squared distances, so that it may be negative. "v2", the authors' later
    program: the last layer, tokens, 1 / (1 + least cost) of distances.

    Punctuation and `stop_words` (pieces as the vocabulary writes them, or ("smart",) for SMART's list) take no part;
    with remove_subwords neither do pieces that continue a word (BERT's ##), as always in v2's program. [CLS] and [SEP]
    do, so an empty text has a score; where nothing at all is left of one text it is 0, of both 1. idf weighs the
    reference's tokens, hypothesis_idf the hypothesis' (None: the same; the published programs count them in all
    hypotheses, see `count`).

    transport: "exact", or "sinkhorn" (`sinkhorn.sinkhorn`), which scores lower by at most `parts["gap"]` in cost. Of
    several references the mean counts. For `idf` and `long` see `ContextualMetric`.
    """

    encoder: Encoder
    variant: Literal["v1", "v2"] = "v1"
    n_gram: int = 1
    stop_words: tuple[str, ...] = ()
    remove_subwords: bool = True
    idf: Idf | Counted = "uniform"
    hypothesis_idf: Idf | None = None
    transport: Literal["exact", "sinkhorn"] = "exact"
    layers: tuple[int, ...] = ()
    long: Long = "truncate"

    name: ClassVar[str] = "moverscore"
    columns: ClassVar[tuple[str, ...]] = ("moverscore", "gap")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in LAYERS:
            raise ValueError(f"variant={self.variant!r} is none of {', '.join(LAYERS)}")
        if self.n_gram < 1 or (self.variant == "v2" and self.n_gram > 1):
            raise ValueError(f"n_gram={self.n_gram}: at least 1, and v2 has no longer runs than 1")
        check_method(self.transport)
        object.__setattr__(self, "stop_words", stop_words.named(self.stop_words))
        object.__setattr__(self, "layers", tuple(self.layers) or LAYERS[self.variant])

    @property
    def hypothesis_weights(self) -> Idf | None:
        """The weights of the hypotheses' tokens; None: uniform."""
        return super().hypothesis_weights if self.hypothesis_idf is None else self.hypothesis_idf

    def encoded(self, texts: Sequence[str]) -> Encoded:
        """The vectors of the tokens of N texts."""
        combine = "power_means" if self.variant == "v1" else "mean"
        return encode(self.encoder, texts, self.layers, combine=combine, long=self.long)

    def units(self, encoded: Encoded, idf: Idf | None) -> Units:
        """What is left without punctuation, stop words and sub-words."""
        ids, inverse = np.unique(encoded.ids, return_inverse=True)
        unwanted = _PUNCTUATION | stop_words.members(self.stop_words)
        pieces = self.encoder.pieces(ids.tolist())
        dropped = [piece in unwanted or (self.remove_subwords and "##" in piece) for piece in pieces]
        kept = ~np.array(dropped, bool)[inverse] | encoded.special
        return Units.of(encoded, kept, kept, idf)

    def compare(self, x: Side, y: Side, pairwise: bool) -> np.ndarray:
        """-> float64[..., 2]: the score, and by how much the cost may be too high."""
        a, b, cost = self.problem(x, y, pairwise)
        found = solution(a, b, cost, self.transport)
        value, gap = np.asarray(found.value, np.float64), np.asarray(found.gap, np.float64)
        score = 1 - value if self.variant == "v1" else 1 / (1 + value)
        left, right = a.any(axis=-1), b.any(axis=-1)
        return np.stack([np.where(left & right, score, left == right), gap], axis=-1)

    def problem(self, x: Side, y: Side, pairwise: bool) -> Problem:
        """What is moved of each text, runs that begin at each of S and T tokens, and what that costs."""
        from metrics_jax.embedding import matching

        if self.variant == "v1":
            cost = np.asarray(matching.squared_distances(x, y, n_gram=self.n_gram, pairwise=pairwise))
        else:
            cost = np.asarray(matching.distances(x, y, pairwise=pairwise))
        a, b = (_run_weights(side, self.n_gram) for side in (x, y))
        if pairwise:
            a, b = (np.broadcast_to(w, (*cost.shape[:2], w.shape[-1])) for w in (a[:, None], b[None]))
        return a, b, cost

    def over_references(self, values: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """The mean of each column."""
        return np.add.reduceat(values, starts(owner)) / np.bincount(owner)[:, None]


def _run_weights(side: Side, n_gram: int) -> np.ndarray:
    """-> float64[..., S]: the weights of the runs that begin at each token, 0 for none; a short text is one run."""
    padded = np.pad(side.weights, ((0, 0), (0, n_gram - 1)))
    sums = sum(padded[:, k : k + side.weights.shape[1]] for k in range(n_gram))
    num_runs = np.maximum(side.real.sum(axis=1) - n_gram + 1, 1)
    return np.where(np.arange(side.weights.shape[1]) < num_runs[:, None], sums, 0.0)
