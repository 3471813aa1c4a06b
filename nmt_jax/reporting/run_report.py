"""What a report says of any run: how far it came, its curves and measures, its config, and where it ran."""

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
from nmt_jax.reporting.html_page import Section, code, facts, picture, table
from nmt_jax.sweeps.jobs import last_line
from nmt_jax.training.record import best_step, has_ended, read_record
from nmt_jax.workdir import Workdir

PACKAGES = ("nmt-jax", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "ml-collections", "numpy", "sentencepiece")


def summary(folder: Workdir, rows: Sequence[Mapping[str, Any]]) -> Section:
    """How far a run came, and how good its best step is."""
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
        ("steps", f"{step:,} of {config.train.steps:,}" + ("" if has_ended(config, record) else ", not at its end")),
        ("training time", f"{seconds / 60:.1f} minutes"),
        *([(f"{unit} a second", f"{speeds[len(speeds) // 2]:,.0f} (median)")] if speeds else []),
        (f"best {metric}", "never measured" if value is None else f"{value:.4g} at step {best:,.0f}"),
    ]
    return Section("Summary", "summary", facts(found))


def curves(config: ConfigDict, rows: Sequence[Mapping[str, Any]]) -> Section:
    """Loss, quality, learning rate and speed over the steps, and the measures at the best and the last of them."""
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
        body += table("Measures of the dev set", ["measure", *chosen], cells, numbers=len(chosen))
    return Section("Curves", "curves", body)


def failures(folder: Workdir, rows: Sequence[Mapping[str, Any]]) -> Section:
    """Steps that were skipped, and a run that is not at its end, with the last line that it printed."""
    parts, before, after = [], 0, 0
    skips = []
    for row in rows:
        if (count := int(row.get("skipped") or 0)) > before:
            skips.append(f"{count - before} between {after:,} and {row['step']:,}")
            before = count
        after = row["step"]
    if skips:
        steps = f"{before:,} steps were skipped, as their loss or gradient was not finite: {', '.join(skips)}."
        parts.append(f"<p>{steps}</p>")
    if not has_ended(folder.config(), read_record(folder)):
        line = last_line(folder.path / "log.txt")
        parts.append("<p>The run is not at the end that its config sets." + (f" {code(line)}" if line else "") + "</p>")
    return Section("What went wrong", "failures", "\n".join(parts) or "<p>Nothing: no step was skipped.</p>")


def settings(config: ConfigDict, page: ConfigDict | None = None, name: str = "") -> Section:
    """Every key of a config; first those in which it differs from that of the page `name`."""
    body = ""
    own = configs.flatten(config)
    if page is not None:
        default = configs.flatten(page)
        keys = [key for key in {**own, **default} if own.get(key, configs.ABSENT) != default.get(key, configs.ABSENT)]
        rows = [[code(key), *(_value(flat.get(key, configs.ABSENT)) for flat in (own, default))] for key in keys]
        changes = table(f"Keys that differ from {name}", ["key", "here", "there"], rows)
        body = f"<p>Differs from {code(name)}:</p>{changes}" if rows else f"<p>As in {code(name)}.</p>"
    return Section("Config", "config", f"{body}\n{every_key(own, shown=not body)}")


def every_key(flat: Mapping[str, Any], shown: bool) -> str:
    """A table of keys and values, to be opened if it is not `shown`."""
    rows = [[code(key), _value(value)] for key, value in flat.items()]
    keys = table("Every key", ["key", "value"], rows)
    return f"<details{' open' * shown}><summary>every key</summary>{keys}</details>"


def environment(folder: Workdir) -> Section:
    """Versions and devices as the page was written, and the devices that the run's log names."""
    import jax

    log = folder.path / "log.txt"
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    named = re.findall(r"^\W*devices:? +(.+?)\s*$", text, re.MULTILINE)
    devices = jax.devices()
    found = [
        *([("trained on", html.escape(named[-1]))] if named else []),
        ("devices now", html.escape(f"{len(devices)} x {devices[0].device_kind}")),
        ("machine", html.escape(f"{platform.system()} {platform.machine()}, {os.cpu_count()} processor cores")),
        ("Python", platform.python_version()),
        *((package, version) for package in PACKAGES if (version := _version(package))),
    ]
    return Section("Environment", "environment", f"<p>As this page was written.</p>{facts(found)}")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _value(value: Any) -> str:
    return code(value if value == configs.ABSENT else json.dumps(value, ensure_ascii=False, default=list))
