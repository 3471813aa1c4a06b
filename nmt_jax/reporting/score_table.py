"""Metric scores as text: a table on a terminal, tab-separated rows, JSON or LaTeX."""

import dataclasses
import io
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metrics_jax.api import AdditiveMetric, Result
from metrics_jax.significance import Comparison, Interval
from nmt_jax.reporting.latex import latex_arrow, latex_table, latex_text

PERCENT = (
    "bleu",
    "chrf",
    "ter",
    "wer",
    "cer",
    "per",
    "cder",
)  # from 0 to 100, shown with two decimals; others with four


@dataclasses.dataclass(frozen=True)
class Score:
    """The result of one metric for one system, with a bootstrap interval and a comparison if requested."""

    system: str
    name: str  # of the metric, as the user wrote it
    metric: AdditiveMetric
    result: Result
    interval: Interval | None = None
    comparison: Comparison | None = None


def write_text(scores: Sequence[Score], segments: bool) -> str:
    """Returns a table on a terminal, otherwise the rows of `write_tsv` without the heading."""
    if segments or not sys.stdout.isatty():
        return "\n".join(_tab_separated(row) for row in _rows(scores, segments))
    return _table(scores)


def write_tsv(scores: Sequence[Score], segments: bool) -> str:
    """Returns tab-separated rows with a heading: one per system and metric, or with `segments` per system and line."""
    rows = _rows(scores, segments)
    return "\n".join([_tab_separated(list(rows[0])), *map(_tab_separated, rows)])


def write_json(scores: Sequence[Score], segments: bool) -> str:
    """Returns a JSON list with an object per system and metric; with `segments`, it has the score of every line."""
    return json.dumps(plain_rows(scores, segments), indent=2, ensure_ascii=False)


def plain_rows(scores: Sequence[Score], segments: bool = True) -> list[dict[str, Any]]:
    """Returns an object per system and metric with its parts; with `segments`, it has the score of every line."""
    objects = []
    for row, score in zip(_rows(scores, segments=False), scores, strict=True):
        item = {**row, "score": score.result.score, "parts": dict(score.result.parts)}
        if segments:
            item["segments"] = score.result.segments
        objects.append(_plain(item))
    return objects


def write_latex(scores: Sequence[Score], segments: bool) -> str:
    """Returns a LaTeX table, the best of each column in bold; signatures are comments."""
    columns, systems = _by_metric(scores), list(dict.fromkeys(score.system for score in scores))
    heading = ["system", *(f"{latex_text(n)} {latex_arrow(c[0].metric.higher_is_better)}" for n, c in columns)]
    rows = []
    for number, system in enumerate(systems):
        cells = [latex_text(system)]
        for _, column in columns:
            text = _number(column[number])
            text = rf"\textbf{{{text}}}" if column[number] in _best(column) else text
            if interval := column[number].interval:
                text += rf" {{\scriptsize $\pm$ {_number(column[number], interval.half_width)}}}"
            comparison = column[number].comparison
            cells.append(text + (r"$^{*}$" if comparison and comparison.significant else ""))
        rows.append(cells)
    lines = latex_table("l" + "r" * len(columns), heading, rows)
    if any(score.comparison for score in scores):
        lines.append(f"% *: p < 0.05 compared with {systems[0]}")
    return "\n".join([*lines, *(f"% {column[0].result.signature}" for _, column in columns)])


WRITERS: dict[str, Callable[[Sequence[Score], bool], str]]
WRITERS = {"text": write_text, "json": write_json, "tsv": write_tsv, "latex": write_latex}


def _table(scores: Sequence[Score]) -> str:
    """Returns a table with systems as rows and metrics as columns, the best of each in bold; signatures below."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    file = io.StringIO()
    console = Console(file=file, highlight=False, force_terminal=True)
    columns, systems = _by_metric(scores), list(dict.fromkeys(score.system for score in scores))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("system", overflow="fold")
    for name, column in columns:
        table.add_column(f"{name} {'↑' if column[0].metric.higher_is_better else '↓'}", justify="right")
    for number, system in enumerate(systems):
        cells = []
        for _, column in columns:
            score = column[number]
            text = _number(score)
            if score in _best(column):
                text = f"[bold green]{text}[/]" if len(systems) > 1 else f"[bold]{text}[/]"
            if score.interval:
                text += f" ± {_number(score, score.interval.half_width)}"
            if score.comparison and score.comparison.p_value is not None:
                text += f"\n[dim]p = {score.comparison.p_value:.4f}[/]{' *' if score.comparison.significant else '  '}"
            cells.append(text)
        table.add_row(system.replace("[", r"\["), *cells)
    console.print(table)
    if any(score.interval for score in scores):
        console.print("± half the width of the 95 % bootstrap interval", style="dim")
    if any(score.comparison for score in scores):
        text = f"p: probability of a difference this large from {systems[0]} by chance; * below 0.05"
        console.print(text, style="dim", markup=False)
    for _, column in columns:
        console.print(column[0].result.signature, style="dim", soft_wrap=True, markup=False)
    return file.getvalue().rstrip("\n")


def _rows(scores: Sequence[Score], segments: bool) -> list[dict[str, Any]]:
    """Returns one row per system and metric, or with `segments` per system and line."""
    if segments:
        by_system: dict[str, dict[str, Score]] = {}
        for score in scores:
            by_system.setdefault(score.system, {})[score.name] = score
        return [
            {"system": system, "line": number + 1}
            | {name: float(score.result.segments[number]) for name, score in columns.items()}
            for system, columns in by_system.items()
            for number in range(len(next(iter(columns.values())).result.segments))
        ]
    rows = []
    for score in scores:
        row: dict[str, Any] = {"system": score.system, "metric": score.name, "score": _number(score)}
        if score.interval:
            row |= {name: getattr(score.interval, name) for name in ("mean", "half_width", "lower", "upper")}
        if score.comparison:
            row |= {name: getattr(score.comparison, name) for name in ("difference", "wins", "p_value")}
        rows.append(row | {"signature": score.result.signature})
    return rows


def _by_metric(scores: Sequence[Score]) -> list[tuple[str, list[Score]]]:
    """Groups the scores by metric."""
    columns: dict[str, list[Score]] = {}
    for score in scores:
        columns.setdefault(score.name, []).append(score)
    return list(columns.items())


def _best(column: Sequence[Score]) -> list[Score]:
    values = [score.result.score for score in column]
    best = max(values) if column[0].metric.higher_is_better else min(values)
    return [score for score in column if score.result.score == best]


def _number(score: Score, value: float | None = None) -> str:
    """Returns a value with the digits of a metric, by default the score itself."""
    return f"{score.result.score if value is None else value:.{digits(score.metric)}f}"


def digits(metric: AdditiveMetric) -> int:
    """Returns the number of digits after the decimal point of a metric's scores."""
    return 2 if metric.name in PERCENT else 4


def _tab_separated(row: dict[str, Any] | list[str]) -> str:
    values = row.values() if isinstance(row, dict) else row
    return "\t".join(
        "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value) for value in values
    )


def _plain(value: Any) -> Any:
    """Converts NumPy values for JSON."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
