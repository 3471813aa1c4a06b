"""Scores of labelled texts, in one or more columns, and the scale on which models predict them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from nmt_jax.data.readers.labelled import Labelled
from nmt_jax.errors import UserError


@dataclasses.dataclass(frozen=True)
class ScoreScaler:
    """Origin and unit of each column of scores; models predict (score - origin) / unit."""

    columns: Mapping[str, Sequence[float]]

    @classmethod
    def fit(cls, texts: Iterable[Labelled], by_range: bool = False) -> ScoreScaler:
        """Uses the mean and standard deviation of each column, or with `by_range` its minimum and range.

        Raises UserError if a score is not a number, or if all scores of a column are equal.
        """
        found: dict[str, list[float]] = {}
        for item in texts:
            for column, score in scores(item).items():
                found.setdefault(column, []).append(score)
        if not found:
            raise UserError("config.data.train: no text to train on")
        columns = {}
        for column, values in found.items():
            numbers = np.array(values)
            if not np.ptp(numbers):
                raise UserError(f"config.data.label: all training texts have the same score in column {column!r}")
            scale = (numbers.min(), np.ptp(numbers)) if by_range else (numbers.mean(), numbers.std())
            columns[column] = [float(value) for value in scale]
        return cls(columns)

    def scaled(self, item: Labelled) -> list[float]:
        """The scaled scores of a text. Raises UserError for a column that no training text has."""
        for column in item.columns:
            if column not in self.columns:
                raise UserError(f"{item.location}: column {column!r} does not occur in the training texts")
        return [(score - self.columns[column][0]) / self.columns[column][1] for column, score in scores(item).items()]

    def format(self, label: str, outputs: Sequence[float]) -> str:
        """Predictions on the original scale, separated by tabs; `label` names columns as `config.data.label` does."""
        chosen = [next(name for name in names.split("|") if name in self.columns) for names in label.split(",")]
        scaled = zip((self.columns[column] for column in chosen), outputs, strict=True)
        return "\t".join(f"{origin + unit * output:.4f}" for (origin, unit), output in scaled)

    def __str__(self) -> str:
        """For display: `score = 2.7 + 1.5 y`."""
        return ", ".join(f"{name} = {origin:.3g} + {unit:.3g} y" for name, (origin, unit) in self.columns.items())


def scores(item: Labelled) -> dict[str, float]:
    """The scores of a text by column. Raises UserError if one is not a number."""
    found = {}
    for column, text in zip(item.columns, item.label.split("\t"), strict=True):
        try:
            found[column] = float(text)
        except ValueError:
            found[column] = math.nan
        if not math.isfinite(found[column]):
            raise UserError(
                f"{item.location}: the score {text!r} is not a number; for class labels set config.data.scores=false"
            )
    return found
