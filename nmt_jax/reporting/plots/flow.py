"""The transport plan of MoverScore or Word Mover's Distance as a flow diagram (Kusner et al., 2015, figure 1)."""

import html
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt_jax.reporting.html_page import WIDE, html_page
from nmt_jax.reporting.plots.compared import Plan
from nmt_jax.reporting.plots.labels import LABEL, color_bar, cut, fonts_for, headline, inches, note
from nmt_jax.reporting.plots.style import FAR, QUIET, Figure, new_figure, shade

ROW = 0.21  # inches: the least height of a word
THICK = 0.65  # rows: the height of a word's bar on the side with more words if all weights are equal
GAP = 0.3  # rows: the least distance of two bars
FAINT = 1e-3  # of the largest mass; smaller ones are not drawn
BAR, ACROSS = 0.09, 2.6  # inches: the width of a bar, and the distance of the two sides
DOTS = 96  # pixels per inch of a page

STYLE = f"""\
{WIDE}svg {{ font-size: 14px; display: block; }}
svg path {{ opacity: .8; }}
svg:hover path {{ opacity: .25; }}
svg path:hover {{ opacity: 1; }}
.scale {{ display: inline-block; width: 6em; height: .8em; background: linear-gradient(to right, {", ".join(FAR)}); }}
"""


class Share(NamedTuple):
    """Position of a word on its side, in rows from the top: the middle of its label, and the bar of its mass."""

    middle: float
    top: float
    thickness: float


class Ribbon(NamedTuple):
    """Mass moved from one word to another: its top at both ends, in rows from the top, and its cost."""

    source: int
    target: int
    left: float
    right: float
    thickness: float
    mass: float
    cost: float


def heading(found: Plan) -> str:
    """Returns a title with the score and the distance."""
    score = f"{found.result.score:.4f}"
    formula = f" = {found.formula.format(f'{found.distance:.4f}')}," if found.formula else ":"
    return f"{found.metric} {score}{formula} the minimal cost of moving all words"


def layout(found: Plan) -> tuple[float, tuple[list[Share], list[Share]], list[Ribbon]]:
    """Returns the number of rows, the words of both sides, and the ribbons, cheapest first."""
    scale = THICK * max(map(len, found.weights))
    heights = [np.maximum(scale * weights + GAP, 1.0) for weights in found.weights]
    rows = max(float(side.sum()) for side in heights)
    sides = []
    for side, weights in zip(heights, found.weights, strict=True):
        middles = (rows - side.sum()) / 2 + np.cumsum(side) - side / 2
        pairs = zip(middles.tolist(), weights.tolist(), strict=True)
        sides.append([Share(middle, middle - scale * weight / 2, scale * weight) for middle, weight in pairs])
    # The ribbons of a word are in the order of their targets, so that they do not cross at its edge.
    before, after = np.cumsum(found.moved, axis=1) - found.moved, np.cumsum(found.moved, axis=0) - found.moved
    ribbons = []
    for i, j in np.argwhere(found.moved > FAINT * found.moved.max()).tolist():
        mass, cost = float(found.moved[i, j]), float(found.cost[i, j])
        left, right = sides[0][i].top + scale * float(before[i, j]), sides[1][j].top + scale * float(after[i, j])
        ribbons.append(Ribbon(i, j, left, right, scale * mass, mass, cost))
    return rows, (sides[0], sides[1]), sorted(ribbons, key=lambda ribbon: ribbon.cost)


def largest_cost(found: Plan) -> float:
    """Returns the largest cost of any pair, which has the darkest colour."""
    return float(found.cost.max()) or 1.0


def draw_flow(found: Plan) -> Figure:
    """Draws the hypothesis on the left and the reference on the right; thickness is mass, colour is cost."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path

    rows, sides, ribbons = layout(found)
    labels = [[cut(label) for label in side] for side in (found.hypothesis, found.reference)]
    room = [max(0.9, *map(inches, side)) + 0.25 for side in labels]
    top, bottom = 0.75, 0.75
    across = max(ACROSS, 0.2 + 1.1 * inches(heading(found)) - sum(room))
    width, height = sum(room) + across, top + rows * ROW + bottom
    figure = new_figure(width, height)
    axes = figure.add_axes((0, bottom / height, 1, rows * ROW / height))
    axes.set(xlim=(0, width), ylim=(rows, 0))
    axes.axis("off")
    edges = (room[0], room[0] + across)
    for ribbon in ribbons:
        points = _outline(ribbon, edges[0] + BAR, edges[1] - BAR)
        codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
        color = shade(FAR, ribbon.cost / largest_cost(found))
        axes.add_patch(PathPatch(Path([*points, points[0]], codes), facecolor=color, alpha=0.8, linewidth=0))
    for side, names, edge, inward in zip(sides, labels, edges, (1, -1), strict=True):
        style: dict[str, Any] = {"ha": "right" if inward > 0 else "left", "va": "center_baseline", "parse_math": False}
        style |= {"fontsize": LABEL + 1, "fontfamily": fonts_for(names)}
        for share, name in zip(side, names, strict=True):
            axes.add_patch(Rectangle((edge, share.top), inward * BAR, share.thickness, color=QUIET, linewidth=0))
            color = "black" if share.thickness else QUIET
            axes.text(edge - inward * 0.07, share.middle, name, color=color, **style)
    headline(figure, heading(found))
    note(figure, edges[0], 0.55, "hypothesis", ha="right", va="center")
    note(figure, edges[1], 0.55, "reference", ha="left", va="center")
    ramp = ScalarMappable(Normalize(0, largest_cost(found)), LinearSegmentedColormap.from_list("far", FAR))
    bar = color_bar(figure, ramp, width / 2 - 0.6, height - 0.48, 1.2, 0.1, orientation="horizontal")
    bar.locator_params(axis="x", nbins=3)
    note(figure, width / 2 - 0.7, height - 0.33, "cost per mass", ha="right", va="center", fontsize=LABEL)
    return figure


def _outline(ribbon: Ribbon, left: float, right: float) -> Sequence[tuple[float, float]]:
    """Returns the eight control points of a ribbon: two cubic splines, forth and back."""
    middle = (left + right) / 2
    ends = ribbon.left + ribbon.thickness, ribbon.right + ribbon.thickness
    there = [(left, ribbon.left), (middle, ribbon.left), (middle, ribbon.right), (right, ribbon.right)]
    return [*there, (right, ends[1]), (middle, ends[1]), (middle, ends[0]), (left, ends[0])]


def flow_page(found: Plan) -> str:
    """Returns the diagram as HTML; hovering over a ribbon shows its numbers and fades the others."""
    rows, sides, ribbons = layout(found)
    texts = (found.hypothesis, found.reference)
    # The font of the browser is not known, and may be wider.
    room = [DOTS * (1.7 * max(inches(cut(label)) for label in side) + 0.15) for side in texts]
    row, bar = DOTS * 1.15 * ROW, DOTS * BAR
    edges = (room[0], room[0] + DOTS * 1.4 * ACROSS)
    parts = []
    for ribbon in ribbons:
        points = [(x, row * y) for x, y in _outline(ribbon, edges[0] + bar, edges[1] - bar)]
        first, *curve = (f"{x:.1f} {y:.2f}" for x, y in points)
        title = f"{found.hypothesis[ribbon.source]} → {found.reference[ribbon.target]}: "
        title += f"{ribbon.mass:.2%} at {ribbon.cost:.4f}"
        path = f"M{first} C{', '.join(curve[:3])} L{curve[3]} C{', '.join(curve[4:])} Z"
        color = shade(FAR, ribbon.cost / largest_cost(found))
        parts.append(f'<path d="{path}" fill="{color}"><title>{html.escape(title)}</title></path>')
    for side, whole, weights, edge, inward in zip(sides, texts, found.weights, edges, (1, -1), strict=True):
        anchor = "end" if inward > 0 else "start"
        for share, full, weight in zip(side, whole, weights, strict=True):
            title = f"<title>{html.escape(full)}: {weight:.2%} of the mass</title>"
            x, height = min(edge, edge + inward * bar), row * share.thickness
            parts.append(
                f'<rect x="{x:.1f}" y="{row * share.top:.2f}" width="{bar:.1f}" height="{height:.2f}" '
                f'fill="{QUIET}">{title}</rect>'
                f'<text x="{edge - inward * 6:.1f}" y="{row * share.middle:.2f}" dy=".35em" '
                f'text-anchor="{anchor}">{html.escape(cut(full))}{title}</text>'
            )
    width, drawn = sum(room) + edges[1] - edges[0], "\n".join(parts)
    legend = (
        "Hypothesis on the left, reference on the right; the thickness of a ribbon is the mass moved, its colour the "
        f'cost per mass: 0 <span class="scale"></span> {largest_cost(found):.2f}. Hover to see numbers.'
    )
    body = f'<svg width="{width:.0f}" height="{rows * row:.0f}" role="img">\n{drawn}\n</svg>'
    return html_page(heading(found), legend, body, STYLE)
