"""Files of judged texts as `nmt-jax judge` names them: `FILE`, `FOLDER`, `FILE|human:fluency|level:system`."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from metrics_jax.judging.agreement import LEVELS
from metrics_jax.judging.judgements import GROUPINGS, Judgements
from nmt_jax.data.readers.judgements import Columns, Judged, judged_files, read_judged
from nmt_jax.errors import UserError

_LISTS = ("reference", "human", "correlation")  # options that take several values, separated by +
_CHOICES = {"level": tuple(LEVELS), "grouping": tuple(GROUPINGS), "outliers": ("true", "false")}


@dataclasses.dataclass(frozen=True)
class Protocol:
    """Which coefficients to compute, and what they compare. The fields are flags of `nmt-jax judge`."""

    correlation: tuple[str, ...] = ("pearson",)
    level: str = "segment"
    grouping: str = "none"
    outliers: bool = True

    def judgements(self, judged: Judged, human: str) -> tuple[Judgements, np.ndarray]:
        """The judgements in column `human`, and bool[N]: which of the texts they cover.

        Raises ValueError if the level or the grouping needs labels that the file does not have.
        """
        judgements = Judgements(judged.human[human], judged.systems, judged.items, judged.system_human.get(human))
        for needed, labels in (("system", judged.systems), ("item", judged.items)):
            if labels is None and needed in (self.level, self.grouping):
                option = "level" if needed == self.level else "grouping"
                raise ValueError(
                    f"{judged.name}: {option} {needed} needs the {needed} of each text: pass --{needed}=COLUMN"
                )
        if self.outliers or self.level == "segment":
            return judgements, np.ones(len(judged.locations), bool)
        return judgements.without_outliers()


@dataclasses.dataclass(frozen=True)
class JudgedFiles:
    """One or several files of judged texts, named by one command-line argument, and the protocol they are judged by."""

    name: str
    files: list[Judged]
    protocol: Protocol


def read_judged_files(
    arguments: Sequence[str], columns: Columns, protocol: Protocol, system_scores: str
) -> list[JudgedFiles]:
    """Read every argument `PATH|option:value|...`, where PATH is a file, a folder or a pattern.

    Options override `columns`, `protocol` and `system_scores` for this argument; `name:` sets its name in the table.
    Raises UserError for a file that cannot be read, an unknown option, and two files or arguments with the same name.
    """
    result = [_read_argument(argument, columns, protocol, system_scores) for argument in arguments]
    for names in ([judged.name for entry in result for judged in entry.files], [entry.name for entry in result]):
        if repeated := [name for k, name in enumerate(names) if name in names[:k]]:
            raise UserError(f"two files have the name {repeated[0]} in the table: rename one with FILE|name:NAME")
    return result


def _read_argument(argument: str, columns: Columns, protocol: Protocol, system_scores: str) -> JudgedFiles:
    path, *options = argument.split("|")
    values = {"system_scores": system_scores, **_parse_options(argument, options)}
    columns = dataclasses.replace(columns, **{key: values[key] for key in values if hasattr(columns, key)})
    protocol = dataclasses.replace(protocol, **{key: values[key] for key in values if hasattr(protocol, key)})
    paths = judged_files(path)
    if values["system_scores"] and len(paths) > 1:
        raise UserError(
            f"--system_scores={values['system_scores']} holds the scores of one file, but {path} has {len(paths)} files"
        )
    judged = [read_judged(one, columns, values["system_scores"] or None) for one in paths]
    if len(judged) == 1:
        judged = [dataclasses.replace(judged[0], name=values.get("name", judged[0].name))]
        return JudgedFiles(judged[0].name, judged, protocol)
    return JudgedFiles(values.get("name") or path.rstrip("/").rpartition("/")[2], judged, protocol)


def _parse_options(argument: str, options: Sequence[str]) -> dict[str, Any]:
    """The values of `option:value` strings by name; raises UserError for an unknown option or value."""
    known = {field.name for kind in (Columns, Protocol) for field in dataclasses.fields(kind)} - {"scores"}
    values: dict[str, Any] = {}
    for option in options:
        key, colon, value = option.partition(":")
        if not colon or key not in {*known, "system_scores", "name"}:
            names = ", ".join([*sorted(known), "system_scores", "name"])
            raise UserError(f"{argument}: {option!r} is not option:value with one of the options {names}")
        if key in _CHOICES and value not in _CHOICES[key]:
            raise UserError(f"{argument}: {option!r}: choose one of {', '.join(_CHOICES[key])}")
        values[key] = tuple(value.split("+")) if key in _LISTS else value
    if "outliers" in values:
        values["outliers"] = values["outliers"] == "true"
    return values
