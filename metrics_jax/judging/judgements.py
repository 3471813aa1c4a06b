"""Human judgements of texts: which system wrote each, what it was made from, and what people said of it."""

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from metrics_jax.judging.pairs import Groups

GROUPINGS = ("none", "item", "system")
OUTLIER = 2.5  # median absolute deviations, scaled as standard deviations of a normal distribution are
_SCALE = 1.483


@dataclasses.dataclass(frozen=True)
class Judgements:
    """What people said of N texts.

    human: float[N], higher is better. systems and items: N labels, which system wrote the text, and from which source
    segment, document or topic. system_human: scores of whole systems, where people gave such; else a system's is the
    mean of its texts'. ValueError for unequal lengths, fewer than two texts, judgements that are not finite, a system
    with two texts of one item, and a system without a score.
    """

    human: np.ndarray
    systems: Sequence[Hashable] | None = None
    items: Sequence[Hashable] | None = None
    system_human: Mapping[Any, float] | None = None

    def __post_init__(self) -> None:
        if self.human.ndim != 1 or len(self.human) < 2:
            raise ValueError(f"human judgements {self.human.shape}: two texts or more, one number each")
        if not np.isfinite(self.human).all():
            raise ValueError("human judgements hold NaN or infinity: leave such texts out")
        for what, labels in (("systems", self.systems), ("items", self.items)):
            if labels is not None and len(labels) != len(self.human):
                raise ValueError(f"{len(self.human)} human judgements but {len(labels)} {what}: one each")
        if self.systems is not None and self.items is not None:
            seen: set[tuple[Hashable, Hashable]] = set()
            for pair in zip(self.systems, self.items, strict=True):
                if pair in seen:
                    raise ValueError(f"system {pair[0]!r} has two texts of item {pair[1]!r}")
                seen.add(pair)
        if self.system_human is not None:
            for system in self.system_names:
                if system not in self.system_human:
                    raise ValueError(f"system {system!r} has texts but no score")

    @property
    def system_names(self) -> list[Hashable]:
        """S systems, in the order of their first texts; ValueError where no text has one."""
        if self.systems is None:
            raise ValueError("there are no systems")
        return list(dict.fromkeys(self.systems))

    def labels(self, grouping: str) -> np.ndarray:
        """-> int[N], which group each text is in; ValueError for a grouping that these texts do not have."""
        if grouping == "none":
            return np.zeros(len(self.human), int)
        names = {"item": self.items, "system": self.systems}.get(grouping)
        if names is None:
            what = f"{grouping}s" if grouping in GROUPINGS else f"grouping {grouping!r}, but {', '.join(GROUPINGS)}"
            raise ValueError(f"there are no {what}")
        numbers: dict[Hashable, int] = {}
        return np.array([numbers.setdefault(name, len(numbers)) for name in names])

    def groups(self, grouping: str) -> Groups:
        """Texts that are compared with one another: all, those of each item, or those of each system."""
        return Groups.of(self.labels(grouping))

    def system_means(self, scores: np.ndarray) -> np.ndarray:
        """Scores float[..., N] of texts -> float[..., S], their means by system."""
        groups = self.groups("system")
        return (scores[..., groups.rows] * groups.real).sum(axis=-1) / groups.sizes

    def system_scores(self) -> np.ndarray:
        """-> float[S], what people said of the systems."""
        if self.system_human is None:
            return self.system_means(self.human)
        return np.array([self.system_human[name] for name in self.system_names], np.float64)

    def table(self, scores: np.ndarray) -> np.ndarray:
        """Scores float[N] -> float[S, I], by system and item, NaN where there is none."""
        table = np.full((len(self.system_names), self.labels("item").max() + 1), np.nan)
        table[self.labels("system"), self.labels("item")] = scores
        return table

    def kept(self, texts: np.ndarray) -> "Judgements":
        """Those of the texts, bool[N]."""
        places = np.flatnonzero(texts).tolist()
        systems, items = (
            [some[k] for k in places] if some is not None else None for some in (self.systems, self.items)
        )
        return Judgements(self.human[places], systems, items, self.system_human)

    def without_outliers(self) -> tuple["Judgements", np.ndarray]:
        """Without systems far from the median, as WMT judges metrics of systems; and which texts stay, bool[N].

        Far: |score - median| / (1.483 MAD) > 2.5, where MAD is the median of the |score - median| (Mathur et al., 2020,
        section 4.2).
        """
        outliers = far_from_median(self.system_scores())
        texts = ~outliers[self.labels("system")]
        return self.kept(texts), texts


def far_from_median(scores: np.ndarray) -> np.ndarray:
    """Scores float[S] of systems -> bool[S]: which are outliers, as `Judgements.without_outliers`."""
    distances = np.abs(scores - np.median(scores))
    return distances > OUTLIER * _SCALE * np.median(distances)
