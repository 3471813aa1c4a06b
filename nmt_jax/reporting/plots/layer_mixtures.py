"""Learned weights of an encoder's layers in a mixture (Peters et al., 2018, figure 2)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nmt_jax.reporting.plots.style import SYSTEMS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Mixture(NamedTuple):
    """The mixture gamma sum_j s_j h_j: `shares` s float[L] sum to 1, lowest layer first; `scale` is gamma."""

    shares: np.ndarray
    scale: float

    @classmethod
    def of(cls, weights: np.ndarray, scale: float) -> "Mixture":
        """Returns the mixture of learned weights w float[L]: s = softmax(w) (eq. 1)."""
        exponentials = np.exp(np.asarray(weights, np.float64) - np.max(weights))
        return cls(exponentials / exponentials.sum(), float(scale))


def table(mixtures: Mapping[str, Mixture]) -> str:
    """Returns the numbers of the plot, tab-separated, one row per run."""
    layers = max(len(mixture.shares) for mixture in mixtures.values())
    rows = [["run", "gamma", *(f"layer {number}" for number in range(layers))]]
    for name, mixture in mixtures.items():
        rows.append([name, f"{mixture.scale:.3f}", *(f"{share:.3f}" for share in mixture.shares)])
    return "\n".join("\t".join(row) for row in rows)


def draw_layers(mixtures: Mapping[str, Mixture]) -> "Figure":
    """Draws a group of bars per layer with one bar per run; a dotted line marks equal shares."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(mixtures)
    for number, (name, mixture) in enumerate(mixtures.items()):
        places = np.arange(len(mixture.shares)) + (number - (len(mixtures) - 1) / 2) * width
        label = f"{name} (γ = {mixture.scale:.2f})"
        bars = axes.bar(places, mixture.shares, 0.92 * width, color=SYSTEMS[number % len(SYSTEMS)], label=label)
        axes.bar_label(bars, fmt="%.2f", fontsize=7, padding=1)
    sizes = {len(mixture.shares) for mixture in mixtures.values()}
    for size in sizes:
        axes.axhline(1 / size, color="#5c677d", linewidth=0.8, linestyle=":")
    layers = max(sizes)
    axes.set_xticks(range(layers), ["0: words", *map(str, range(1, layers))])
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("layer")
    axes.set_title("weight of each layer; dotted: equal weights")
    figure.legend(frameon=False, loc="outside lower center", ncols=3)
    return figure
