"""Files of annotations: one rater's errors or scores of a text, in the formats of WMT (MQM, ESA) or as plain scores."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nmt_jax.data.lines import num_lines
from nmt_jax.data.readers.table import Row, read_table
from nmt_jax.errors import UserError
from nmt_jax.progress import track

NO_ERROR = "no-error"  # in an MQM file, the severity in the row of a text without errors
MISSING = "missing"  # in an ESA file, the position of words that the text lacks
_MARK = re.compile(r"</?v>")
_BREAK = re.compile(r"[\t\r\n]")

Span = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class AnnotationColumns:
    """Names of the columns (TSV) or fields (JSONL) of a file; of "a|b", the first that the file has.

    system: who wrote the text. item: the segment it was written for; "a+b" joins the values of two columns. rater: who
    annotated it. hypothesis, source: the texts, which a file of plain scores may lack. scores: columns of scores, with
    `-` before the name if lower is better.
    """

    system: str = "system|system_id"
    item: str = "seg_id|globalSegId|line_id|segment_id|item"
    rater: str = "rater|annotator|user_id"
    hypothesis: str = "target|tgt|hypothesis"
    source: str = "source|src"
    scores: tuple[str, ...] = ("score|esa_score",)


@dataclasses.dataclass(frozen=True)
class Error:
    """An error in a translation.

    spans, source_spans: the character ranges (start, end) of the hypothesis and of the source where it is; both may be
    empty. location: FILE:LINE.
    """

    severity: str
    category: str
    spans: tuple[Span, ...]
    source_spans: tuple[Span, ...]
    location: str


@dataclasses.dataclass(frozen=True)
class Annotation:
    """One rater's judgement of one text: errors, scores by name (higher is better), or both. location: FILE:LINE."""

    system: str
    item: str
    rater: str
    hypothesis: str
    source: str
    errors: tuple[Error, ...]
    scores: Mapping[str, float]
    location: str


def read_annotations(
    path: str | os.PathLike[str],
    kind: str,
    columns: AnnotationColumns | None = None,
    select: Mapping[str, str] | None = None,
) -> list[Annotation]:
    """Read the annotations of a .tsv or .jsonl file, plain or .gz.

    kind: one of KINDS. `mqm`: a row per error, with the columns `category` and `severity`, and <v>…</v> around the
    error in the text or its source; a text without errors has one row with the severity no-error. `esa`: a row per
    rater and text, with a score from 0 to 100, and a list of objects with start_i, end_i and severity in the column
    esa_spans or error_spans, as JSON in a TSV file. `scores`: a row per rater and text. select: only rows with these
    values in these columns. Raises UserError `FILE:LINE: …` for a missing column, an empty name, unbalanced markers,
    invalid spans, a score that is no number or out of range, and a text that a rater scored twice.
    """
    columns, select = columns or AnnotationColumns(), select or {}
    found: dict[tuple[str, str, str], Annotation] = {}
    for row in track(read_table(path, "annotations"), "annotations", num_lines(os.fspath(path))):
        if any(_text(row.value(name)) != value for name, value in select.items()):
            continue
        one = KINDS[kind](row, columns)
        first = next(iter(found.values()), one)
        if one.scores.keys() != first.scores.keys():  # of "a|b", rows of JSONL may have different ones
            names = " and ".join(", ".join(each.scores) for each in (one, first))
            raise UserError(f"{one.location}: other columns of scores than in {first.location}: {names}")
        key = (one.system, one.item, one.rater)
        if key not in found:
            found[key] = one
        elif kind == "mqm":
            found[key] = dataclasses.replace(found[key], errors=found[key].errors + one.errors)
        else:
            text = f"the text of system {one.system} for item {one.item}"
            raise UserError(
                f"{one.location}: rater {one.rater} already judged {text} in {found[key].location}: remove a row"
            )
    if not found:
        named = " and ".join(f"{name}={value}" for name, value in select.items())
        raise UserError(f"{path}: no annotations{f' with {named}' if named else ''}")
    return list(found.values())


def parse_marked(text: str) -> tuple[str, tuple[Span, ...]]:
    """Remove <v> and </v> from a text, and return the spans between them. Raises ValueError if one lacks the other."""
    if "v>" not in text:  # most sources
        return text, ()
    plain, spans, start = "", [], None
    position = 0
    for mark in _MARK.finditer(text):
        plain += text[position : mark.start()]
        position = mark.end()
        if (mark[0] == "<v>") != (start is None):
            raise ValueError(f"{mark[0]} without its counterpart: mark an error with <v>…</v>, not nested")
        if start is None:
            start = len(plain)
        else:
            spans.append((start, len(plain)))
            start = None
    if start is not None:
        raise ValueError("<v> without </v>: mark an error with <v>…</v>")
    return plain + text[position:], tuple(spans)


def _of_mqm(row: Row, columns: AnnotationColumns) -> Annotation:
    severity, category = (str(row.value(name)).strip() for name in ("severity", "category"))
    (hypothesis, spans), (source, source_spans) = (
        _parse_marked(row, name) for name in (columns.hypothesis, columns.source)
    )
    if not severity:
        raise UserError(f"{row.location}: 'severity' is empty: a text without errors has the severity {NO_ERROR}")
    errors = (Error(severity, category, spans, source_spans, row.location),) * (severity.lower() != NO_ERROR)
    return _annotation(row, columns, hypothesis, source, errors, {})


def _parse_marked(row: Row, names: str) -> tuple[str, tuple[Span, ...]]:
    try:
        return parse_marked(_text(row.value(names)))
    except ValueError as error:
        raise UserError(f"{row.location}: {row.column(names)!r}: {error}") from None


def _of_esa(row: Row, columns: AnnotationColumns) -> Annotation:
    score = row.number(columns.scores[0])
    if not 0 <= score <= 100:
        raise UserError(f"{row.location}: {row.column(columns.scores[0])!r} is {score:g}; ESA scores are from 0 to 100")
    hypothesis, source = (_text(row.value(names)) for names in (columns.hypothesis, columns.source))
    return _annotation(row, columns, hypothesis, source, tuple(_spans(row, "esa_spans|error_spans")), {"esa": score})


def _spans(row: Row, names: str) -> Iterator[Error]:
    """The error spans of a row. Their ends are not compared with the text: some tools append a word for omissions."""
    spans = row.value(names)
    try:
        spans = json.loads(spans) if isinstance(spans, str) else spans
    except (ValueError, RecursionError):
        spans = None
    if not isinstance(spans, list) or not all(isinstance(span, dict) for span in spans):
        raise UserError(f"{row.location}: {row.column(names)!r} is not a list of objects in JSON")
    for span in spans:
        start, end, severity = (span.get(name) for name in ("start_i", "end_i", "severity"))
        if not isinstance(severity, str):
            raise UserError(f"{row.location}: an error span has no severity: {str(span)[:80]}")
        if start == end == MISSING:
            yield Error(severity, MISSING, (), (), row.location)
        elif type(start) is type(end) is int and 0 <= start <= end:
            yield Error(severity, str(span.get("error_type") or ""), ((start, end),), (), row.location)
        else:
            problem = f"start_i={str(start)[:20]}, end_i={str(end)[:20]}"
            raise UserError(
                f"{row.location}: an error span has {problem}: they must be positions in the text, or {MISSING!r}"
            )


def _of_scores(row: Row, columns: AnnotationColumns) -> Annotation:
    hypothesis, source = (
        _text(row.value(names)) if any(name in row.fields for name in names.split("|")) else ""
        for names in (columns.hypothesis, columns.source)
    )
    scores = {}
    for option in columns.scores:
        names = option.removeprefix("-")
        scores[row.column(names)] = (-1.0 if option.startswith("-") else 1.0) * row.number(names)
    return _annotation(row, columns, hypothesis, source, (), scores)


def _annotation(
    row: Row,
    columns: AnnotationColumns,
    hypothesis: str,
    source: str,
    errors: tuple[Error, ...],
    scores: Mapping[str, float],
) -> Annotation:
    item = ":".join(_name(row, names) for names in columns.item.split("+"))
    system, rater = (_name(row, names) for names in (columns.system, columns.rater))
    return Annotation(system, item, rater, hypothesis, source, errors, scores, row.location)


def _name(row: Row, names: str) -> str:
    if not (name := _text(row.value(names)).strip()):
        raise UserError(f"{row.location}: {row.column(names)!r} is empty")
    return name


def _text(value: Any) -> str:
    """A value as text on one line: strings of JSON may contain tabs and line feeds."""
    return _BREAK.sub(" ", "" if value is None else str(value))


KINDS: dict[str, Callable[[Row, AnnotationColumns], Annotation]] = {
    "mqm": _of_mqm,
    "esa": _of_esa,
    "scores": _of_scores,
}
