"""Ratings of texts by several raters: standardization, scores of texts and systems, agreement of the raters."""

import collections
import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from metrics_jax.judging.pairs import nan_mean
from metrics_jax.judging.raters import LEVELS, WEIGHTS, Level, Weights, cohen_kappa, fleiss_kappa, krippendorff_alpha

Text = tuple[str, str]  # system and item


@dataclasses.dataclass(frozen=True)
class Ratings:
    """N ratings of texts; a text is what a system wrote for an item, and a rater rates it once.

    scores: float[N], higher is better. raters, systems, items: N names each. Raises ValueError for unequal lengths, no
    ratings, scores that are not finite, and two ratings of a text by one rater.
    """

    scores: np.ndarray
    raters: Sequence[str]
    systems: Sequence[str]
    items: Sequence[str]

    def __post_init__(self) -> None:
        lengths = [len(labels) for labels in (self.scores, self.raters, self.systems, self.items)]
        if len(set(lengths)) > 1 or not lengths[0]:
            raise ValueError(f"{lengths} scores, raters, systems and items: there must be one each, and some")
        if not np.isfinite(self.scores).all():
            raise ValueError("scores contain NaN or infinity: leave such ratings out")
        counts = collections.Counter(zip(self.raters, self.systems, self.items, strict=True))
        (rater, system, item), count = counts.most_common(1)[0]
        if count > 1:
            raise ValueError(f"rater {rater!r} rated the text of system {system!r} for item {item!r} {count} times")

    @functools.cached_property
    def texts(self) -> dict[Text, list[int]]:
        """The T texts, in the order of their first ratings, and the indices of their ratings."""
        texts: dict[Text, list[int]] = {}
        for index, text in enumerate(zip(self.systems, self.items, strict=True)):
            texts.setdefault(text, []).append(index)
        return texts

    @functools.cached_property
    def by_rater(self) -> dict[str, list[int]]:
        """The raters, in the order of their first ratings, and the indices of their ratings."""
        raters: dict[str, list[int]] = {}
        for index, rater in enumerate(self.raters):
            raters.setdefault(rater, []).append(index)
        return raters

    @property
    def constant_raters(self) -> list[str]:
        """The raters who gave every text the same score."""
        return [rater for rater, indices in self.by_rater.items() if np.ptp(self.scores[indices]) == 0]

    def standardized(self) -> "Ratings":
        """Z-scores: (score - mean of the rater's scores) / their standard deviation (Graham et al., 2013).

        The standard deviation is that of a sample, with N - 1. The scores of `constant_raters` become 0, since they do
        not tell texts apart.
        """
        scores = np.zeros(len(self.scores))
        for indices in self.by_rater.values():
            own = self.scores[indices]
            if np.ptp(own):
                scores[indices] = (own - own.mean()) / own.std(ddof=1)
        return dataclasses.replace(self, scores=scores)

    def text_scores(self) -> np.ndarray:
        """Mean over the raters of each text, float[T]."""
        return np.array([self.scores[indices].mean() for indices in self.texts.values()])

    def system_scores(self) -> dict[str, float]:
        """Mean of the scores of each system's texts, best system first."""
        scores: dict[str, list[float]] = {}
        for (system, _), score in zip(self.texts, self.text_scores().tolist(), strict=True):
            scores.setdefault(system, []).append(score)
        means = {system: float(np.mean(values)) for system, values in scores.items()}
        return dict(sorted(means.items(), key=lambda item: -item[1]))

    def table(self) -> np.ndarray:
        """The ratings of each text, float[R, T], where R is the largest number of ratings of a text; NaN elsewhere."""
        table = np.full((max(map(len, self.texts.values())), len(self.texts)), np.nan)
        for column, indices in enumerate(self.texts.values()):
            table[: len(indices), column] = self.scores[indices]
        return table

    def pairs(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For every two raters with common texts, their scores of these, float[K] and float[K]."""
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for indices in self.texts.values():
            ratings = sorted((self.raters[index], float(self.scores[index])) for index in indices)
            for (rater, score), (other, its_score) in itertools.combinations(ratings, 2):
                found.setdefault((rater, other), []).append((score, its_score))
        return [(both[:, 0], both[:, 1]) for both in map(np.array, found.values())]


def light_kappa(ratings: Ratings, weights: Weights = "none") -> float:
    """Mean of Cohen's kappa over all pairs of raters with common texts (Light, 1971); NaN if none is defined.

    The labels of two raters are the scores that either gave to a common text; with weights, the ranks of `cohen_kappa`
    are those among these, so they may differ from pair to pair. Raises ValueError if no text has two ratings.
    """
    pairs = ratings.pairs()
    if not pairs:
        raise ValueError("no text has two ratings: agreement needs texts that were rated more than once")
    return float(nan_mean(np.array([cohen_kappa(one, other, weights) for one, other in pairs])))


def _alpha(level: Level, ratings: Ratings) -> float:
    return krippendorff_alpha(ratings.table(), level)


def _kappa(weights: Weights, ratings: Ratings) -> float:
    return light_kappa(ratings, weights)


def _fleiss(ratings: Ratings) -> float:
    return fleiss_kappa(ratings.table())


AGREEMENT: dict[str, Callable[[Ratings], float]] = {
    **{f"alpha_{level}": functools.partial(_alpha, level) for level in LEVELS},
    "kappa": functools.partial(_kappa, "none"),
    **{f"kappa_{weights}": functools.partial(_kappa, weights) for weights in WEIGHTS[1:]},
    "fleiss": _fleiss,
}
