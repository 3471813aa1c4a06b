"""Metric scores against human judgements, and a ranking of metrics by their agreement."""

import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nmt_jax.judging.evaluation import Evaluation
from nmt_jax.reporting.plots.labels import cut
from nmt_jax.reporting.plots.style import QUIET, SYSTEMS, Figure, drawing, new_figure, save

NAMED = 30  # most points that are labelled with names
ACROSS = 4  # panels per row


def save_figures(evaluation: Evaluation, folder: pathlib.Path) -> None:
    """Write FILE.HUMAN.png with a scatter plot per metric, and FILE.HUMAN.COEFFICIENT.png with the ranking."""
    for part in evaluation.parts:
        systems: list[str] = []
        human, points = part.judgements.human, part.scores
        if part.level == "system":
            systems = list(map(str, part.judgements.system_names))
            human, points = part.judgements.system_scores(), part.judgements.system_means(points)
        title = f"{part.name}.{part.human}"
        with drawing():
            figure = draw_scatter(dict(zip(evaluation.metrics, points, strict=True)), human, systems, title)
            save(figure, folder / f"{title}.png")
    for column in evaluation.columns:
        with drawing():
            bounds = [(one.lower, one.upper) for one in column.intervals] if column.intervals else None
            figure = draw_ranking(column.metrics, column.values, bounds, column.clusters, column.title)
            save(figure, folder / f"{column.name}.{column.human}.{column.coefficient}.png")


def draw_scatter(scores: Mapping[str, np.ndarray], human: np.ndarray, names: Sequence[str], title: str) -> Figure:
    """Draws one panel per metric: score against human judgement of each text or system, and a least-squares line.

    scores: float[N] by metric; human: float[N]; names: labels of the points, empty for texts.
    """
    across = min(len(scores), ACROSS)
    down = math.ceil(len(scores) / across)
    figure = new_figure(max(3.1 * across, 4.0), 2.9 * down + 0.3, layout="constrained")
    panels = figure.subplots(down, across, squeeze=False).ravel()
    few = len(human) <= NAMED
    for axes, (name, values) in zip(panels, scores.items(), strict=False):
        size, shade = (18.0, 1.0) if few else (max(2.0, 150 / math.sqrt(len(human))), 0.4)
        axes.scatter(values, human, s=size, alpha=shade, color=SYSTEMS[1], linewidths=0)
        if np.ptp(values) > 0:
            ends = np.array([values.min(), values.max()])
            slope, height = np.polyfit(values - values.mean(), human, 1)
            axes.plot(ends, height + slope * (ends - values.mean()), color=SYSTEMS[0], linewidth=1.2)
        for point, label in enumerate(names if few else ()):
            style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 5, "color": QUIET}
            axes.annotate(cut(label), (values[point], human[point]), (2, 2), **style)
        axes.set_title(cut(name), parse_math=False)
    for axes in panels[len(scores) :]:
        axes.set_visible(False)
    figure.supylabel("human judgement", fontsize=9)
    figure.suptitle(title, fontsize=10, parse_math=False)
    return figure


def draw_ranking(
    metrics: Sequence[str],
    values: np.ndarray,
    bounds: Sequence[tuple[float, float]] | None,
    clusters: np.ndarray | None,
    title: str,
) -> Figure:
    """Draws metrics from best to worst, each with coefficient, interval, and the colour of its cluster."""
    order = np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable")
    figure = new_figure(6.4, 0.8 + 0.32 * len(metrics), layout="constrained")
    axes = figure.subplots()
    for position, number in enumerate(order.tolist()):
        color = SYSTEMS[(int(clusters[number]) - 1) % len(SYSTEMS)] if clusters is not None else SYSTEMS[1]
        if math.isnan(values[number]):
            axes.annotate("undefined", (0.02, position), xycoords=("axes fraction", "data"), va="center", color=QUIET)
            continue
        if bounds and not math.isnan(bounds[number][0]):
            axes.plot(bounds[number], (position, position), color=color, linewidth=1.6)
        axes.plot(values[number], position, "o", color=color, markersize=6)
        style: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": 7}
        axes.annotate(f"{values[number]:.3f}", (values[number], position), (0, 5), **style)
    axes.set_yticks(range(len(metrics)), [metrics[k] for k in order], color="black", parse_math=False)
    axes.set_ylim(len(metrics) - 0.5, -0.7)
    axes.grid(visible=False, axis="y")
    title += "" if clusters is None else "; colours: clusters"
    axes.set_title(title, parse_math=False)
    return figure
