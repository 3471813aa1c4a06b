"""BaryScore (Colombo, Staerman, Clavel and Piantanida, 2021)."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from scipy.spatial.distance import cdist

from metrics_jax.api import check_sequences
from metrics_jax.embedding.contextual import IdfMode, LongText, WeightedMetric, check_finite
from metrics_jax.embedding.encoder import Encoder, encode
from metrics_jax.embedding.exact_transport import Problem, exact
from metrics_jax.embedding.idf import Idf
from metrics_jax.embedding.token_batches import SPAN_BYTES, spans
from metrics_jax.embedding.transport import solve

FARTHEST = 4.0  # the largest squared distance of two points of length at most 1
Points = tuple[np.ndarray, np.ndarray]  # of a text: float64[n, D], and their weights float64[n], which sum to 1


@dataclasses.dataclass(frozen=True)
class BaryScore(WeightedMetric):
    """The squared Wasserstein distance between the barycenters of two texts; 0 to 4, lower is better.

    In each layer, a text is a cloud of its token vectors, scaled to length 1 and weighted by idf. Its barycenter is the
    cloud of as many points with the same weights whose mean squared Wasserstein distance to those of the layers is
    least (section 3). It is found by the fixed-point iteration of Cuturi and Doucet (2014), which begins at the mean of
    each token's vectors, and is a local optimum. Special tokens have no weight. Two texts without tokens have distance
    0; if only one has none, it is 4. Of several references, the nearest counts. The corpus score is the mean over
    segments.

    layers: hidden states; by default the last five. hypothesis_idf: weights of the hypothesis's tokens; None means the
    same as idf. idf, long: see `WeightedMetric`.
    """

    encoder: Encoder
    layers: tuple[int, ...] = (-5, -4, -3, -2, -1)
    idf: Idf | IdfMode = "references"
    hypothesis_idf: Idf | None = None
    long: LongText = "truncate"

    name: ClassVar[str] = "baryscore"
    higher_is_better: ClassVar[bool] = False
    columns: ClassVar[tuple[str, ...]] = ("baryscore",)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "layers", tuple(self.layers))

    def score_pairs(self, hypotheses: Sequence[str], references: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        scores, long = np.zeros(len(hypotheses)), np.zeros(len(hypotheses), bool)
        for span in spans(hypotheses, references, SPAN_BYTES):
            x, y, cut = self._clouds([hypotheses[k] for k in span], [references[k] for k in span])
            scores[span] = _distances([*zip(x, y, strict=True)])
            long[span] = cut[: len(span)] | cut[len(span) :]
        return scores[:, None], long

    def pairwise(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """The score of every hypothesis against every single reference, float[H, R]; each text is encoded once."""
        check_sequences(hypotheses, references)
        if not hypotheses or not references:
            return np.zeros((len(hypotheses), len(references)))
        sides = ([text.strip() for text in texts] for texts in (hypotheses, references))
        x, y, _ = self.fitted(references)._clouds(*sides)
        return _distances([*itertools.product(x, y)]).reshape(len(x), len(y))

    def _clouds(
        self, hypotheses: Sequence[str], references: Sequence[str]
    ) -> tuple[list[Points], list[Points], np.ndarray]:
        """The barycenters of hypotheses and references, and whether each text was too long, hypotheses first."""
        encoded = check_finite(encode(self.encoder, [*hypotheses, *references], self.layers, long=self.long))
        own = self.idf if isinstance(self.idf, Idf) else None
        sides: list[list[Points]] = []
        width = encoded.vectors.shape[1] // len(self.layers)
        for numbers, idf in (
            (range(len(hypotheses)), self.hypothesis_weights),
            (range(len(hypotheses), len(encoded)), own),
        ):
            known: dict[tuple[int, int], Points] = {}  # equal texts have the same rows
            places = [(int(encoded.starts[number]), int(encoded.lengths[number])) for number in numbers]
            for number, place in zip(numbers, places, strict=True):
                if place not in known:
                    vectors, ids, special = encoded[number]
                    states = vectors.astype(np.float64).reshape(len(ids), len(self.layers), width).swapaxes(0, 1)
                    known[place] = _cloud(states, ids, ~special, idf)
            sides.append([known[place] for place in places])
        return sides[0], sides[1], encoded.long


def _cloud(states: np.ndarray, ids: np.ndarray, words: np.ndarray, idf: Idf | None) -> Points:
    """The barycenter of a text from its states float64[L, S, D]; words bool[S]: the tokens that may have weight."""
    weights = idf.weights(ids[None], words[None])[0] if idf else words.astype(np.float64)
    real = weights > 0
    if not real.any():
        return np.zeros((0, states.shape[-1])), np.zeros(0)
    weights = weights[real] / weights[real].sum()
    return barycenter(states[:, real], weights), weights


def barycenter(clouds: np.ndarray, weights: np.ndarray, *, num_iters: int = 100, threshold: float = 1e-7) -> np.ndarray:
    """The points float64[n, D] of a Wasserstein barycenter of L clouds float64[L, n, D], all with weights float64[n].

    Each iteration moves every point to the mean of the points that the optimal plans carry it to (Cuturi and Doucet,
    2014, algorithm 2 with step 1). It stops when the squared movement of all points is below the threshold.
    """
    points = clouds.mean(axis=0)
    for _ in range(num_iters):
        costs = np.stack([cdist(points, cloud, "sqeuclidean") for cloud in clouds])
        every = np.broadcast_to(weights, costs.shape[:-1])
        moved = (exact(every, every, costs).plan @ clouds).mean(axis=0) / weights[:, None]
        movement, points = ((moved - points) ** 2).sum(), moved
        if movement < threshold:
            break
    return points


def _distances(pairs: Sequence[tuple[Points, Points]]) -> np.ndarray:
    """The squared Wasserstein distance float64[P] of P pairs of clouds."""
    problems: list[Problem] = [(a, b, cdist(x, y, "sqeuclidean")) for (x, a), (y, b) in pairs]
    both = np.array([len(a) * len(b) > 0 for a, b, _ in problems], bool)
    neither = np.array([len(a) + len(b) == 0 for a, b, _ in problems], bool)
    return np.where(both, solve(problems)[0], np.where(neither, 0.0, FARTHEST))
