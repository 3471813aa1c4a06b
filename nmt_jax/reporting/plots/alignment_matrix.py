"""The links of a sentence pair: a matrix of source words and target words, with the links that people made."""

from collections.abc import Sequence

import numpy as np

from metrics_jax.prediction.alignments import alignment_scores, alignment_statistics
from nmt_jax.alignment.links import Alignment, Gold
from nmt_jax.reporting.plots.labels import LABEL, axes_at, color_bar, cut, headline, inches, label_sides, note
from nmt_jax.reporting.plots.style import Axes, Figure, new_figure

CELL = 0.2  # inches
RAMP = ("#d8efe5", "#7cc8d0", "#4a9cc7", "#2e74ac")  # of posteriors from 0 to 1; 0 is not white, 1 shows black frames
LINKED = RAMP[2]  # without posteriors
MARK, GRID = "#111111", "#e9ecef"


def draw_alignment(source: Sequence[str], target: Sequence[str], found: Alignment, gold: Gold | None = None) -> Figure:
    """Draws source words as columns, target words as rows, and links as cells, shaded by their posteriors if they have.

    Sure gold links have a frame, those that are only possible a dashed one.
    """
    from matplotlib.colors import LinearSegmentedColormap

    columns, rows = ([cut(word) for word in side] for side in (source, target))
    shares = np.full((len(target), len(source)), np.nan)
    for number, (i, j) in enumerate(found.links):
        shares[j, i] = found.posteriors[number] if found.posteriors else RAMP.index(LINKED) / (len(RAMP) - 1)
    title, key = heading(found, gold), _key(found, gold)
    across, down = CELL * len(columns), CELL * len(rows)
    left, top = 0.3 + max(map(inches, rows)), 0.75 + max(map(inches, columns))
    right, bottom = (0.7 if found.posteriors else 0.2), 0.5
    written = 0.3 + 1.1 * max(inches(title), sum(inches(text) + 0.36 for text, _ in key))
    shown = max(down, 1.2) if found.posteriors else down  # the colour bar is at least 1.2 inches high
    height = top + shown + bottom
    figure = new_figure(max(left + across + right, written), height)
    axes = axes_at(figure, left, top, across, down)
    ramp = LinearSegmentedColormap.from_list("posterior", RAMP)
    image = axes.imshow(shares, cmap=ramp, vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    label_sides(axes, columns, rows)
    _grid(axes, len(columns), len(rows))
    sure, possible = gold or (frozenset(), frozenset())
    for i, j in sorted(possible):
        _frame(axes, i, j, sure=(i, j) in sure)
    if found.posteriors:
        color_bar(figure, image, left + across + 0.12, top, 0.12, shown, ticks=[0, 0.25, 0.5, 0.75, 1])
    headline(figure, title)
    note(figure, 0.1, 0.42, "source: columns, target: rows", va="center")
    _draw_key(figure, key, height - 0.2)
    return figure


def heading(found: Alignment, gold: Gold | None) -> str:
    """Returns a title with the number of links, and with their scores against gold links."""
    title = f"{len(found.links)} link{'s' * (len(found.links) != 1)}"
    if gold is None:
        return title
    scores = alignment_scores(alignment_statistics([set(found.links)], [gold.sure], [gold.possible]))
    return f"{title}: AER {scores.error_rate:.2f}, precision {scores.precision:.2f}, recall {scores.recall:.2f}"


def _grid(axes: Axes, columns: int, rows: int) -> None:
    axes.set_xticks(np.arange(0.5, columns - 1), minor=True)
    axes.set_yticks(np.arange(0.5, rows - 1), minor=True)
    axes.tick_params(which="minor", length=0)
    axes.grid(which="minor", color=GRID, linewidth=0.6)


def _frame(axes: Axes, i: float, j: float, *, sure: bool) -> None:
    """Draws the frame of a gold link inside its cell."""
    from matplotlib.patches import Rectangle

    style = "solid" if sure else (0, (2, 1.5))
    frame = Rectangle((i - 0.36, j - 0.36), 0.72, 0.72, fill=False, edgecolor=MARK, linewidth=1.3, linestyle=style)
    axes.add_patch(frame)


def _key(found: Alignment, gold: Gold | None) -> list[tuple[str, bool | None]]:
    """Returns the texts of the key, and whether a gold link is sure; None: a link that was found."""
    linked = [] if found.posteriors else [("link", None)]
    return [*linked, ("sure gold link", True), ("possible gold link", False)] if gold else [*linked]


def _draw_key(figure: Figure, key: Sequence[tuple[str, bool | None]], y: float) -> None:
    """Draws the key of the marks in a row."""
    x = 0.15
    for text, sure in key:
        axes = axes_at(figure, x, y - 0.09, 0.18, 0.18)
        axes.set(xlim=(-0.5, 0.5), ylim=(-0.5, 0.5), xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        if sure is None:
            axes.set_facecolor(LINKED)
        else:
            _frame(axes, 0, 0, sure=sure)
        note(figure, x + 0.26, y, text, va="center", fontsize=LABEL)
        x += 0.26 + inches(text) + 0.1
