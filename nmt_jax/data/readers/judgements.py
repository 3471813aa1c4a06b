"""Files of human judgements: TSV or JSONL rows with configurable column names."""

from __future__ import annotations

import dataclasses
import glob
import pathlib
import warnings
from collections.abc import Iterator, Mapping

import numpy as np

from nmt_jax.data.lines import find
from nmt_jax.data.readers.table import SUFFIXES, Row, read_table, suffix
from nmt_jax.errors import UserError
from nmt_jax.storage.paths import path_of

SYSTEM_COLUMN = "system"  # in a file of system scores
BETTER, WORSE = 100.0, 0.0  # scores for the two texts of a ranked pair


@dataclasses.dataclass(frozen=True)
class Columns:
    """Names of the columns (TSV) or fields (JSONL) of a file.

    reference: one or more columns, each a text or, in JSONL, a list of texts. human: columns of human judgements, with
    `-` before the name if lower is better, as for ranks. scores: columns of metric scores. system, item: empty if the
    file has none. outputs: in JSONL, the field with a list of objects, each a text and its judgements, which inherit
    the other fields of their row. worse: for pairwise rankings, the column of the text that is worse than `hypothesis`.
    source: the column of what was translated.
    """

    hypothesis: str = "hypothesis"
    reference: tuple[str, ...] = ("reference",)
    human: tuple[str, ...] = ()
    system: str = ""
    item: str = ""
    outputs: str = ""
    worse: str = ""
    scores: tuple[str, ...] = ()
    source: str = ""


@dataclasses.dataclass(frozen=True)
class Judged:
    """N judged texts, each with its references and its location (FILE:LINE).

    human, scores: float64[N] by column. system_human: by column, the scores of systems, if there is a file of them.
    """

    name: str
    hypotheses: list[str]
    references: list[list[str]]
    locations: list[str]
    human: dict[str, np.ndarray]
    scores: dict[str, np.ndarray]
    systems: list[str] | None
    items: list[str] | None
    system_human: dict[str, dict[str, float]]
    sources: list[str] | None = None


def judged_files(path: str) -> list[pathlib.Path]:
    """The files of judged texts that `path` names: a file, a folder, or a pattern (`wmt17.*.tsv`), sorted by name.

    Files NAME.sys.tsv are ignored. Raises UserError if there are none.
    """
    folder = path_of(path)
    if folder.is_dir():
        candidates = sorted(folder.iterdir())
    elif glob.has_magic(path) and not folder.exists():
        candidates = sorted(map(pathlib.Path, glob.glob(path)))
    else:
        return [find(path)]
    files = [file for file in candidates if suffix(file) in SUFFIXES and ".sys." not in file.name]
    if not files:
        raise UserError(f"{path}: no {' or '.join(SUFFIXES)} file found, plain or with .gz")
    return files


def read_judged(path: pathlib.Path, columns: Columns, systems: str | None = None, *, unjudged: bool = False) -> Judged:
    """Read the judged texts of a file.

    unjudged: allow texts without a column of judgements. systems: a file of system-level scores, with a column
    `system` and the same columns of judgements; the default is NAME.sys.tsv if the texts are in NAME.seg.tsv.
    Raises UserError `FILE:LINE: …` for a missing column or number, a row of the wrong length, a system with two
    texts for the same item, or a system without a score; and UserError `FILE: …` if all judgements are equal.
    """
    if not columns.human and not columns.worse and not unjudged:
        raise UserError(f"{path}: name the columns of human judgements with --human=COLUMN")
    texts: list[str] = []
    references, locations, names, items, sources = [], [], [], [], []
    names_of_human = columns.human or (("rank",) if columns.worse else ())
    signs = {name.removeprefix("-"): -1.0 if name.startswith("-") else 1.0 for name in names_of_human}
    human: dict[str, list[float]] = {name: [] for name in signs}
    scores: dict[str, list[float]] = {name: [] for name in columns.scores}
    seen: dict[tuple[str, str], str] = {}
    for row in _rows(path, columns.outputs):
        sides = [columns.hypothesis, *([columns.worse] if columns.worse else [])]
        row_references = [text for name in columns.reference for text in row.texts(name, at_least=1)]
        for number, side in enumerate(sides):
            if not isinstance(text := row.value(side), str):
                raise UserError(f"{row.location}: {side!r} is not a string")
            texts.append(text)
            references.append(row_references)
            sources += row.texts(columns.source, at_least=1)[:1] if columns.source else []
            locations.append(row.location)
            names.append(str(row.value(columns.system)) if columns.system else "")
            items.append(row.location if columns.worse else str(row.value(columns.item)) if columns.item else "")
            for name, numbers in human.items():
                numbers.append((BETTER, WORSE)[number] if columns.worse else signs[name] * row.number(name))
            for name, numbers in scores.items():
                numbers.append(row.number(name))
        if columns.system and columns.item and not columns.worse:
            key = (names[-1], items[-1])
            if key in seen:
                raise UserError(f"{row.location}: system {key[0]} already has a text for item {key[1]} in {seen[key]}")
            seen[key] = row.location
    if len(texts) < 2:
        raise UserError(f"{path}: {len(texts)} judged texts: at least two are needed")
    for name, numbers in human.items():
        if len(set(numbers)) == 1:
            same = f"all {len(numbers)} judgements {name!r} are {numbers[0]:g}"
            raise UserError(f"{path}: {same}: agreement is undefined")
    by_system = {}
    if signs and columns.system and not columns.worse and (file := _system_file(path, systems)):
        by_system = _read_systems(file, signs, dict(zip(names, locations, strict=True)))
    return Judged(
        path.name.removesuffix(".gz").removesuffix(suffix(path)).removesuffix(".seg"),
        texts,
        references,
        locations,
        {name: np.array(numbers) for name, numbers in human.items()},
        {name: np.array(numbers) for name, numbers in scores.items()},
        names if columns.system and not columns.worse else None,
        items if columns.item or columns.worse else None,
        by_system,
        sources if columns.source else None,
    )


def _system_file(path: pathlib.Path, named: str | None) -> pathlib.Path | None:
    """The file of system scores that belongs to a file of texts, if any."""
    if named:
        return find(named)
    if ".seg." not in path.name:
        return None
    plain = path.with_name(path.name.removesuffix(".gz").replace(".seg.", ".sys."))
    return next((file for file in (plain, plain.with_name(f"{plain.name}.gz")) if file.is_file()), None)


def _read_systems(
    path: pathlib.Path, signs: Mapping[str, float], texts: Mapping[str, str]
) -> dict[str, dict[str, float]]:
    """The scores of systems by column, times its sign; `texts` maps each system to the location of one of its texts."""
    scores: dict[str, dict[str, float]] = {name: {} for name in signs}
    first = next(iter(scores.values()))
    for row in _rows(path):
        system = str(row.value(SYSTEM_COLUMN))
        if system in first:
            raise UserError(f"{row.location}: duplicate system {system}")
        for name, numbers in scores.items():
            numbers[system] = signs[name] * row.number(name)
    for system, location in texts.items():
        if system not in first:
            raise UserError(f"{location}: system {system} has no score in {path}")
    if others := [system for system in first if system not in texts]:
        warnings.warn(f"{path}: systems without texts are ignored: {', '.join(others)}", stacklevel=2)
    return scores


def _rows(path: pathlib.Path, outputs: str = "") -> Iterator[Row]:
    """The rows of a file; with `outputs`, one row per object in that field, merged with the other fields."""
    for row in read_table(path, "judged texts"):
        if not outputs:
            yield row
            continue
        objects = row.value(outputs)
        if not isinstance(objects, list) or not all(isinstance(fields, dict) for fields in objects):
            raise UserError(f"{row.location}: {outputs!r} is not a list of objects")
        yield from (row._replace(fields=row.fields | fields) for fields in objects)
