"""Results of a sweep as a table: one row per point, mean and standard deviation over its seeds, in four formats."""

import csv
import dataclasses
import io
import json
from collections.abc import Callable, Sequence

import numpy as np

from nmt_jax import config as configs
from nmt_jax.errors import UserError
from nmt_jax.reporting.latex import latex_arrow, latex_table, latex_text
from nmt_jax.sweeps.runs import Log, Point, Run, by_setting, has_finished, keys_of, main_measure, measured, read_log
from nmt_jax.training.record import higher_is_better

COUNTED = ("steps", "parameters", "minutes")  # like speeds, shown without standard deviation or best value


@dataclasses.dataclass(frozen=True)
class Row:
    """Runs that differ only in the seed: the keys they change, and the values that exist of each measure."""

    name: str
    point: Point
    runs: Sequence[Run]
    values: dict[str, list[float]]

    def mean(self, measure: str) -> float | None:
        """Returns the mean over seeds, or None if there is no value."""
        return float(np.mean(self.values[measure])) if self.values[measure] else None

    def deviation(self, measure: str) -> float | None:
        """Returns the sample standard deviation over seeds, or None for fewer than two."""
        values = self.values[measure]
        return float(np.std(values, ddof=1)) if len(values) > 1 else None


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows, the keys that some of them change, and measures."""

    keys: Sequence[str]
    measures: Sequence[str]
    rows: Sequence[Row]


def collect(runs: Sequence[Run], measures: Sequence[str] = ()) -> Table:
    """Returns the table of these runs. Raises UserError for a measure that none of them logged.

    measures: `steps`, `minutes`, `parameters` or keys of `metrics.jsonl`; by default steps, the metric of
    `train.early_stopping_metric`, speed and minutes. Values are those of the best step by that metric; speeds are
    medians.
    """
    logs = {run.workdir.path: read_log(run) for run in runs}
    known = {key for log in logs.values() for row in log for key in row} - {"step"}
    for measure in measures:
        if known and measure not in (*COUNTED, *known):
            suggestion = configs.suggest_key(measure, known) or f"; use one of {', '.join(sorted(known))}"
            raise UserError(f"--measures={measure}: no run logged it{suggestion}")
    speed = next((key for key in sorted(known) if key.endswith("_per_second")), "tokens_per_second")
    measures = measures or ["steps", main_measure(runs), speed, "minutes"]
    rows = []
    for name, group in by_setting(runs).items():
        rows.append(row_of(name, group, measures, [logs[run.workdir.path] for run in group]))
    return Table(keys_of(runs), measures, rows)


def row_of(name: str, runs: Sequence[Run], measures: Sequence[str], logs: Sequence[Log]) -> Row:
    """Returns the row of runs that differ only in the seed, given their logs."""
    pairs = [*zip(runs, logs, strict=True)]
    found = {measure: [measured(run, log, measure) for run, log in pairs] for measure in measures}
    values = {measure: [v for v in column if v is not None] for measure, column in found.items()}
    return Row(name, runs[0].setting, runs, values)


def cell(table: Table, row: Row, measure: str) -> str:
    """Returns a value as text: `34.21 ± 0.40`, or `400–1,000` steps if the seeds differ."""
    values = row.values[measure]
    if not values:
        return ""
    digits = _digits(table, measure)
    if measure == "steps" and min(values) < max(values):
        return f"{min(values):{digits}}–{max(values):{digits}}"
    deviation = None if _counted(measure) else row.deviation(measure)
    return f"{row.mean(measure):{digits}}" + (f" ± {deviation:{digits}}" if deviation is not None else "")


def heading(measure: str) -> str:
    """Returns the heading of a column: `tokens/s` for `tokens_per_second`."""
    return measure.replace("_per_second", "/s")


def seeds(table: Table, row: Row) -> str:
    """Returns the number of runs in the mean: `2`, or `1 of 2` if one has no values."""
    count = max((len(row.values[measure]) for measure in table.measures if not _counted(measure)), default=0)
    return str(count) if count == len(row.runs) else f"{count} of {len(row.runs)}"


def has_seeds(table: Table) -> bool:
    """Returns whether any row has more than one run."""
    return any(len(row.runs) > 1 for row in table.rows)


def best(table: Table, measure: str) -> list[Row]:
    """Returns the rows with the best mean; none for measures without a direction."""
    rows = [(row, mean) for row in table.rows if (mean := row.mean(measure)) is not None]
    if _counted(measure) or not measure.startswith("dev/") or len(rows) < 2:
        return []
    top = (max if higher_is_better(measure) else min)(mean for _, mean in rows)
    return [row for row, mean in rows if mean == top]


def columns(table: Table) -> list[str]:
    """Returns the headings: keys, n if there are several seeds, measures."""
    return [*table.keys, *(["n"] if has_seeds(table) else []), *map(heading, table.measures)]


def cells(table: Table) -> list[list[str]]:
    """Returns the cells of each row as text."""
    return [
        [
            *(row.point.get(key, "") for key in table.keys),
            *([seeds(table, row)] if has_seeds(table) else []),
            *(cell(table, row, measure) for measure in table.measures),
        ]
        for row in table.rows
    ]


def write_markdown(table: Table) -> str:
    """Returns a Markdown table."""
    rows = [["---"] * len(columns(table)), *cells(table)]
    lines = [columns(table), *([text.replace("|", r"\|") for text in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_csv(table: Table) -> str:
    """Returns comma-separated values with all digits; standard deviations are additional columns."""
    names = [name for measure in table.measures for name in (measure, f"{measure}_std")]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*table.keys, "n", *names])
    for row in table.rows:
        numbers = [number for m in table.measures for number in (row.mean(m), row.deviation(m))]
        writer.writerow([*(row.point.get(key, "") for key in table.keys), len(row.runs), *numbers])
    return file.getvalue().rstrip("\n")


def write_json(table: Table) -> str:
    """Returns a JSON list with an object per row: point, means, standard deviations, values of single runs."""
    objects = []
    for row in table.rows:
        measures = {m: {"mean": row.mean(m), "std": row.deviation(m), "values": row.values[m]} for m in table.measures}
        runs = [
            {"workdir": str(run.workdir.path), "seed": run.point.get("seed"), "finished": has_finished(run)}
            for run in row.runs
        ]
        objects.append({"point": dict(row.point), "n": len(row.runs), "measures": measures, "runs": runs})
    return json.dumps(objects, indent=2, ensure_ascii=False)


def write_latex(table: Table) -> str:
    """Returns a LaTeX table with the best mean of each measure in bold."""
    first = len(columns(table)) - len(table.measures)
    names = [latex_text(name) for name in columns(table)]
    for number, measure in enumerate(table.measures, start=first):
        names[number] += f" {latex_arrow(higher_is_better(measure))}" if measure.startswith("dev/") else ""
    rows = []
    for row, row_cells in zip(table.rows, cells(table), strict=True):
        texts = [latex_text(text).replace("±", r"{\scriptsize $\pm$").replace("–", "--") for text in row_cells]
        texts = [text + "}" * ("scriptsize" in text) for text in texts]
        for number, measure in enumerate(table.measures, start=first):
            if row in best(table, measure):
                value, *deviation = texts[number].split(" {")
                texts[number] = " {".join([rf"\textbf{{{value}}}", *deviation])
        rows.append(texts)
    return "\n".join(latex_table("l" * first + "r" * len(table.measures), names, rows))


WRITERS: dict[str, Callable[[Table], str]]
WRITERS = {"markdown": write_markdown, "csv": write_csv, "latex": write_latex, "json": write_json}


def _counted(measure: str) -> bool:
    return measure in COUNTED or measure.endswith("_per_second")


def _digits(table: Table, measure: str) -> str:
    """Returns the number format of a column: no decimals for counts; otherwise 2, 4 or, below 0.01, 3 significant."""
    largest = max((abs(value) for row in table.rows for value in row.values[measure]), default=0.0)
    if measure == "minutes":
        return ".0f" if largest >= 10 else ".1f"
    if _counted(measure):
        return ",.0f"
    return ".2f" if largest >= 10 else ".4f" if largest >= 0.01 else ".3g"
