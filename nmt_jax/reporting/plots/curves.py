"""Learning curves of a run."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nmt_jax.reporting.plots.style import DEV, QUIET, TRAIN, Axes, Figure, new_figure
from nmt_jax.training.record import higher_is_better

NAMES = {"bleu": "BLEU", "f1": "F1", "matthews": "Matthews correlation"}
NAMES |= {name: f"{name.title()}'s correlation" for name in ("pearson", "spearman")}


def draw_curves(
    rows: Sequence[Mapping[str, float | None]], measure: str = "bleu", label_smoothing: float = 0.0
) -> Figure:
    """Draws loss and a dev measure over the steps of a log, and below them learning rate and speed.

    measure: the metric by which the best checkpoint is chosen. label_smoothing: shown in the legend, because the
    training loss includes it and the dev loss does not.
    """

    def series(name: str) -> tuple[list[float], list[float]]:
        points = [(row["step"], row[name]) for row in rows if row.get(name) is not None]
        return [float(step) for step, _ in points if step is not None], [float(y) for _, y in points if y is not None]

    upwards = higher_is_better(measure)
    speeds = (name for row in rows for name in row if name.endswith("_per_second"))
    unit = next(speeds, "tokens").removesuffix("_per_second")
    figure = new_figure(10.0, 5.2, layout="constrained")
    (loss, bleu), (rate, speed) = figure.subplots(2, 2, sharex=True, height_ratios=(3.2, 1))
    steps, losses = series("loss")
    if steps:
        loss.plot(steps, losses, color=TRAIN, linewidth=0.8, alpha=0.6)
        label = f"train (labels smoothed by {label_smoothing:g})" if label_smoothing else "train"
        loss.plot(steps, _smooth(losses), color=TRAIN, linewidth=2, label=label)
    loss.plot(*series("dev/loss"), color=DEV, linewidth=1.6, marker="o", markersize=3.5, label="dev")
    loss.set_title(f"loss (nats per {unit.removesuffix('s')})")
    loss.legend(frameon=False)
    _limit_to_later_values(loss, losses + series("dev/loss")[1])
    steps, values = series(f"dev/{measure}")
    bleu.plot(steps, values, color=DEV, linewidth=1.6, marker="o", markersize=3.5)
    bleu.set_title(f"{NAMES.get(measure, measure.replace('_', ' '))} of the dev set")
    if values:
        best = int(np.argmax(values) if upwards else np.argmin(values))
        bleu.plot(steps[best], values[best], "o", markersize=9, markerfacecolor="none", color=DEV)
        position, offset = (steps[best], values[best]), (0, -9 if upwards else 9)
        style: dict[str, Any] = {"ha": "center", "va": "top" if upwards else "bottom", "color": DEV, "weight": "bold"}
        bleu.annotate(f"{values[best]:.1f}", position, offset, textcoords="offset points", **style)
    rate.plot(*series("learning_rate"), color=QUIET, linewidth=1.2)
    rate.set_title("learning rate", fontsize=8)
    speed.plot(*series(f"{unit}_per_second"), color=QUIET, linewidth=0.8)
    speed.set_title(f"{unit} per second", fontsize=8)
    for axes in (rate, speed):
        axes.set_xlabel("step")
        axes.set_ylim(bottom=0)
        axes.locator_params(axis="y", nbins=3)
        axes.tick_params(labelsize=7)
    return figure


def _smooth(values: Sequence[float]) -> np.ndarray:
    """Returns the mean of each value and its neighbours, a fortieth of the run to both sides (fewer at the ends)."""
    reaches = [min(len(values) // 40, n, len(values) - 1 - n) for n in range(len(values))]
    return np.array([np.mean(values[n - reach : n + reach + 1]) for n, reach in enumerate(reaches)])


def _limit_to_later_values(axes: Axes, values: Sequence[float]) -> None:
    """Cuts off the first values if they are far above all others, so that the rest of the curve is not flat."""
    if len(values) < 20:
        return
    low, most, high = np.percentile(values, (0, 97, 100))
    if high > low + 1.4 * (most - low):
        axes.set_ylim(low - 0.05 * (most - low), low + 1.2 * (most - low))
