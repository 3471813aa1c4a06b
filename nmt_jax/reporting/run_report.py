"""Sections of the report of a run: progress, curves and dev measures, config, and environment."""

import html
import importlib.metadata
import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.errors import UserError
from nmt_jax.reporting.html_page import Section, code, facts, picture, table
from nmt_jax.reporting.translation_report import translation_sections
from nmt_jax.sweeps.jobs import last_line
from nmt_jax.training.record import best_step, has_ended, read_record
from nmt_jax.workdir import Workdir

PACKAGES = ("nmt-jax", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "ml-collections", "numpy", "sentencepiece")


def run_sections(
    folder: Workdir,
    default: ConfigDict | None = None,
    config_file: str = "",
    texts: tuple[str, str] | None = None,
    lines: int = 500,
    samples: int = 3,
) -> list[Section]:
    """Returns the sections of the report of a run; see `report.write_report` for the arguments.

    default: the config of `config_file`, with which that of the run is compared.
    """
    config, rows = folder.config(), folder.metrics() if folder.metrics_file.is_file() else []
    sections = [summary(folder, rows)]
    if config.get("task") == "translate" and folder.started:
        sections += translation_sections(folder, texts, lines, samples)
    elif texts:
        raise UserError(f"{folder.path}: not a trained translator, so --source and --reference cannot be used")
    return [
        *sections,
        curves(config, rows),
        failures(folder, rows),
        settings(config, default, config_file),
        environment(folder),
    ]


def summary(folder: Workdir, rows: Sequence[Mapping[str, Any]]) -> Section:
    """Returns how far a run has got, its speed, and its best step."""
    config, record = folder.config(), read_record(folder)
    metric = f"dev/{config.train.early_stopping_metric}"
    best = best_step(rows, metric)
    value = next((row[metric] for row in rows if row["step"] == best and row.get(metric) is not None), None)
    step = max((row["step"] for row in rows), default=0)
    seconds = max((row.get("seconds") or 0.0 for row in rows), default=0.0)
    speed = next((key for row in rows for key in row if key.endswith("_per_second")), None)
    speeds = sorted(row[speed] for row in rows if row.get(speed)) if speed else []
    unit = speed.removesuffix("_per_second") if speed else ""
    found = [
        ("task", html.escape(config.get("task", ""))),
        ("model", html.escape(config.get("model_name", ""))),
        ("parameters", f"{record.parameters:,}" if record else "no checkpoint yet"),
        ("steps", f"{step:,} of {config.train.steps:,}" + ("" if has_ended(config, record) else ", not finished")),
        ("training time", f"{seconds / 60:.1f} minutes"),
        *([(f"{unit} per second", f"{speeds[len(speeds) // 2]:,.0f} (median)")] if speeds else []),
        (f"best {metric}", "never measured" if value is None else f"{value:.4g} at step {best:,.0f}"),
    ]
    return Section("Summary", "summary", facts(found))


def curves(config: ConfigDict, rows: Sequence[Mapping[str, Any]]) -> Section:
    """Returns plots over the steps, and a table of all dev measures at the best and the last step."""
    from nmt_jax.reporting.plots.curves import draw_curves

    measure = config.train.early_stopping_metric
    smoothing = config.loss.get("label_smoothing", 0.0) if "loss" in config else 0.0
    dev = [row for row in rows if any(key.startswith("dev/") for key in row)]
    best = best_step(rows, f"dev/{measure}")
    alt = f"Loss and dev {measure} over {max((row['step'] for row in rows), default=0):,} steps"
    body = picture(draw_curves(rows, measure, smoothing), alt)
    if dev:
        chosen = {f"best, step {row['step']:,}": row for row in dev if row["step"] == best}
        chosen |= {f"last, step {dev[-1]['step']:,}": dev[-1]}
        names = list(dict.fromkeys(key for row in dev for key in row if key.startswith("dev/")))
        cells = [[code(name), *(_number(row.get(name)) for row in chosen.values())] for name in names]
        body += table("Dev measures", ["measure", *chosen], cells, numbers=len(chosen))
    return Section("Curves", "curves", body)


def failures(folder: Workdir, rows: Sequence[Mapping[str, Any]]) -> Section:
    """Returns which steps were skipped, and whether the run is unfinished, with the last line of its log."""
    parts, before, after = [], 0, 0
    skips = []
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


def settings(config: ConfigDict, default: ConfigDict | None = None, name: str = "") -> Section:
    """Returns a table of all keys of a config, and before it those that differ from `page`, the config file `name`."""
    body = ""
    values = configs.flatten(config)
    if default is not None:
        defaults = configs.flatten(default)
        keys = [key for key in {**values, **defaults} if _get(values, key) != _get(defaults, key)]
        rows = [[code(key), *(_value(_get(flat, key)) for flat in (values, defaults))] for key in keys]
        changes = table(f"Keys that differ from {name}", ["key", "this run", "config file"], rows)
        body = f"<p>Differs from {code(name)}:</p>{changes}" if rows else f"<p>Same as {code(name)}.</p>"
    return Section("Config", "config", f"{body}\n{every_key(values, shown=not body)}")


def every_key(flat: Mapping[str, Any], shown: bool) -> str:
    """Returns a table of keys and values, collapsed unless `shown`."""
    rows = [[code(key), _value(value)] for key, value in flat.items()]
    keys = table("All keys", ["key", "value"], rows)
    return f"<details{' open' * shown}><summary>all keys</summary>{keys}</details>"


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


def _get(values: Mapping[str, Any], key: str) -> Any:
    return values.get(key, configs.ABSENT)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _value(value: Any) -> str:
    return code(value if value == configs.ABSENT else json.dumps(value, ensure_ascii=False, default=list))
