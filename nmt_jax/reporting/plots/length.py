"""A metric by source length (Bahdanau et al., 2015, figure 2)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from metrics_jax.api import AdditiveMetric
from metrics_jax.significance import Interval, bootstrap
from nmt_jax.reporting.plots.style import SYSTEMS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


def table(buckets: Sequence[Bucket]) -> str:
    """Returns the numbers of the plot, tab-separated, one row per bucket."""
    names = list(buckets[0].scores)
    rows = [["words", "sentences", *names]]
    for bucket in buckets:
        scores = [f"{bucket.scores[name].score:.2f} ± {bucket.scores[name].half_width:.2f}" for name in names]
        rows.append([bucket.lengths, str(bucket.sentences), *scores])
    return "\n".join("\t".join(row) for row in rows)


def draw_by_length(buckets: Sequence[Bucket], metric: str) -> "Figure":
    """Draws one line per system over the mean length of the buckets, with its 95 % interval as a band."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
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
