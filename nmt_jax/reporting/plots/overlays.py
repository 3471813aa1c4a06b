"""Attention to an image while words are written, drawn over the image."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from nmt_jax.data.readers.images import Picture
from nmt_jax.reporting.plots.labels import axes_at, cut, headline, note, readable
from nmt_jax.reporting.plots.style import Figure, new_figure

SIDE, GAP, ACROSS = 1.3, 0.28, 6  # inches of a panel and above it; panels in a row
DARKEST = 0.85  # opacity of the shade where the model does not look


def place_weights(weights: Mapping[str, Any], picture: Picture) -> np.ndarray:
    """Returns the attention of each target piece to the patches of a picture, float[T, rows, columns].

    The mean over the heads of the layer that aligns best: of several layers, the last but one.
    """
    cross = np.asarray(weights["cross"], np.float32)[-2:][0].mean(axis=0)
    columns = picture.columns
    return cross[:, picture.start : picture.start + columns**2].reshape(-1, columns, columns)


def draw_overlays(weights: Mapping[str, Any]) -> Figure:
    """Draws an image once per target piece; it is bright where the model looks while it predicts that piece.

    weights: what `Translate.attention` returns for a source with images, of which the first is drawn.
    """
    picture, pieces = weights["pictures"][0], readable(weights["target_pieces"])
    rows = math.ceil((len(pieces) + 1) / ACROSS)
    figure = new_figure(ACROSS * (SIDE + 0.1) + 0.1, 0.4 + rows * (SIDE + GAP))
    headline(figure, "attention to the image at each word")
    panels = zip(["image", *pieces], [None, *place_weights(weights, picture)], strict=True)
    for number, (label, attention) in enumerate(panels):
        line, column = divmod(number, ACROSS)
        x, y = 0.1 + column * (SIDE + 0.1), 0.4 + GAP + line * (SIDE + GAP)
        axes = axes_at(figure, x, y, SIDE, SIDE)
        axes.imshow(picture.pixels)
        axes.set_axis_off()
        if attention is not None:
            shade = np.zeros((*attention.shape, 4), np.float32)
            shade[..., 3] = DARKEST * (1 - attention / max(float(attention.max()), 1e-9))
            height, width = picture.pixels.shape[:2]
            extent = (-0.5, width - 0.5, height - 0.5, -0.5)
            axes.imshow(shade, extent=extent, interpolation="bilinear")
        note(figure, x, y - 0.06, cut(label), color="black")
    return figure
