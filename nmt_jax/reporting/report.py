"""The report of a run or a sweep: one HTML page."""

import datetime
import html
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

from ml_collections import ConfigDict

from nmt_jax import __version__
from nmt_jax import config as configs
from nmt_jax.errors import UserError
from nmt_jax.reporting.html_page import Section, code, facts, picture, report_page, table
from nmt_jax.reporting.plots.curves import draw_curves
from nmt_jax.reporting.plots.style import check_output, drawing, save_page
from nmt_jax.reporting.plots.sweep_panels import draw_progress, draw_sweep
from nmt_jax.reporting.sweep_table import Row, Table, best, cell, cells, collect, columns, has_seeds, heading, row_of
from nmt_jax.reporting.translation_report import is_translator, translation_sections
from nmt_jax.sweeps.jobs import last_line
from nmt_jax.sweeps.runs import Run, base_values, find_runs, has_finished, main_measure, read_log
from nmt_jax.training.record import best_step, has_ended, read_record
from nmt_jax.workdir import Workdir

PACKAGES = ("nmt-jax", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "ml-collections", "numpy", "sentencepiece")


def write_report(
    workdir: pathlib.Path | str,
    *,
    output: pathlib.Path | None = None,
    config_file: str | None = None,
    texts: tuple[str, str] | None = None,
    lines: int = 500,
    samples: int = 3,
    measure: str | None = None,
) -> pathlib.Path:
    """Writes the report of a run or a sweep and returns the file.

    output: by default WORKDIR/report.html. config_file: FILE.py[:ARGUMENT]; keys of the run that differ from it come
    first. texts: files with a source text and its reference, used instead of the dev set; at most `lines` of them are
    translated (0: all), and `samples` each of the best, median and worst are shown. measure: key of metrics.jsonl by
    which a sweep is judged. Raises UserError if the folder is neither a run nor a sweep, or if the texts do not match.
    """
    folder = Workdir(workdir)
    if not folder.path.is_dir():
        folder.config()  # raises UserError
    output = check_output(output or folder.path / "report.html", (".html",))
    default = configs.load(config_file) if config_file else None
    with drawing():
        if folder.config_file.is_file():
            config, rows = folder.config(), folder.metrics() if folder.metrics_file.is_file() else []
            sections = [run_summary(folder, rows)]
            if is_translator(folder):
                sections += translation_sections(folder, texts, lines, samples)
            elif texts:
                raise UserError(f"{folder.path}: not a trained translator, so --source and --reference cannot be used")
            sections += [run_curves(config, rows), run_failures(folder, rows)]
            sections += [run_config(config, default, config_file or ""), environment(folder)]
        else:
            sections = sweep_sections(folder.path, measure)
    now = datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M")
    save_page(report_page(folder.path.name, f"{code(str(workdir))}, nmt-jax {__version__}, {now}", sections), output)
    return output


def run_summary(folder: Workdir, rows: Sequence[Mapping[str, Any]]) -> Section:
    """Returns how far a run has got, its speed, and its best step."""
    config, record = folder.config(), read_record(folder)
    metric = f"dev/{config.train.early_stopping_metric}"
    best_at = best_step(rows, metric)
    value = next((row[metric] for row in rows if row["step"] == best_at and row.get(metric) is not None), None)
    step = max((row["step"] for row in rows), default=0)
    seconds = max((row.get("seconds") or 0.0 for row in rows), default=0.0)
    speed = next((key for row in rows for key in row if key.endswith("_per_second")), "")
    speeds = sorted(row[speed] for row in rows if row.get(speed))
    unit = speed.removesuffix("_per_second")
    found = [
        ("task", html.escape(config.get("task", ""))),
        ("model", html.escape(config.get("model_name", ""))),
        ("parameters", f"{record.parameters:,}" if record else "no checkpoint yet"),
        ("steps", f"{step:,} of {config.train.steps:,}" + ("" if has_ended(config, record) else ", not finished")),
        ("training time", f"{seconds / 60:.1f} minutes"),
        *([(f"{unit} per second", f"{speeds[len(speeds) // 2]:,.0f} (median)")] if speeds else []),
        (f"best {metric}", "never measured" if value is None else f"{value:.4g} at step {best_at:,.0f}"),
    ]
    return Section("Summary", "summary", facts(found))


def run_curves(config: ConfigDict, rows: Sequence[Mapping[str, Any]]) -> Section:
    """Returns plots over the steps, and a table of all dev measures at the best and the last step."""
    measure = config.train.early_stopping_metric
    smoothing = config.loss.get("label_smoothing", 0.0) if "loss" in config else 0.0
    dev = [row for row in rows if any(key.startswith("dev/") for key in row)]
    best_at = best_step(rows, f"dev/{measure}")
    alt = f"Loss and dev {measure} over {max((row['step'] for row in rows), default=0):,} steps"
    body = picture(draw_curves(rows, measure, smoothing), alt)
    if dev:
        chosen = {f"best, step {row['step']:,}": row for row in dev if row["step"] == best_at}
        chosen |= {f"last, step {dev[-1]['step']:,}": dev[-1]}
        names = list(dict.fromkeys(key for row in dev for key in row if key.startswith("dev/")))
        values = {name: [row.get(name) for row in chosen.values()] for name in names}
        lines = [[code(name), *("" if v is None else f"{v:.4g}" for v in values[name])] for name in names]
        body += table("Dev measures", ["measure", *chosen], lines, numbers=len(chosen))
    return Section("Curves", "curves", body)


def run_failures(folder: Workdir, rows: Sequence[Mapping[str, Any]]) -> Section:
    """Returns which steps were skipped, and whether the run is unfinished, with the last line of its log."""
    parts, skips, before, after = [], [], 0, 0
    for row in rows:
        if (count := int(row.get("skipped") or 0)) > before:
            skips.append(f"{count - before} between {after:,} and {row['step']:,}")
            before = count
        after = row["step"]
    if skips:
        steps = f"{before:,} steps were skipped because loss or gradient was not finite: {', '.join(skips)}."
        parts.append(f"<p>{steps}</p>")
    if not has_ended(folder.config(), read_record(folder)):
        line = last_line(folder.path / "log.txt")
        parts.append("<p>The run has not finished." + (f" {code(line)}" if line else "") + "</p>")
    return Section("Problems", "failures", "\n".join(parts) or "<p>None; no step was skipped.</p>")


def run_config(config: ConfigDict, default: ConfigDict | None = None, name: str = "") -> Section:
    """Returns a table of all keys of a config, and before it those that differ from `default`, the config of `name`."""
    body = ""
    values = configs.flatten(config)
    if default is not None:
        both = values, configs.flatten(default)
        pairs = {key: [flat.get(key, configs.ABSENT) for flat in both] for key in {**both[0], **both[1]}}
        rows = [[code(key), *map(_value, pair)] for key, pair in pairs.items() if pair[0] != pair[1]]
        changes = table(f"Keys that differ from {name}", ["key", "this run", "config file"], rows)
        body = f"<p>Differs from {code(name)}:</p>{changes}" if rows else f"<p>Same as {code(name)}.</p>"
    return Section("Config", "config", f"{body}\n{_every_key(values, shown=not body)}")


def environment(folder: Workdir) -> Section:
    """Returns versions and devices of this process, and the devices named in the log of the run."""
    import jax

    log = folder.path / "log.txt"
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    logged = re.findall(r"^\W*devices:? +(.+?)\s*$", text, re.MULTILINE)
    devices = jax.devices()
    rows = [
        *([("trained on", html.escape(logged[-1]))] if logged else []),
        ("devices now", html.escape(f"{len(devices)} x {devices[0].device_kind}")),
        ("machine", html.escape(f"{platform.system()} {platform.machine()}, {os.cpu_count()} processor cores")),
        ("Python", platform.python_version()),
        *((package, version) for package in PACKAGES if (version := _version(package))),
    ]
    return Section("Environment", "environment", f"<p>When this report was written:</p>{facts(rows)}")


def sweep_sections(folder: pathlib.Path, measure: str | None = None) -> list[Section]:
    """Returns the sections of the report of a sweep, judged by `measure` or the metric that chooses checkpoints."""
    runs = find_runs(folder)
    chosen_by = main_measure(runs)
    found = collect(runs)
    if measure:
        found = collect(runs, list(dict.fromkeys([measure, *found.measures])))
    measure = measure or chosen_by
    return [
        sweep_summary(found, runs, measure),
        sweep_results(found, measure, chosen_by),
        sweep_plots(found, base_values(runs), measure),
        sweep_failures(runs),
        sweep_runs(found),
        sweep_config(found, runs),
        environment(runs[0].workdir),
    ]


def sweep_summary(found: Table, runs: Sequence[Run], measure: str) -> Section:
    """Returns how many runs have finished, and the best point."""
    label, top = f"best {html.escape(measure)}", best(found, measure)
    rows = [
        ("points", str(len(found.rows))),
        ("runs", f"{len(runs)}, {sum(map(has_finished, runs))} of them finished"),
        ("keys", ", ".join(map(code, found.keys))),
        *((label, f"{_link(found, row)}: {html.escape(cell(found, row, measure))}") for row in top),
    ]
    return Section("Summary", "summary", facts(rows))


def sweep_results(found: Table, measure: str, chosen_by: str) -> Section:
    """Returns a table with a row per point, the best by `measure` in bold; values of the best steps by `chosen_by`."""
    top, first = best(found, measure), len(found.keys)
    headings = columns(found)[first:]
    pairs = zip(found.rows, cells(found), strict=True)
    rows = [[_link(found, row), *map(html.escape, texts[first:])] for row, texts in pairs]
    bold = [number for number, row in enumerate(found.rows) if row in top]
    spread = ", ± standard deviation over n seeds" if has_seeds(found) else ""
    body = table("Results", ["point", *headings], rows, numbers=len(headings), best=bold)
    return Section("Results", "results", f"<p>At the step with the best {html.escape(chosen_by)}{spread}.</p>{body}")


def sweep_plots(found: Table, base: Mapping[str, str], measure: str) -> Section:
    """Returns plots of the measure against each key, and over the steps."""
    if not any(row.values[measure] for row in found.rows):
        return Section("Plots", "pictures", "<p>Nothing has been measured yet.</p>")
    pictures = []
    if found.keys:
        alt = f"{measure} of each point against {', '.join(found.keys)}; the numbers are in the table above"
        pictures.append(picture(draw_sweep(found, base, measure), alt))
    if measure.startswith("dev/"):
        pictures.append(picture(draw_progress(found, measure), f"{measure} of each point over the steps"))
    return Section("Plots", "pictures", "\n".join(pictures))


def sweep_failures(runs: Sequence[Run]) -> Section:
    """Returns the unfinished runs with the last line of their logs."""
    unfinished = [run for run in runs if not has_finished(run)]
    rows = [[html.escape(run.workdir.path.name), code(last_line(run.log) or "no log")] for run in unfinished]
    body = "<p>None; all runs have finished.</p>"
    if rows:
        body = "<p>These runs have not finished.</p>" + table("Failures", ["run", "last line of log.txt"], rows)
    return Section("Problems", "failures", body)


def sweep_runs(found: Table) -> Section:
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
            own = row_of(row.name, [run], found.measures, [read_log(run)])
            values = (html.escape(cell(found, own, measure)) for measure in found.measures)
            lines.append([name, "finished" if has_finished(run) else "not finished", *values])
    headings = ["run", "state", *map(heading, found.measures)]
    return Section("Runs", "runs", table("Runs", headings, lines, numbers=len(found.measures), anchors=anchors))


def sweep_config(found: Table, runs: Sequence[Run]) -> Section:
    """Returns the keys and values that all runs share."""
    flat = [configs.flatten(run.workdir.config()) for run in runs if run.workdir.config_file.is_file()]
    pairs = flat[0].items() if flat else ()
    same = {key: value for key, value in pairs if all(key in f and f[key] == value for f in flat)}
    text = f"The runs differ in {', '.join(map(code, found.keys)) or 'nothing'}; {len(same)} keys are the same."
    return Section("Config", "config", f"<p>{text}</p>{_every_key(same, shown=False)}")


def _every_key(flat: Mapping[str, Any], shown: bool) -> str:
    """Returns a table of keys and values, collapsed unless `shown`."""
    keys = table("All keys", ["key", "value"], [[code(key), _value(value)] for key, value in flat.items()])
    return f"<details{' open' * shown}><summary>all keys</summary>{keys}</details>"


def _value(value: Any) -> str:
    return code(value if value == configs.ABSENT else json.dumps(value, ensure_ascii=False, default=list))


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _anchor(found: Table, row: Row) -> str:
    return f"point-{found.rows.index(row) + 1}"


def _link(found: Table, row: Row) -> str:
    return f'<a href="#{_anchor(found, row)}">{html.escape(row.name)}</a>'
