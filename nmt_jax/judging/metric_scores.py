"""Scores that metrics give to judged texts."""

from collections.abc import Sequence

import numpy as np

from metrics_jax.api import AdditiveMetric
from metrics_jax.embedding.contextual import TextTooLongError
from nmt_jax.data.lines import read_lines
from nmt_jax.data.readers.judgements import Judged
from nmt_jax.distributed.tables import Tables
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import metric_error


class JudgedTexts:
    """The texts of a file of judgements as a metric reads them: distinct, those with the same reference together."""

    def __init__(self, judged: Judged):
        self.judged = judged
        sources = judged.sources or [""] * len(judged.hypotheses)
        texts = list(zip(judged.hypotheses, map(tuple, judged.references), sources, strict=True))
        self._distinct = sorted(dict.fromkeys(texts), key=lambda text: text[1])
        rank = {text: row for row, text in enumerate(self._distinct)}
        self._order = np.array([rank[text] for text in texts])
        self._metrics: dict[str, tuple[AdditiveMetric, int]] = {}  # fitted, and the numbers of their tables

    def add_table(self, tables: Tables, name: str, metric: AdditiveMetric) -> None:
        """Add a metric's table of statistics, float[number of distinct texts, K].

        Metrics that are fitted to references are fitted to the distinct ones. Raises UserError, with FILE:LINE, for a
        text that is too long.
        """
        hypotheses, references, *sources = map(list, zip(*self._distinct, strict=True))
        read = sources if "sources" in metric.needs else []

        def compute(first: int, stop: int) -> np.ndarray:
            try:
                return np.asarray(metric.statistics(*(side[first:stop] for side in (hypotheses, references, *read))))
            except TextTooLongError as error:
                text = int(np.argmax(self._order == first + error.segment))
                location = self.judged.locations[text]
                raise UserError(f"{location}: this text or its reference is {error.problem}") from error

        try:
            metric = metric.fitted(sorted(set(references)))
            title = f"{self.judged.name}, {metric.name}, texts"
            self._metrics[name] = metric, tables.add(compute, self._distinct, metric.segments_per_call, title)
        except (ValueError, MemoryError) as error:
            raise metric_error(error, f"--metrics={name}") from error

    def scores(self, name: str, tables: Sequence[np.ndarray], of_systems: bool) -> np.ndarray:
        """Return a metric's scores of the N judged texts, float64[N], higher is better: error rates are negated.

        With `of_systems`, the mean of the scores of a system's texts is the score of the system as a corpus. Raises
        UserError, with FILE:LINE, for a score that is not finite.
        """
        metric, number = self._metrics[name]
        statistics = tables[number][self._order]
        if of_systems:
            scores = np.empty(len(self._order))
            systems = np.array(self.judged.systems or [""] * len(self._order))
            for system in np.unique(systems):
                scores[systems == system] = contributions(metric, statistics[systems == system])
        else:
            scores = metric.score(statistics)
        check_finite(name, scores, self.judged)
        return scores if metric.higher_is_better else -scores


def contributions(metric: AdditiveMetric, statistics: np.ndarray) -> np.ndarray:
    """The contribution of each segment to the corpus score, float[N], from statistics float[N, K].

    Their mean is the corpus score. If the corpus score is a mean over segments, these are the segments' scores.
    Otherwise they are the pseudo-values of the jackknife (Tukey, 1958), N score(all) - (N - 1) score(all but the
    segment), shifted to have that mean.
    """
    size, total = len(statistics), statistics.sum(axis=0)
    score = float(metric.score(total))
    if size == 1:
        return np.array([score])
    values = size * score - (size - 1) * np.asarray(metric.score(total - statistics))
    return values + (score - values.mean())


def given_scores(option: str, judged: Judged, num_files: int) -> np.ndarray:
    """Read scores float64[N] that were computed elsewhere.

    `COLUMN` names a column of the judged file, `NAME=FILE` a file with one score per line. A leading `-` negates them,
    for metrics where lower is better. Raises UserError if the file has another number of lines, a line is not a number,
    or there is more than one file of judgements.
    """
    name, equals, file = option.removeprefix("-").partition("=")
    sign = -1.0 if option.startswith("-") else 1.0
    if not equals:
        return sign * judged.scores[name]
    if num_files > 1:
        raise UserError(
            f"--scores={option}: a file of scores needs exactly one file of judgements, but there are {num_files}"
        )
    values = []
    for number, line in enumerate(read_lines(file), start=1):
        try:
            values.append(float(line))
        except ValueError:
            raise UserError(f"{file}:{number}: not a number: {line[:40]!r}") from None
    if len(values) != len(judged.locations):
        raise UserError(
            f"{file} has {len(values)} lines, but {judged.name} has {len(judged.locations)} judged texts: "
            "there must be one score per text, in the same order"
        )
    scores = sign * np.array(values)
    check_finite(name, scores, judged)
    return scores


def check_finite(name: str, scores: np.ndarray, judged: Judged) -> None:
    """Raise UserError, with FILE:LINE of the text, if a score is NaN or infinite."""
    if len(bad := np.flatnonzero(~np.isfinite(scores))):
        hint = "; for WMD use wmd|missing:2" if name.startswith("wmd") else ""
        raise UserError(f"{judged.locations[bad[0]]}: the {name} score of this text is {scores[bad[0]]:g}{hint}")
