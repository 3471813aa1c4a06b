"""Sections of the report of a sweep: results and plots, failed runs, and all runs of each point."""

import html
import pathlib
import urllib.parse
from collections.abc import Mapping, Sequence

from nmt_jax import config as configs
from nmt_jax.reporting.html_page import Section, code, facts, picture, table
from nmt_jax.reporting.plots.sweep_panels import draw_progress, draw_sweep
from nmt_jax.reporting.run_report import environment, every_key
from nmt_jax.reporting.sweep_table import Row, Table, best, cell, cells, collect, columns, has_seeds, heading
from nmt_jax.sweeps.jobs import last_line
from nmt_jax.sweeps.runs import Run, base_values, find_runs, has_finished, main_measure


def sweep_sections(folder: pathlib.Path, measure: str | None = None) -> list[Section]:
    """Returns the sections of the report of a sweep, judged by `measure` or the metric that chooses checkpoints."""
    runs = find_runs(folder)
    chosen_by = main_measure(runs)
    found = collect(runs)
    if measure:
        found = collect(runs, list(dict.fromkeys([measure, *found.measures])))
    measure = measure or chosen_by
    return [
        summary(found, runs, measure),
        results(found, measure, chosen_by),
        plots(found, base_values(runs), measure),
        failures(runs),
        every_run(found),
        settings(found, runs),
        environment(runs[0].workdir),
    ]


def summary(found: Table, runs: Sequence[Run], measure: str) -> Section:
    """Returns how many runs have finished, and the best point."""
    finished = sum(map(has_finished, runs))
    rows = [
        ("points", str(len(found.rows))),
        ("runs", f"{len(runs)}, {finished} of them finished"),
        ("keys", ", ".join(map(code, found.keys))),
        *(
            (f"best {html.escape(measure)}", f"{_link(found, row)}: {html.escape(cell(found, row, measure))}")
            for row in best(found, measure)
        ),
    ]
    return Section("Summary", "summary", facts(rows))


def results(found: Table, measure: str, chosen_by: str) -> Section:
    """Returns a table with a row per point, the best by `measure` in bold; values of the best steps by `chosen_by`."""
    top = best(found, measure)
    headings = columns(found)[len(found.keys) :]
    rows = [
        [_link(found, row), *map(html.escape, texts[len(found.keys) :])]
        for row, texts in zip(found.rows, cells(found), strict=True)
    ]
    spread = ", ± standard deviation over n seeds" if has_seeds(found) else ""
    body = table(
        "Results",
        ["point", *headings],
        rows,
        numbers=len(headings),
        best=[number for number, row in enumerate(found.rows) if row in top],
    )
    return Section("Results", "results", f"<p>At the step with the best {html.escape(chosen_by)}{spread}.</p>{body}")


def plots(found: Table, base: Mapping[str, str], measure: str) -> Section:
    """Returns plots of the measure against each key, and over the steps."""
    if not any(row.values[measure] for row in found.rows):
        return Section("Plots", "pictures", "<p>Nothing has been measured yet.</p>")
    pictures = []
    if found.keys:
        alt = f"{measure} of each point against {', '.join(found.keys)}; the numbers are in the table above"
        pictures.append(picture(draw_sweep(found, base, measure), alt))
    if measure.startswith("dev/"):
        alt = f"{measure} of each point over the steps"
        pictures.append(picture(draw_progress(found, measure), alt))
    return Section("Plots", "pictures", "\n".join(pictures))


def failures(runs: Sequence[Run]) -> Section:
    """Returns the unfinished runs with the last line of their logs."""
    rows = [
        [html.escape(run.workdir.path.name), code(last_line(run.log) or "no log")]
        for run in runs
        if not has_finished(run)
    ]
    body = "<p>None; all runs have finished.</p>"
    if rows:
        headings = ["run", "last line of log.txt"]
        body = "<p>These runs have not finished.</p>" + table("Failures", headings, rows)
    return Section("Problems", "failures", body)


def every_run(found: Table) -> Section:
    """Returns the runs of each point with their own values, and links to their reports."""
    lines: list[list[str]] = []
    anchors = {}
    for row in found.rows:
        anchors[len(lines)] = _anchor(found, row)
        for run in row.runs:
            folder = run.workdir.path.name
            name = html.escape(folder)
            if (run.workdir.path / "report.html").is_file():
                name = f'<a href="{urllib.parse.quote(folder)}/report.html">{name}</a>'
            (row_of_run,) = collect([run], found.measures).rows
            values = (html.escape(cell(found, row_of_run, measure)) for measure in found.measures)
            lines.append([name, "finished" if has_finished(run) else "not finished", *values])
    headings = ["run", "state", *map(heading, found.measures)]
    return Section("Runs", "runs", table("Runs", headings, lines, numbers=len(found.measures), anchors=anchors))


def settings(found: Table, runs: Sequence[Run]) -> Section:
    """Returns the keys and values that all runs share."""
    flat = [configs.flatten(run.workdir.config()) for run in runs if run.workdir.config_file.is_file()]
    same = {
        key: value
        for key, value in (flat[0] if flat else {}).items()
        if all(key in f and f[key] == value for f in flat)
    }
    text = f"The runs differ in {', '.join(map(code, found.keys)) or 'nothing'}; {len(same)} keys are the same."
    return Section("Config", "config", f"<p>{text}</p>{every_key(same, shown=False)}")


def _anchor(found: Table, row: Row) -> str:
    return f"point-{found.rows.index(row) + 1}"


def _link(found: Table, row: Row) -> str:
    return f'<a href="#{_anchor(found, row)}">{html.escape(row.name)}</a>'
