"""A measure of the runs of a sweep against each key that they change, and over the steps."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt_jax.errors import UserError
from nmt_jax.reporting.plots.labels import cut
from nmt_jax.reporting.plots.style import QUIET, SYSTEMS, Axes, Figure, new_figure
from nmt_jax.reporting.sweep_table import Row, Table, has_seeds
from nmt_jax.sweeps.runs import read_log

ACROSS = 3  # panels per row
LOGARITHMIC = 8.0  # least ratio of the largest to the smallest value for a logarithmic axis
Values = tuple[str, ...]


class Point(NamedTuple):
    """A row in the panel of a key: other changed keys, the value of the key, mean and standard deviation."""

    others: str
    value: Values
    row: Row
    mean: float
    deviation: float | None


def draw_sweep(table: Table, base: Mapping[str, str], measure: str) -> Figure:
    """Draws one panel per key, or per group of keys that only change together, with a point per row of the table.

    base: the value of each key in rows that do not change it. The row with these values in all keys has a ring, and a
    line marks its mean in all panels. The panel of a key shows the rows that change it and that row; rows that agree
    in all other keys have the same colour. Bars are standard deviations over seeds. Raises UserError if no row has the
    measure.
    """
    if not any(row.values[measure] for row in table.rows):
        raise UserError(
            f"{measure}: no run has measured it yet; choose another key of metrics.jsonl with --measure=KEY"
        )
    if not table.keys:
        raise UserError("the runs differ only in the seed, so there is no key to plot against")
    settings = {row.name: {key: row.point.get(key, base.get(key, "")) for key in table.keys} for row in table.rows}
    groups = together(table.keys, [*settings.values()])
    panels = [(keys, _points(table, keys, settings, base, measure)) for keys in groups]
    panels = [(keys, points) for keys, points in panels if len(points) > 1] or panels
    base_row = next((row for row in table.rows if settings[row.name] == dict(base) and row.values[measure]), None)
    across = min(len(panels), ACROSS)
    down = -(-len(panels) // across)
    figure = new_figure(max(3.4 * across, 4.6), 2.9 * down + 0.5, layout="constrained")
    grid = figure.subplots(down, across, sharey=True, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, (keys, points) in zip(grid.flat, panels, strict=False):
        _draw(axes, keys, points, base_row)
    for axes in grid[:, 0]:
        axes.set_ylabel(measure)
    bars = "; bars: standard deviation over seeds" if has_seeds(table) else ""
    ring = "; ring and dotted line: base" if base_row else ""
    figure.suptitle(f"{measure} of {len(table.rows)} points{bars}{ring}", x=0.01, ha="left", fontsize=9, color=QUIET)
    return figure


def draw_progress(table: Table, measure: str) -> Figure:
    """Draws a measure over the steps, one colour per point; the mean of its seeds is a thick line."""
    from matplotlib import colormaps

    figure = new_figure(10.0, max(3.6, 0.22 * len(table.rows) + 0.6), layout="constrained")
    axes = figure.subplots()
    shades = colormaps["turbo"](np.linspace(0.05, 0.95, len(table.rows)))
    colors = SYSTEMS if len(table.rows) <= len(SYSTEMS) else [tuple(shade) for shade in shades]
    for row, color in zip(table.rows, colors, strict=False):
        logs = [[line for line in read_log(run) if line.get(measure) is not None] for run in row.runs]
        runs = [{line["step"]: line[measure] for line in log} for log in logs if log]
        steps = sorted(set.intersection(*map(set, runs))) if runs else []
        for run in runs if len(runs) > 1 else []:
            axes.plot(*zip(*run.items(), strict=True), color=color, linewidth=0.7, alpha=0.5)
        means = [np.mean([run[step] for run in runs]) for step in steps]
        axes.plot(steps, means, color=color, linewidth=1.8, marker="o", markersize=3, label=cut(row.name))
    axes.set_title(f"{measure} of each point" + ("; thin: its seeds" if has_seeds(table) else ""))
    axes.set_xlabel("step")
    figure.legend(frameon=False, loc="outside right upper", fontsize=8)
    return figure


def together(keys: Sequence[str], settings: Sequence[Mapping[str, str]]) -> list[tuple[str, ...]]:
    """Groups keys that only change together, so that the value of one determines that of the others."""
    groups: list[list[str]] = []
    for key in keys:
        for group in groups:
            pairs = {(setting[group[0]], setting[key]) for setting in settings}
            if len(pairs) == len({one for one, _ in pairs}) == len({other for _, other in pairs}):
                group.append(key)
                break
        else:
            groups.append([key])
    return [tuple(group) for group in groups]


def _points(
    table: Table, keys: Values, settings: Mapping[str, Mapping[str, str]], base: Mapping[str, str], measure: str
) -> list[Point]:
    """Returns the points in the panel of some keys."""
    points = []
    for row in table.rows:
        setting = settings[row.name]
        others = {key: value for key, value in setting.items() if key not in keys and value != base.get(key)}
        mean = row.mean(measure)
        if mean is not None and (not others or any(key in row.point for key in keys)):
            label = ", ".join(f"{_tail(key)}={value}" for key, value in others.items())
            points.append(Point(label, tuple(setting[key] for key in keys), row, mean, row.deviation(measure)))
    return points


def _draw(axes: Axes, keys: tuple[str, ...], points: Sequence[Point], base_row: Row | None) -> None:
    """Draws one panel."""
    numbers = {point.value: _numbers(point.value) for point in points}
    ordered = all(number is not None for number in numbers.values())
    values = sorted(numbers, key=lambda value: numbers[value] or ()) if ordered else list(numbers)
    numeric = ordered and len(keys) == 1  # groups of keys are drawn as categories
    positions = {value: number[0] if numeric and number else values.index(value) for value, number in numbers.items()}
    labels = sorted(dict.fromkeys(point.others for point in points), key=bool)  # the base always has the first colour
    named = len(labels) <= len(SYSTEMS)
    for number, label in enumerate(labels):
        members = [point for value in values for point in points if point.others == label and point.value == value]
        shift = 0.0 if numeric else 0.5 * (number - (len(labels) - 1) / 2) / max(len(labels), 3)
        xs = [positions[point.value] + shift for point in members]
        style: dict[str, Any] = {"color": SYSTEMS[number], "label": label or None} if named else {"color": QUIET}
        style |= {"linestyle": "-" if numeric else "none", "alpha": 1.0 if named else 0.5}
        style |= {"linewidth": 1.4, "elinewidth": 1.0, "capsize": 2.5, "marker": "o", "markersize": 4}
        means, bars = [point.mean for point in members], [point.deviation or 0.0 for point in members]
        axes.errorbar(xs, means, yerr=bars, **style)
        for x, point in zip(xs, members, strict=True):
            if point.row is base_row:
                axes.plot(x, point.mean, "o", markersize=10, markerfacecolor="none", color=SYSTEMS[0])
    if base_row:
        axes.axhline(next(p.mean for p in points if p.row is base_row), color=QUIET, linewidth=0.8, linestyle=":")
    least, most = min(positions.values()), max(positions.values())
    if numeric and least > 0 and most >= LOGARITHMIC * least:
        axes.set_xscale("log")
    axes.set_xticks([positions[value] for value in values], [cut(", ".join(value)) for value in values])
    axes.minorticks_off()
    if not numeric:
        axes.set_xlim(-0.6, len(values) - 0.4)
        if sum(len(label.get_text()) for label in axes.get_xticklabels()) > 32:
            axes.tick_params(axis="x", rotation=30)
    axes.grid(visible=True, axis="y")
    axes.grid(visible=False, axis="x")
    axes.set_title(", ".join(map(_tail, keys)))
    if any(labels) and named:
        axes.legend(frameon=False, fontsize=7)


def _tail(key: str) -> str:
    return key.rpartition(".")[2]


def _numbers(value: Values) -> tuple[float, ...] | None:
    """Returns the values as numbers, or None if one is not a number."""
    try:
        return tuple(map(float, value))
    except ValueError:
        return None
