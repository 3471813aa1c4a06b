"""Scores of labelled texts: numbers of one or several columns, and the units in which they are learned."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from nmt_jax.data.readers.labelled import Labelled
from nmt_jax.errors import UserError


@dataclasses.dataclass(frozen=True)
class ScoreScaler:
    """Origin and unit of each column of scores: what is learned of a score is (score - origin) / unit."""

    columns: Mapping[str, Sequence[float]]

    @classmethod
    def fit(cls, texts: Iterable[Labelled], by_range: bool = False) -> ScoreScaler:
        """The mean and the standard deviation of each column, or by range the least score and the range.

        UserError for a score that is no number, and for a column that has one score only.
        """
        found: dict[str, list[float]] = {}
        for item in texts:
            for column, score in scores(item).items():
                found.setdefault(column, []).append(score)
        if not found:
            raise UserError("config.data.train: no text is left to learn from")
        columns = {}
        for column, values in found.items():
            numbers = np.array(values)
            if not np.ptp(numbers):
                raise UserError(f"config.data.label: all training texts have one score in column {column!r}")
            scale = (numbers.min(), np.ptp(numbers)) if by_range else (numbers.mean(), numbers.std())
            columns[column] = [float(value) for value in scale]
        return cls(columns)

    def scaled(self, item: Labelled) -> list[float]:
        """The scores of a text in their units; UserError for a column that no training text has."""
        for column in item.columns:
            if column not in self.columns:
                raise UserError(f"{item.where}: no training text has scores in a column {column!r}")
        return [(score - self.columns[column][0]) / self.columns[column][1] for column, score in scores(item).items()]

    def written(self, label: str, outputs: Sequence[float]) -> str:
        """What was learned, as scores of the columns `label` (of alternatives the first known), with tabs between."""
        chosen = [next(name for name in names.split("|") if name in self.columns) for names in label.split(",")]
        scaled = zip((self.columns[column] for column in chosen), outputs, strict=True)
        return "\t".join(f"{origin + unit * output:.4f}" for (origin, unit), output in scaled)

    def __str__(self) -> str:
        """For people: `score = 2.7 + 1.5 y`."""
        return ", ".join(f"{name} = {origin:.3g} + {unit:.3g} y" for name, (origin, unit) in self.columns.items())


def scores(item: Labelled) -> dict[str, float]:
    """The scores of a text by column; UserError where one is no number."""
    found = {}
    for column, text in zip(item.columns, item.label.split("\t"), strict=True):
        try:
            found[column] = float(text)
        except ValueError:
            found[column] = math.nan
        if not math.isfinite(found[column]):
            raise UserError(f"{item.where}: the score {text!r} is no number; for labels set config.data.scores=false")
    return found
