"""Token similarities of two texts and the matches that BERTScore or YiSi-1 averages (Zhang et al., 2020, figure 1)."""

import html

import numpy as np

from nmt_jax.reporting.html_page import WIDE, html_page
from nmt_jax.reporting.plots.compared import Similarities
from nmt_jax.reporting.plots.labels import LABEL, axes_at, color_bar, cut, headline, inches, label_sides, note
from nmt_jax.reporting.plots.style import NEAR, QUIET, Axes, Figure, new_figure, shade

CELL = 0.25  # inches: two digits at DIGITS points
DIGITS = 6.5
BAR = 0.8  # inches: the length of a bar for similarity 1
MARK = "#111111"
NUMBERED = 5000  # most cells with numbers; drawing more takes minutes

STYLE = f"""\
{WIDE}table {{ border-collapse: separate; border-spacing: 2px; font-size: .8rem; line-height: 1.5; }}
th {{ font-weight: 400; white-space: nowrap; }}
th.above {{ vertical-align: bottom; }}
th.above bdi.long {{ writing-mode: vertical-rl; }}
th.beside {{ text-align: right; padding: 0 .4em; }}
.without {{ color: {QUIET}; font-style: italic; }}
td {{ min-width: 1.8em; text-align: center; border: 2px solid transparent; }}
.row {{ border-top-color: {MARK}; border-bottom-color: {MARK}; }}
.column {{ border-left-color: {MARK}; border-right-color: {MARK}; }}
span.row, span.column {{ white-space: nowrap; border-width: 2px; border-style: solid; padding: 0 .5em; color: {MARK};
  background: {shade(NEAR, 0.6)}; }}
span.row:not(.column) {{ border-left-color: transparent; border-right-color: transparent; }}
span.column:not(.row) {{ border-top-color: transparent; border-bottom-color: transparent; }}
td.mean {{ font-weight: 600; color: #212529; padding: 0 .5em; }}
"""


def heading(found: Similarities) -> str:
    """Returns a title with score, precision and recall."""
    parts = found.result.parts
    return (
        f"{found.metric} {found.result.score:.4f}: precision {parts['precision']:.4f} (rows), "
        f"recall {parts['recall']:.4f} (columns)"
    )


def draw_similarity(found: Similarities) -> Figure:
    """Draws a matrix with hypothesis tokens as rows and reference tokens as columns; row and column maxima are marked.

    Bars show the maxima: the length is the similarity, the thickness the token's weight. Their weighted means are
    precision and recall, before rescaling if the metric rescales.
    """
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    rows, columns = ([cut(label) for label in side] for side in (found.hypothesis, found.reference))
    across, down = CELL * len(columns), CELL * len(rows)
    left, top = 0.4 + max(map(inches, rows)), 0.75 + max(max(map(inches, columns)), 0.1)
    beside, below = 0.12 + BAR + 0.35, 0.12 + BAR + 0.2
    right, bottom = beside + 0.65, below + 0.35
    width = max(left + across + right, 0.3 + 1.1 * inches(heading(found)))
    height = max(top + down + bottom, top + 1.0 + 0.5)  # the colour bar is at least 1 inch high
    figure = new_figure(width, height)
    ramp = LinearSegmentedColormap.from_list("near", NEAR)
    norm = Normalize(_low(found), 1.0)
    axes = axes_at(figure, left, top, across, down)
    image = axes.imshow(found.matrix, cmap=ramp, norm=norm, aspect="auto", interpolation="nearest")
    label_sides(axes, columns, rows)
    for labels, weights in zip((axes.get_yticklabels(), axes.get_xticklabels()), found.weights, strict=True):
        for label, weight in zip(labels, weights, strict=True):
            if weight == 0:
                label.set_color(QUIET)
    if found.matrix.size <= NUMBERED:
        for (row, column), value in np.ndenumerate(found.matrix):
            axes.text(column, row, _hundredths(value), ha="center", va="center", fontsize=DIGITS, color=MARK)
    for row, column in enumerate(found.matrix.argmax(axis=1)):
        _mark(axes, row, column, flat=True)
    for column, row in enumerate(found.matrix.argmax(axis=0)):
        _mark(axes, row, column, flat=False)
    _bars(axes_at(figure, left + across + 0.12, top, BAR, down, sharey=axes), found, across=True)
    _bars(axes_at(figure, left, top + down + 0.12, across, BAR, sharex=axes), found, across=False)
    color_bar(figure, image, left + across + beside + 0.12, top, 0.12, max(down, 1.0))
    headline(figure, heading(found))
    note(figure, 0.1, 0.42, "hypothesis: rows, reference: columns; cosines in hundredths", va="center")
    _key(figure, height)
    return figure


def _low(found: Similarities) -> float:
    """Returns the lower end of the colour scale: the least similarity, rounded down to a tenth."""
    return float(min(np.floor(10 * found.matrix.min()) / 10, 0.9))


def _hundredths(value: float) -> str:
    return str(round(100 * float(value)))


def _mark(axes: Axes, row: int, column: int, *, flat: bool) -> None:
    """Marks the maximum of a row with lines above and below, or that of a column with lines left and right."""
    start, end = -0.42, 0.42
    for side in (start, end):
        xs, ys = ((start, end), (side, side)) if flat else ((side, side), (start, end))
        points = [column + x for x in xs], [row + y for y in ys]
        axes.plot(*points, color=MARK, linewidth=1.4, solid_capstyle="projecting")


def _bars(axes: Axes, found: Similarities, *, across: bool) -> None:
    """Draws the maximum of each row to the right, or of each column downwards."""
    weights, best = (found.weights[0], found.best(1)) if across else (found.weights[1], found.best(0))
    tokens = np.flatnonzero(weights > 0)
    thickness = 0.8 * weights[tokens] / weights.max() if len(tokens) else weights[tokens]
    color = NEAR[-1]
    for k, value in zip(tokens.tolist(), best[tokens].tolist(), strict=True):
        end = max(value, 0) + 0.05
        x, y, ha, va = (end, k, "left", "center") if across else (k, end, "center", "top")
        axes.text(x, y, _hundredths(value), fontsize=DIGITS, color=MARK, ha=ha, va=va)
    if across:
        axes.barh(tokens, best[tokens], height=thickness, color=color, linewidth=0)
        axes.set_xlim(0, 1)
    else:
        axes.bar(tokens, best[tokens], width=thickness, color=color, linewidth=0)
        axes.set_ylim(1, 0)
    axes.axis("off")


def _key(figure: Figure, height: float) -> None:
    """Draws the legend of the marks at the bottom."""
    x, y = 0.15, height - 0.2
    for text, marks in (("best of row", [True]), ("best of column", [False]), ("both", [True, False])):
        axes = axes_at(figure, x, y - 0.09, 0.18, 0.18)
        axes.set(xlim=(-0.5, 0.5), ylim=(-0.5, 0.5), facecolor=shade(NEAR, 0.6), xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        for mark in marks:
            _mark(axes, 0, 0, flat=mark)
        note(figure, x + 0.26, y, text, va="center", fontsize=LABEL)
        x += 0.26 + inches(text) + 0.1


def similarity_page(found: Similarities) -> str:
    """Returns the matrix as HTML; hovering over a cell shows its tokens."""
    low = _low(found)
    rows, columns = found.matrix.argmax(axis=1).tolist(), found.matrix.argmax(axis=0).tolist()
    above = "".join(_head("above", *pair) for pair in zip(found.reference, found.weights[1], strict=True))
    lines = [f"<tr><th></th>{above}<td></td></tr>"]
    for row, token in enumerate(found.hypothesis):
        cells = []
        for column, other in enumerate(found.reference):
            value = found.matrix[row, column]
            marks = " ".join(filter(None, ["row" * (rows[row] == column), "column" * (columns[column] == row)]))
            color = shade(NEAR, (value - low) / (1 - low))
            title = html.escape(f"{token} – {other}: {value:.4f}")
            cells.append(f'<td class="{marks}" style="background: {color}" title="{title}">{_hundredths(value)}</td>')
        mean = _mean(found.best(1)[row], found.weights[0][row])
        lines.append(f"<tr>{_head('beside', token, found.weights[0][row])}{''.join(cells)}{mean}</tr>")
    means = "".join(_mean(*pair) for pair in zip(found.best(0), found.weights[1], strict=True))
    lines.append(f"<tr><th></th>{means}<td></td></tr>")
    legend = (
        "Cosines in hundredths; rows: hypothesis, columns: reference. "
        '<span class="row">best of row</span> <span class="column">best of column</span> '
        '<span class="row column">both</span> Precision is the weighted mean of the last column, recall of the last '
        "row; tokens without a number there have no weight."
    )
    table = "\n".join(lines)
    return html_page(heading(found), legend, f"<table>\n{table}\n</table>", STYLE)


def _head(kind: str, token: str, weight: float) -> str:
    without = "" if weight > 0 else " without"
    long = ' class="long"' if len(token) > 1 else ""  # single characters stay upright
    return f'<th class="{kind}{without}" title="weight {weight:.4g}"><bdi{long}>{html.escape(token)}</bdi></th>'


def _mean(best: float, weight: float) -> str:
    """Returns the cell of a token's maximum, empty if the token has no weight."""
    title = f"{best:.4f}, weight {weight:.4g}"
    return f'<td class="mean" title="{title}">{_hundredths(best)}</td>' if weight else "<td></td>"
