"""MoverScore (Zhao et al., 2019)."""

import dataclasses
import string
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from metrics_jax.api import MOST_ORDER, check_range, starts
from metrics_jax.embedding.contextual import ContextualMetric, IdfMode, LongText
from metrics_jax.embedding.encoder import Encoder, Tokens
from metrics_jax.embedding.exact_transport import Problem, exact
from metrics_jax.embedding.idf import Idf
from metrics_jax.embedding.token_batches import Side, Units
from metrics_jax.embedding.transport import check_method
from metrics_jax.surface import stop_words

if TYPE_CHECKING:
    from metrics_jax.embedding.matching import Match

LAYERS = {"v1": (-5, -4, -3, -2, -1), "v2": (-1,)}  # by variant
_PUNCTUATION = frozenset(string.punctuation)


@dataclasses.dataclass(frozen=True)
class MoverScore(ContextualMetric):
    """The transport cost between the tokens of hypothesis and reference as a similarity; 1 if nothing needs to move.

    variant "v1", as in the paper (section 3): token vectors are the element-wise minimum, mean and maximum of `layers`,
    by default the last five. Runs of `n_gram` tokens are moved, whose vectors are idf-weighted means scaled to length
    1. The score is 1 minus the optimal cost with squared distances, so it may be negative. Variant "v2", the authors'
    later program: the last layer, single tokens, 1 / (1 + optimal cost) with plain distances.

    Punctuation and stop words take no part, nor do pieces that continue a word (BERT's ##) with remove_subwords, which
    v2's program always has on. [CLS] and [SEP] take part, so an empty text has a score. If no token of one text takes
    part, the score is 0; if none of both does, it is 1. The scores for several references are averaged.

    stop_words: pieces in the form of the vocabulary, or ("smart",) for the SMART list. idf: weights of the reference's
    tokens. hypothesis_idf: weights of the hypothesis's tokens; None means the same. The published programs count them
    in all hypotheses, see `Idf.fit`. transport: "exact", or "sinkhorn" (`sinkhorn.sinkhorn`), which
    overestimates the cost by at most `parts["gap"]`. idf, long: see `WeightedMetric`.
    """

    encoder: Encoder
    variant: Literal["v1", "v2"] = "v1"
    n_gram: int = 1
    stop_words: tuple[str, ...] = ()
    remove_subwords: bool = True
    idf: Idf | IdfMode = "uniform"
    hypothesis_idf: Idf | None = None
    transport: Literal["exact", "sinkhorn"] = "exact"
    layers: tuple[int, ...] = ()
    long: LongText = "truncate"

    name: ClassVar[str] = "moverscore"
    columns: ClassVar[tuple[str, ...]] = ("moverscore", "gap")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in LAYERS:
            raise ValueError(f"variant={self.variant!r} is none of {', '.join(LAYERS)}")
        check_range("n_gram", self.n_gram, 1, MOST_ORDER)
        if self.variant == "v2" and self.n_gram > 1:
            raise ValueError(f"n_gram={self.n_gram}: must be exactly 1 with variant v2")
        check_method(self.transport)
        object.__setattr__(self, "stop_words", stop_words.named(self.stop_words))
        object.__setattr__(self, "layers", tuple(self.layers) or LAYERS[self.variant])

    @property
    def selection(self) -> tuple[tuple[int, ...], str]:
        return self.layers, "power_means" if self.variant == "v1" else "mean"

    def units(self, tokens: Tokens, idf: Idf | None) -> Units:
        ids, inverse = np.unique(tokens.ids, return_inverse=True)
        excluded = _PUNCTUATION | stop_words.members(self.stop_words)
        pieces = self.encoder.pieces(ids.tolist())
        dropped = [piece in excluded or (self.remove_subwords and "##" in piece) for piece in pieces]
        kept = ~np.array(dropped, bool)[inverse] | tokens.special
        return Units.of(tokens, kept, kept, idf)

    @property
    def match(self) -> "Match":
        """The costs; with transport="sinkhorn", the optimal cost and the bound on its error."""
        from metrics_jax.embedding import matching

        costs = matching.Match.of(matching.distances)
        if self.variant == "v1":
            costs = matching.Match.of(matching.squared_distances, n_gram=self.n_gram)
        if self.transport == "exact":
            return costs
        return matching.Match.of(matching.transport_cost, costs=costs, n_gram=self.n_gram)

    def values(self, matched: Any, x: Side, y: Side, pairwise: bool) -> np.ndarray:
        from metrics_jax.embedding.matching import both_weights

        a, b = both_weights(x, y, self.n_gram, pairwise)
        found = matched
        if self.transport == "exact":
            solution = exact(a, b, matched)
            found = solution.value, solution.gap
        value, gap = (np.asarray(one, np.float64) for one in found)
        score = 1 - value if self.variant == "v1" else 1 / (1 + value)
        left, right = a.any(axis=-1), b.any(axis=-1)
        return np.stack([np.where(left & right, score, left == right), gap], axis=-1)

    def problem(self, x: Side, y: Side) -> Problem:
        """The transport problems between the runs that begin at each of S and T tokens of B pairs."""
        from metrics_jax.embedding.matching import both_weights

        costs = dataclasses.replace(self, transport="exact").match
        return *both_weights(x, y, self.n_gram, pairwise=False), np.asarray(costs(x, y, pairwise=False))

    def over_references(self, values: np.ndarray, owner: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, starts(owner)) / np.bincount(owner)[:, None]
