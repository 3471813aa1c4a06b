"""Plots that compare systems: a metric by source length, and the learned weights of an encoder's layers."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from metrics_jax.api import AdditiveMetric
from metrics_jax.significance import Interval, bootstrap
from nmt_jax.reporting.plots.style import QUIET, SYSTEMS, Figure, new_figure


class Bucket(NamedTuple):
    """Sentences with `shortest` to `longest` source words, their mean length, and the score of each system."""

    shortest: int
    longest: int
    mean: float
    sentences: int
    scores: dict[str, Interval]

    @property
    def lengths(self) -> str:
        """The range of lengths: `9-10`, or `11` if all are equal."""
        return f"{self.shortest}-{self.longest}" if self.shortest < self.longest else str(self.longest)


def by_length(
    metric: AdditiveMetric,
    sources: Sequence[str],
    references: Sequence[str],
    systems: Mapping[str, Sequence[str]],
    num_buckets: int,
) -> list[Bucket]:
    """Returns scores with 95 % bootstrap intervals in at most `num_buckets` buckets of similar size.

    The length of a source sentence is its number of words, split at whitespace; equal lengths share a bucket.
    """
    lengths = np.array([len(source.split()) for source in sources])
    limits = np.unique(np.quantile(lengths, np.linspace(0, 1, num_buckets + 1)[1:], method="higher"))
    statistics = {name: metric.statistics(hypotheses, references) for name, hypotheses in systems.items()}
    buckets = []
    for number, limit in enumerate(limits):
        inside = (lengths <= limit) & (lengths > (limits[number - 1] if number else -1))
        scores = {name: bootstrap(metric, rows[inside]) for name, rows in statistics.items()}
        members = lengths[inside]
        buckets.append(Bucket(int(members.min()), int(members.max()), float(members.mean()), int(inside.sum()), scores))
    return buckets


def length_table(buckets: Sequence[Bucket]) -> str:
    """Returns the numbers of the plot, tab-separated, one row per bucket."""
    names = list(buckets[0].scores)
    rows = [["words", "sentences", *names]]
    for bucket in buckets:
        scores = [f"{bucket.scores[name].score:.2f} ± {bucket.scores[name].half_width:.2f}" for name in names]
        rows.append([bucket.lengths, str(bucket.sentences), *scores])
    return "\n".join("\t".join(row) for row in rows)


def draw_by_length(buckets: Sequence[Bucket], metric: str) -> Figure:
    """Draws one line per system over the mean length of the buckets, with its 95 % interval as a band.

    As in Bahdanau et al. (2015), figure 2.
    """
    figure = new_figure(7.2, 4.4, layout="constrained")
    axes = figure.subplots()
    means = [bucket.mean for bucket in buckets]
    for number, name in enumerate(buckets[0].scores):
        color = SYSTEMS[number % len(SYSTEMS)]
        intervals = [bucket.scores[name] for bucket in buckets]
        lower, upper = [interval.lower for interval in intervals], [interval.upper for interval in intervals]
        axes.fill_between(means, lower, upper, color=color, alpha=0.13, linewidth=0)
        axes.plot(means, [i.score for i in intervals], color=color, linewidth=1.8, marker="o", markersize=4, label=name)
    axes.set_xticks(means, [f"{bucket.lengths}\n{bucket.sentences}" for bucket in buckets])
    axes.set_xlabel("source words; below: number of sentences")
    axes.set_title(f"{metric} by source length, with 95 % intervals")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return figure


class Mixture(NamedTuple):
    """The mixture gamma sum_j s_j h_j: `shares` s float[L] sum to 1, lowest layer first; `scale` is gamma."""

    shares: np.ndarray
    scale: float

    @classmethod
    def of(cls, weights: np.ndarray, scale: float) -> "Mixture":
        """Returns the mixture of learned weights w float[L]: s = softmax(w) (eq. 1)."""
        exponentials = np.exp(np.asarray(weights, np.float64) - np.max(weights))
        return cls(exponentials / exponentials.sum(), float(scale))


def layer_table(mixtures: Mapping[str, Mixture]) -> str:
    """Returns the numbers of the plot, tab-separated, one row per run."""
    layers = max(len(mixture.shares) for mixture in mixtures.values())
    rows = [["run", "gamma", *(f"layer {number}" for number in range(layers))]]
    for name, mixture in mixtures.items():
        rows.append([name, f"{mixture.scale:.3f}", *(f"{share:.3f}" for share in mixture.shares)])
    return "\n".join("\t".join(row) for row in rows)


def draw_layers(mixtures: Mapping[str, Mixture]) -> Figure:
    """Draws a group of bars per layer with one bar per run (Peters et al., 2018, figure 2); dotted: equal shares."""
    figure = new_figure(7.2, 3.6, layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(mixtures)
    for number, (name, mixture) in enumerate(mixtures.items()):
        places = np.arange(len(mixture.shares)) + (number - (len(mixtures) - 1) / 2) * width
        label = f"{name} (γ = {mixture.scale:.2f})"
        bars = axes.bar(places, mixture.shares, 0.92 * width, color=SYSTEMS[number % len(SYSTEMS)], label=label)
        axes.bar_label(bars, fmt="%.2f", fontsize=7, padding=1)
    sizes = {len(mixture.shares) for mixture in mixtures.values()}
    for size in sizes:
        axes.axhline(1 / size, color=QUIET, linewidth=0.8, linestyle=":")
    layers = max(sizes)
    axes.set_xticks(range(layers), ["0: words", *map(str, range(1, layers))])
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("layer")
    axes.set_title("weight of each layer; dotted: equal weights")
    figure.legend(frameon=False, loc="outside lower center", ncols=3)
    return figure
