"""What a report says of a sweep: its table and picture, what failed, and every point with its runs."""

import html
import urllib.parse
from collections.abc import Mapping, Sequence

from nmt_jax import config as configs
from nmt_jax.reporting.html_page import Section, code, facts, picture, table
from nmt_jax.reporting.plots.sweep import draw_progress, draw_sweep
from nmt_jax.reporting.run_report import every_key
from nmt_jax.reporting.sweep_table import (
    Row,
    Table,
    best,
    cell,
    cells,
    collect,
    columns,
    has_finished,
    has_seeds,
    heading,
)
from nmt_jax.sweeps.jobs import last_line
from nmt_jax.sweeps.runs import Run


def summary(found: Table, runs: Sequence[Run], measure: str) -> Section:
    """How many runs ended, and which point is the best."""
    ended = sum(map(has_finished, runs))
    rows = [
        ("points", str(len(found.rows))),
        ("runs", f"{len(runs)}, {ended} of them at their end"),
        ("keys", ", ".join(map(code, found.keys))),
        *(
            (f"best {html.escape(measure)}", f"{_link(found, row)}: {html.escape(cell(found, row, measure))}")
            for row in best(found, measure)
        ),
    ]
    return Section("Summary", "summary", facts(rows))


def results(found: Table, measure: str, chosen_by: str) -> Section:
    """A row a point, in bold the best by `measure`; the values are those of the steps that are best by `chosen_by`."""
    top = best(found, measure)
    heads = columns(found)[len(found.keys) :]
    rows = [
        [_link(found, row), *map(html.escape, texts[len(found.keys) :])]
        for row, texts in zip(found.rows, cells(found), strict=True)
    ]
    spread = ", ± the standard deviation over n seeds" if has_seeds(found) else ""
    body = table(
        "Results",
        ["point", *heads],
        rows,
        numbers=len(heads),
        best=[number for number, row in enumerate(found.rows) if row in top],
    )
    return Section("Results", "results", f"<p>At the step of the best {html.escape(chosen_by)}{spread}.</p>{body}")


def drawn(found: Table, base: Mapping[str, str], measure: str) -> Section:
    """The measure against each key, and over the steps; words alone where nothing was measured."""
    if not any(row.values[measure] for row in found.rows):
        return Section("Pictures", "pictures", "<p>There is nothing to draw yet.</p>")
    pictures = []
    if found.keys:
        alt = f"{measure} of each point against {', '.join(found.keys)}; the numbers are in the table of results"
        pictures.append(picture(draw_sweep(found, base, measure), alt))
    if measure.startswith("dev/"):
        alt = f"{measure} of each point over the steps"
        pictures.append(picture(draw_progress(found, measure), alt))
    return Section("Pictures", "pictures", "\n".join(pictures))


def failures(runs: Sequence[Run]) -> Section:
    """Runs that are not at their end, and the last line of their log."""
    rows = [
        [html.escape(run.workdir.path.name), code(last_line(run.log) or "it has no log")]
        for run in runs
        if not has_finished(run)
    ]
    body = "<p>Nothing: all runs are at their end.</p>"
    if rows:
        heads = ["run", "last line of its log.txt"]
        body = "<p>These runs are not at the end that their config sets.</p>" + table("Failures", heads, rows)
    return Section("What went wrong", "failures", body)


def every_run(found: Table) -> Section:
    """The runs of each point, each with its own values and a link to its own report where it has one."""
    lines: list[list[str]] = []
    anchors = {}
    for row in found.rows:
        anchors[len(lines)] = _anchor(found, row)
        for run in row.runs:
            folder = run.workdir.path.name
            name = html.escape(folder)
            if (run.workdir.path / "report.html").is_file():
                name = f'<a href="{urllib.parse.quote(folder)}/report.html">{name}</a>'
            (own,) = collect([run], found.measures).rows
            values = (html.escape(cell(found, own, measure)) for measure in found.measures)
            lines.append([name, "ended" if has_finished(run) else "not at its end", *values])
    heads = ["run", "state", *map(heading, found.measures)]
    return Section("Runs", "runs", table("Runs", heads, lines, numbers=len(found.measures), anchors=anchors))


def settings(found: Table, runs: Sequence[Run]) -> Section:
    """The keys that all runs agree in."""
    flat = [configs.flatten(run.workdir.config()) for run in runs if run.workdir.config_file.is_file()]
    same = {
        key: value
        for key, value in (flat[0] if flat else {}).items()
        if all(key in f and f[key] == value for f in flat)
    }
    words = f"The runs differ in {', '.join(map(code, found.keys)) or 'nothing'} and agree in {len(same)} keys."
    return Section("Config", "config", f"<p>{words}</p>{every_key(same, shown=False)}")


def _anchor(found: Table, row: Row) -> str:
    return f"point-{found.rows.index(row) + 1}"


def _link(found: Table, row: Row) -> str:
    return f'<a href="#{_anchor(found, row)}">{html.escape(row.name)}</a>'
