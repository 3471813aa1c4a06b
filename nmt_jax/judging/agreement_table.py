"""Output formats for the agreement of metrics with human judgements: table, TSV, JSON, Markdown, LaTeX."""

import dataclasses
import io
import json
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metrics_jax.judging.pairs import nan_mean
from metrics_jax.significance import Interval


@dataclasses.dataclass(frozen=True)
class Column:
    """One coefficient of M metrics, for one column of judgements in one file, or the mean over several files.

    values: float[M]. intervals, p_values (float[M, M]) and clusters (int[M], 1 is the best): None unless requested.
    num_files: number of files that the values are the mean of.
    """

    name: str
    human: str
    coefficient: str
    metrics: list[str]
    values: np.ndarray
    intervals: list[Interval] | None = None
    p_values: np.ndarray | None = None
    clusters: np.ndarray | None = None
    num_files: int = 1

    @property
    def title(self) -> str:
        """Name of the file, column of judgements, and coefficient."""
        return f"{self.name} {self.human}, {self.coefficient}"


def write_text(columns: Sequence[Column]) -> str:
    """A table if stdout is a terminal; otherwise the rows of `write_tsv` without the heading."""
    return _table(columns) if sys.stdout.isatty() else "\n".join(_rows(columns))


def write_tsv(columns: Sequence[Column]) -> str:
    """Tab-separated rows with a heading, one per metric, file, column of judgements and coefficient."""
    heading = ["metric", "data", "human", "coefficient", "value"]
    heading += ["lower", "upper"] * bool(columns[0].intervals)
    heading += ["cluster"] * (columns[0].clusters is not None)
    return "\n".join(["\t".join(heading), *_rows(columns)])


def write_json(columns: Sequence[Column]) -> str:
    """A list with an object per column: values, intervals, clusters and p-values by metric; NaN is written as null."""
    objects = []
    for column in columns:
        item: dict[str, Any] = {"data": column.name, "human": column.human, "coefficient": column.coefficient}
        item["values"] = dict(zip(column.metrics, map(_plain, column.values), strict=True))
        if column.intervals:
            bounds = ([_plain(one.lower), _plain(one.upper)] for one in column.intervals)
            item["intervals"] = dict(zip(column.metrics, bounds, strict=True))
        if column.clusters is not None and column.p_values is not None:
            item["clusters"] = dict(zip(column.metrics, column.clusters.tolist(), strict=True))
            item["p_values"] = [list(map(_plain, row)) for row in column.p_values]
        objects.append(item)
    return json.dumps(objects, indent=2, ensure_ascii=False, allow_nan=False)


def write_markdown(columns: Sequence[Column]) -> str:
    """A table with a row per metric, the best of each column in bold; a single column is followed by its p-values."""
    return "\n\n".join(map(_markdown, _tables(columns, lambda text: f"**{text}**")))


def write_latex(columns: Sequence[Column]) -> str:
    """A table for the booktabs package, with the best of each column in bold and clusters as superscripts."""
    heading, rows = _cells(columns, lambda text: rf"\textbf{{{text}}}", lambda rank: rf"$^{{{rank}}}$")
    lines = [rf"\begin{{tabular}}{{l{'r' * len(heading)}}}", r"\toprule"]
    lines += [" & ".join(map(_latex, ["metric", *heading])) + r" \\", r"\midrule"]
    lines += [" & ".join([_latex(name), *cells]) + r" \\" for name, *cells in rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


WRITERS: dict[str, Callable[[Sequence[Column]], str]] = {
    "text": write_text,
    "tsv": write_tsv,
    "json": write_json,
    "markdown": write_markdown,
    "latex": write_latex,
}


def _rows(columns: Sequence[Column]) -> list[str]:
    rows = []
    for column in columns:
        for number, metric in enumerate(column.metrics):
            row = [metric, column.name, column.human, column.coefficient, f"{column.values[number]:.6f}"]
            if column.intervals:
                row += [f"{bound:.6f}" for bound in (column.intervals[number].lower, column.intervals[number].upper)]
            if column.clusters is not None:
                row.append(str(column.clusters[number]))
            rows.append("\t".join(row))
    return rows


def _cells(
    columns: Sequence[Column], bold: Callable[[str], str], superscript: Callable[[int], str] = lambda rank: f" ({rank})"
) -> tuple[list[str], list[list[str]]]:
    """Headings, and a row of cells per metric. A column with the mean follows the columns of each coefficient.

    If the columns are means over files themselves, no mean of them is added.
    """
    heading, cells = [], []
    averaged = any(column.num_files > 1 for column in columns)
    for coefficient in [""] if averaged else dict.fromkeys(column.coefficient for column in columns):
        group = [column for column in columns if coefficient in ("", column.coefficient)]
        for column in group:
            heading.append(_heading(column, columns))
            cells.append([_cell(column, number, bold, superscript) for number in range(len(column.metrics))])
        if len(group) > 1 and not averaged:
            means = nan_mean(np.stack([column.values for column in group], axis=-1))
            heading.append(f"mean {coefficient}")
            cells.append([_emphasise_best(f"{mean:.3f}", mean, means, bold) for mean in means.tolist()])
    return heading, [[metric, *row] for metric, *row in zip(columns[0].metrics, *cells, strict=True)]


def _heading(column: Column, columns: Sequence[Column]) -> str:
    """The parts of the title that distinguish a column from the others."""
    parts = [column.name if column.num_files == 1 else f"{column.name} ({column.num_files})"]
    parts += [column.human] * (len({(one.name, one.human) for one in columns}) > len({one.name for one in columns}))
    return " ".join([*parts, column.coefficient])


def _cell(column: Column, number: int, bold: Callable[[str], str], superscript: Callable[[int], str]) -> str:
    value = float(column.values[number])
    text = _emphasise_best(f"{value:.3f}", value, column.values, bold)
    if column.intervals:
        text += f" [{column.intervals[number].lower:.3f}, {column.intervals[number].upper:.3f}]"
    return text if column.clusters is None else text + superscript(int(column.clusters[number]))


def _emphasise_best(text: str, value: float, values: np.ndarray, bold: Callable[[str], str]) -> str:
    return bold(text) if len(values) > 1 and value == np.max(np.nan_to_num(values, nan=-np.inf)) else text


def _tables(columns: Sequence[Column], bold: Callable[[str], str]) -> list[list[list[str]]]:
    """A table with a row per metric, and for a single column, one with the p-values of all pairs of metrics."""
    heading, rows = _cells(columns, bold)
    tables = [[["metric", *heading], *rows]]
    if len(columns) == 1 and (p_values := columns[0].p_values) is not None:
        cells = [["" if math.isnan(value) else f"{value:.3f}" for value in row] for row in p_values.tolist()]
        rows = [[metric, *row] for metric, row in zip(columns[0].metrics, cells, strict=True)]
        tables.append([["p of a difference", *columns[0].metrics], *rows])
    return tables


def _markdown(table: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in table]
    return "\n".join([lines[0], "|---" * len(table[0]) + "|", *lines[1:]])


def _table(columns: Sequence[Column]) -> str:
    """A rich table with a row per metric, the best of each column highlighted."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    file = io.StringIO()
    console = Console(file=file, highlight=False, force_terminal=True)
    for first, *rest in _tables(columns, lambda text: f"\0{text}\1"):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for number, cell in enumerate(first):
            table.add_column(escape(cell), justify="right" if number else "left", overflow="fold")
        for row in rest:
            table.add_row(*(escape(cell).replace("\0", "[bold green]").replace("\1", "[/]") for cell in row))
        console.print(table)
    if columns[0].intervals:
        console.print("[ ]: the 95 % bootstrap interval", style="dim", markup=False)
    if columns[0].clusters is not None:
        console.print("( ): clusters of metrics of which none is significantly worse than another", style="dim")
    return file.getvalue().rstrip("\n")


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _latex(text: str) -> str:
    """Escape the characters that are special in LaTeX."""
    escapes = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}"}
    return "".join(escapes.get(c, rf"\{c}" if c in "&%$#_{}" else c) for c in text)
