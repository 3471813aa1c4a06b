"""What the runs of a sweep came to: a row a point, the mean and standard deviation of its seeds, in four formats."""

import csv
import dataclasses
import io
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nmt_jax import config as configs
from nmt_jax.errors import UserError
from nmt_jax.reporting.latex import latex_arrow, latex_table, latex_text
from nmt_jax.sweeps.runs import Point, Run, by_setting, keys_of
from nmt_jax.training.record import best_step, has_ended, higher_is_better, read_record

COUNTED = ("steps", "parameters", "minutes")  # and speeds: measures without a standard deviation or a best
Log = Sequence[dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Row:
    """Runs that differ in the seed alone: what they change, and of each measure the values of those that have one."""

    name: str
    point: Point
    runs: Sequence[Run]
    values: dict[str, list[float]]

    def mean(self, measure: str) -> float | None:
        """Over the seeds; None where nothing was measured."""
        return float(np.mean(self.values[measure])) if self.values[measure] else None

    def deviation(self, measure: str) -> float | None:
        """The standard deviation of the sample of seeds; None of fewer than two."""
        values = self.values[measure]
        return float(np.std(values, ddof=1)) if len(values) > 1 else None


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows under the keys that some of them change, and measures."""

    keys: Sequence[str]
    measures: Sequence[str]
    rows: Sequence[Row]


def collect(runs: Sequence[Run], measures: Sequence[str] = ()) -> Table:
    """The table of these runs; UserError for a measure that none of them knows.

    measures: `steps`, `minutes`, `parameters`, any key of `metrics.jsonl`. The value is that of the best step by
    `train.early_stopping_metric`; of a speed it is the median. What is not given is steps, that metric, speed, minutes.
    """
    logs = {_identity(run): read_log(run) for run in runs}
    known = {key for log in logs.values() for row in log for key in row} - {"step"}
    for measure in measures:
        if known and measure not in (*COUNTED, *known):
            near = configs.suggest_key(measure, known)
            raise UserError(
                f"--measures={measure}: no run logged it{near or '; there are ' + ', '.join(sorted(known))}"
            )
    speed = next((key for key in sorted(known) if key.endswith("_per_second")), "tokens_per_second")
    measures = measures or ["steps", main_measure(runs), speed, "minutes"]
    rows = []
    for name, group in by_setting(runs).items():
        values: dict[str, list[float]] = {measure: [] for measure in measures}
        for run in group:
            for measure in measures:
                value = measured(run, logs[_identity(run)], measure)
                values[measure] += [] if value is None else [value]
        rows.append(Row(name, group[0].setting, group, values))
    return Table(keys_of(runs), measures, rows)


def main_measure(runs: Sequence[Run]) -> str:
    """`dev/` and the metric that the best checkpoint is chosen by; `dev` alone where no run has begun."""
    for run in runs:
        if run.workdir.config_file.is_file():
            return f"dev/{run.workdir.config().train.early_stopping_metric}"
    return "dev"


def has_finished(run: Run) -> bool:
    """Whether a run came to the end that its config sets."""
    return run.workdir.config_file.is_file() and has_ended(run.workdir.config(), read_record(run.workdir))


def read_log(run: Run) -> Log:
    """The rows of a run's `metrics.jsonl`; none where it has not begun."""
    return run.workdir.metrics() if run.workdir.metrics_file.is_file() else []


def measured(run: Run, log: Log, measure: str) -> float | None:
    """What one run says of a measure; None where it says nothing yet."""
    if measure == "steps":
        return float(max((row["step"] for row in log), default=0))
    if measure == "minutes":
        return max((row.get("seconds") or 0.0 for row in log), default=0.0) / 60 if log else None
    if measure == "parameters":
        record = read_record(run.workdir)
        return float(record.parameters) if record else None
    if measure.endswith("_per_second"):
        speeds = [row[measure] for row in log if row.get(measure)]
        return float(np.median(speeds)) if speeds else None
    best = best_step(log, main_measure([run]))
    return next((row[measure] for row in reversed(log) if row["step"] <= best and row.get(measure) is not None), None)


def cell(table: Table, row: Row, measure: str) -> str:
    """A value as people read it: `34.21 ± 0.40`, or `400–1,000` steps where the seeds differ."""
    values = row.values[measure]
    if not values:
        return ""
    digits = _digits(table, measure)
    if measure == "steps" and min(values) < max(values):
        return f"{min(values):{digits}}–{max(values):{digits}}"
    deviation = None if _counted(measure) else row.deviation(measure)
    return f"{row.mean(measure):{digits}}" + (f" ± {deviation:{digits}}" if deviation is not None else "")


def heading(measure: str) -> str:
    """What a column is called: `tokens/s` for `tokens_per_second`."""
    return measure.replace("_per_second", "/s")


def seeds(table: Table, row: Row) -> str:
    """How many runs the row is the mean of: `2`, or `1 of 2` where one has not measured anything."""
    count = max((len(row.values[measure]) for measure in table.measures if not _counted(measure)), default=0)
    return str(count) if count == len(row.runs) else f"{count} of {len(row.runs)}"


def has_seeds(table: Table) -> bool:
    """Whether a row is more than one run."""
    return any(len(row.runs) > 1 for row in table.rows)


def best(table: Table, measure: str) -> list[Row]:
    """The rows of the best mean; none for what is neither good nor bad."""
    rows = [(row, mean) for row in table.rows if (mean := row.mean(measure)) is not None]
    if _counted(measure) or not measure.startswith("dev/") or len(rows) < 2:
        return []
    top = (max if higher_is_better(measure) else min)(mean for _, mean in rows)
    return [row for row, mean in rows if mean == top]


def columns(table: Table) -> list[str]:
    """What stands above the cells: keys, the number of seeds where there are several, measures."""
    return [*table.keys, *(["n"] if has_seeds(table) else []), *map(heading, table.measures)]


def cells(table: Table) -> list[list[str]]:
    """The table as people read it, a list a row."""
    return [
        [
            *(row.point.get(key, "") for key in table.keys),
            *([seeds(table, row)] if has_seeds(table) else []),
            *(cell(table, row, measure) for measure in table.measures),
        ]
        for row in table.rows
    ]


def write_markdown(table: Table) -> str:
    """A table with bars between its columns."""
    rows = [["---"] * len(columns(table)), *cells(table)]
    lines = [columns(table), *([text.replace("|", r"\|") for text in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_csv(table: Table) -> str:
    """Values separated by commas, with all their digits: a column more for each standard deviation."""
    names = [name for measure in table.measures for name in (measure, f"{measure}_std")]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*table.keys, "n", *names])
    for row in table.rows:
        numbers = [number for m in table.measures for number in (row.mean(m), row.deviation(m))]
        writer.writerow([*(row.point.get(key, "") for key in table.keys), len(row.runs), *numbers])
    return file.getvalue().rstrip("\n")


def write_json(table: Table) -> str:
    """A list of objects, one a row: point, means, standard deviations, and the runs with each one's own values."""
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
    """A table of the booktabs package, the best mean of each measure in bold."""
    arrows = [" " + latex_arrow(higher_is_better(m)) if m.startswith("dev/") else "" for m in table.measures]
    first = len(columns(table)) - len(table.measures)
    names = [latex_text(name) for name in columns(table)]
    names[first:] = [name + arrow for name, arrow in zip(names[first:], arrows, strict=True)]
    rows = []
    for row, own in zip(table.rows, cells(table), strict=True):
        texts = [latex_text(text).replace("±", r"{\scriptsize $\pm$").replace("–", "--") for text in own]
        texts = [text + "}" * ("scriptsize" in text) for text in texts]
        for number, measure in enumerate(table.measures, start=first):
            if row in best(table, measure):
                value, *deviation = texts[number].split(" {")
                texts[number] = " {".join([rf"\textbf{{{value}}}", *deviation])
        rows.append(texts)
    return "\n".join(latex_table("l" * first + "r" * len(table.measures), names, rows))


WRITERS: dict[str, Callable[[Table], str]] = {
    "markdown": write_markdown,
    "csv": write_csv,
    "latex": write_latex,
    "json": write_json,
}


def _identity(run: Run) -> str:
    """A run as a key: its folder."""
    return str(run.workdir.path)


def _counted(measure: str) -> bool:
    return measure in COUNTED or measure.endswith("_per_second")


def _digits(table: Table, measure: str) -> str:
    """How the numbers of a column are written: whole, with two digits from 10 on, four below, three that are tiny."""
    largest = max((abs(value) for row in table.rows for value in row.values[measure]), default=0.0)
    if measure == "minutes":
        return ".0f" if largest >= 10 else ".1f"
    if _counted(measure):
        return ",.0f"
    return ".2f" if largest >= 10 else ".4f" if largest >= 0.01 else ".3g"
