"""Human judgements of texts, with the system that wrote each text and the item it was written for."""

import dataclasses
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from metrics_jax.judging.pairs import Groups

GROUPINGS = ("none", "item", "system")
OUTLIER = 2.5  # limit in scaled median absolute deviations
_SCALE = 1.483  # makes the median absolute deviation of a normal distribution equal its standard deviation


@dataclasses.dataclass(frozen=True)
class Judgements:
    """Human judgements of N texts.

    human: float[N], higher is better. systems and items: N labels each, the system that wrote a text, and the source
    segment, document or topic. system_human: human scores of whole systems; by default, a system's score is the mean of
    its texts'. Raises ValueError for unequal lengths, fewer than two texts, judgements that are not finite, a system
    with two texts of one item, and a system without a score.
    """

    human: np.ndarray
    systems: Sequence[Hashable] | None = None
    items: Sequence[Hashable] | None = None
    system_human: Mapping[Any, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "human", np.asarray(self.human, np.float64))
        if self.human.ndim != 1 or len(self.human) < 2:
            raise ValueError(
                f"human judgements must be one number for each of two or more texts, not {self.human.shape}"
            )
        if not np.isfinite(self.human).all():
            raise ValueError("human judgements contain NaN or infinity: leave such texts out")
        for name, labels in (("systems", self.systems), ("items", self.items)):
            if labels is not None and len(labels) != len(self.human):
                raise ValueError(f"{len(self.human)} human judgements but {len(labels)} {name}: there must be one each")
        if self.systems is not None and self.items is not None:
            counts = Counter(zip(self.systems, self.items, strict=True))
            if repeated := next((pair for pair, count in counts.items() if count > 1), None):
                raise ValueError(f"system {repeated[0]!r} has two texts of item {repeated[1]!r}")
        if self.system_human is not None and (unknown := [x for x in self.system_names if x not in self.system_human]):
            raise ValueError(f"system {unknown[0]!r} has texts but no score")

    @property
    def system_names(self) -> list[Hashable]:
        """The S systems, in the order of their first texts; raises ValueError if systems are unknown."""
        if self.systems is None:
            raise ValueError("the systems of the texts are unknown")
        return list(dict.fromkeys(self.systems))

    def labels(self, grouping: str) -> np.ndarray:
        """The group of each text, int[N]. Raises ValueError for a grouping that does not exist for these texts."""
        if grouping == "none":
            return np.zeros(len(self.human), int)
        names = {"item": self.items, "system": self.systems}.get(grouping)
        if names is None:
            if grouping not in GROUPINGS:
                raise ValueError(f"there is no grouping {grouping!r}; choose one of {', '.join(GROUPINGS)}")
            raise ValueError(f"the {grouping}s of the texts are unknown")
        numbers: dict[Hashable, int] = {}
        return np.array([numbers.setdefault(name, len(numbers)) for name in names])

    def groups(self, grouping: str) -> Groups:
        """The groups of texts that are compared with one another."""
        return Groups.of(self.labels(grouping))

    def system_means(self, scores: np.ndarray) -> np.ndarray:
        """Means float[..., S] by system of scores float[..., N] of texts."""
        groups = self.groups("system")
        return (scores[..., groups.rows] * groups.mask).sum(axis=-1) / groups.sizes

    def system_scores(self) -> np.ndarray:
        """The human scores of the systems, float[S]."""
        if self.system_human is None:
            return self.system_means(self.human)
        return np.array([self.system_human[name] for name in self.system_names], np.float64)

    def table(self, scores: np.ndarray) -> np.ndarray:
        """Scores float[N] arranged by system and item, float[S, I]; NaN where there is no text."""
        table = np.full((len(self.system_names), self.labels("item").max() + 1), np.nan)
        table[self.labels("system"), self.labels("item")] = scores
        return table

    def select(self, texts: np.ndarray) -> "Judgements":
        """The judgements of a subset of the texts, given as a mask bool[N]."""
        indices = np.flatnonzero(texts).tolist()
        systems, items = (
            None if labels is None else [labels[k] for k in indices] for labels in (self.systems, self.items)
        )
        return Judgements(self.human[indices], systems, items, self.system_human)

    def without_outliers(self) -> tuple["Judgements", np.ndarray]:
        """Drop systems far from the median, as WMT does. Returns also the mask bool[N] of the remaining texts.

        A system is dropped if |score - median| / (1.483 MAD) > 2.5, where MAD is the median of |score - median| (Mathur
        et al., 2020, section 4.2).
        """
        texts = ~far_from_median(self.system_scores())[self.labels("system")]
        return self.select(texts), texts


def far_from_median(scores: np.ndarray) -> np.ndarray:
    """Mask bool[S] of the outliers among system scores float[S]; see `Judgements.without_outliers`."""
    distances = np.abs(scores - np.median(scores))
    return distances > OUTLIER * _SCALE * np.median(distances)
