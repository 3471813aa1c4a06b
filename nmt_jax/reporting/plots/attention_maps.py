"""Attention weights of all layers and heads, of one pair of sentences or within one text."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nmt_jax.reporting.plots.labels import axes_at, color_bar, cut, headline, inches, label_sides, note, readable
from nmt_jax.reporting.plots.style import Figure, new_figure

TOKEN = 0.17  # inches per token on an axis


def draw_attention(weights: Mapping[str, Any], kind: str = "cross") -> Figure:
    """Draws one map per layer (row) and head (column), labelled with pieces along the outer axes.

    weights: `source_pieces`, `target_pieces`, and weights float[L, H, queries, keys] for the key `kind`; rows sum to 1.
    """
    queries = _labels(weights["source_pieces" if kind == "encoder" else "target_pieces"])
    # Decoder inputs are shifted by one: when it predicts piece t, it has read the pieces before t.
    keys = ["<s>", *queries[:-1]] if kind == "decoder" else _labels(weights["source_pieces"])
    title = {"cross": "attention from target (rows) to source (columns)"}.get(kind, f"self-attention of the {kind}")
    return _maps(np.asarray(weights[kind], np.float32), queries, keys, title)


def draw_text_attention(pieces: Sequence[str], weights: np.ndarray) -> Figure:
    """Draws one map per layer and head of the weights float[L, H, T, T] between the T pieces of a text."""
    labels = _labels(pieces)
    return _maps(weights, labels, labels, "self-attention from each piece (rows) to all (columns)")


def _maps(heads: np.ndarray, queries: Sequence[str], keys: Sequence[str], title: str) -> Figure:
    """Draws weights float[L, H, queries, keys]."""
    from matplotlib.colors import PowerNorm

    num_layers, num_heads = heads.shape[:2]
    across, down = max(TOKEN * len(keys), 0.9), max(TOKEN * len(queries), 0.9)
    left, top = 0.55 + max(map(inches, queries)), 0.85 + max(map(inches, keys))
    gap, right, bottom = 0.14, 0.75, 0.2
    width = left + num_heads * (across + gap) + right
    height = top + num_layers * (down + gap) + bottom
    figure = new_figure(width, height)
    norm = PowerNorm(0.6, vmin=0.0, vmax=1.0)  # makes small weights visible
    image = None
    for layer in range(num_layers):
        for head in range(num_heads):
            x, y = left + head * (across + gap), top + layer * (down + gap)
            axes = axes_at(figure, x, y, across, down)
            image = axes.imshow(heads[layer, head], cmap="GnBu", norm=norm, aspect="auto", interpolation="nearest")
            label_sides(axes, keys if layer == 0 else None, queries if head == 0 else None)
            if layer == 0 and num_heads > 1:
                note(figure, x + across / 2, 0.5, f"head {head + 1}", ha="center")
            if head == 0 and num_layers > 1:
                note(figure, 0.16, y + down / 2, f"layer {layer + 1}", va="center", rotation=90)
    assert image is not None
    bar_height = min(2.0, num_layers * (down + gap) - gap)
    color_bar(figure, image, width - right + 0.12, top, 0.12, bar_height, ticks=[0, 0.1, 0.25, 0.5, 1])
    headline(figure, title)
    return figure


def _labels(pieces: Sequence[str]) -> list[str]:
    return [cut(label) for label in readable(pieces)]
