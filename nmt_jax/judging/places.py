"""Where judgements are, and how each is to be agreed with: `FILE`, `FOLDER`, `FILE|human:fluency|level:system`."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from metrics_jax.judging.agreement import LEVELS
from metrics_jax.judging.judgements import GROUPINGS, Judgements
from nmt_jax.data.readers.judgements import Columns, Judged, files, read_judged
from nmt_jax.errors import UserError

_LISTS = ("reference", "human", "correlation")  # of which there may be several, joined by +
_CHOICES = {"level": tuple(LEVELS), "grouping": tuple(GROUPINGS), "outliers": ("true", "false")}


@dataclasses.dataclass(frozen=True)
class Protocol:
    """Which coefficients, and what is compared; the fields are flags of `nmt-jax judge`."""

    correlation: tuple[str, ...] = ("pearson",)
    level: str = "segment"
    grouping: str = "none"
    outliers: bool = True

    def judgements(self, judged: Judged, human: str) -> tuple[Judgements, np.ndarray]:
        """The judgements of a column, and bool[N], which texts are among them; ValueError for no systems."""
        judgements = Judgements(judged.human[human], judged.systems, judged.items, judged.system_human.get(human))
        if self.level == "system" and judged.systems is None:
            raise ValueError(f"{judged.name}: there are no systems: --system=COLUMN")
        if self.outliers or self.level == "segment":
            return judgements, np.ones(len(judged.where), bool)
        return judgements.without_outliers()


@dataclasses.dataclass(frozen=True)
class Place:
    """The files of a place, one or several, read by its own columns, and its protocol."""

    name: str
    sets: list[Judged]
    protocol: Protocol


def read_places(places: Sequence[str], columns: Columns, protocol: Protocol, system_scores: str) -> list[Place]:
    """Files, or folders of files; after a name may stand other columns and another protocol than the given ones.

    `name:` there is what a table calls it, if not as the file. UserError for what cannot be read, for options that do
    not exist, and for two files or places of one name.
    """
    found = [_read_place(place, columns, protocol, system_scores) for place in places]
    for names in ([judged.name for place in found for judged in place.sets], [place.name for place in found]):
        if repeated := [name for k, name in enumerate(names) if name in names[:k]]:
            raise UserError(f"two files are called {repeated[0]}: rename one, the table names them so")
    return found


def _read_place(place: str, columns: Columns, protocol: Protocol, system_scores: str) -> Place:
    path, *own = place.split("|")
    options = {field.name for kind in (Columns, Protocol) for field in dataclasses.fields(kind)} - {"scores"}
    given: dict[str, Any] = {"system_scores": system_scores}
    for option in own:
        key, colon, value = option.partition(":")
        if not colon or key not in {*options, "system_scores", "name"}:
            known = ", ".join([*sorted(options), "system_scores", "name"])
            raise UserError(f"{place}: after | stands option:value, of {known}, not {option!r}")
        if key in _CHOICES and value not in _CHOICES[key]:
            raise UserError(f"{place}: {option!r}: choose one of {', '.join(_CHOICES[key])}")
        given[key] = tuple(value.split("+")) if key in _LISTS else value
    if "outliers" in given:
        given["outliers"] = given["outliers"] == "true"
    columns = dataclasses.replace(columns, **{key: given[key] for key in given if hasattr(columns, key)})
    protocol = dataclasses.replace(protocol, **{key: given[key] for key in given if hasattr(protocol, key)})
    found = files(path)
    if given["system_scores"] and len(found) > 1:
        raise UserError(f"--system_scores={given['system_scores']} is of one file, but {path} has {len(found)}")
    sets = [read_judged(one, columns, given["system_scores"] or None) for one in found]
    if len(sets) == 1:
        sets = [dataclasses.replace(sets[0], name=given.get("name", sets[0].name))]
        return Place(sets[0].name, sets, protocol)
    return Place(given.get("name") or path.rstrip("/").rpartition("/")[2], sets, protocol)
