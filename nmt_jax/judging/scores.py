"""What metrics say of texts that people have judged."""

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from metrics_jax.api import AdditiveMetric
from metrics_jax.embedding.contextual import TextTooLongError
from nmt_jax.data.lines import read_lines
from nmt_jax.data.readers.judgements import Judged
from nmt_jax.errors import UserError
from nmt_jax.progress import track


def judged_scores(name: str, metric: AdditiveMetric, judged: Judged, of_systems: bool) -> np.ndarray:
    """The scores float64[N] of the texts by a metric, higher is better: those of distances and errors are negated.

    of_systems: such that their mean over the texts of a system is the system's score as a corpus. What a metric learns
    from references it learns from the distinct ones. UserError, with FILE:LINE, for a score that is not finite and a
    text that is too long.
    """
    numbers: dict[tuple[str, tuple[str, ...]], int] = {}
    texts = zip(judged.hypotheses, map(tuple, judged.references), strict=True)
    rows = [numbers.setdefault(text, len(numbers)) for text in texts]
    distinct = sorted(numbers, key=lambda text: text[1])  # of one reference together: it is read once
    place = {text: row for row, text in enumerate(distinct)}
    order = np.array([place[text] for text in numbers])[rows]
    first = {number: row for row, number in reversed(list(enumerate(order.tolist())))}
    try:
        metric = metric.fitted(sorted({text[1] for text in distinct}))
        statistics = _statistics(metric, [text for text, _ in distinct], [given for _, given in distinct], judged.name)
    except TextTooLongError as error:
        raise UserError(
            f"{judged.where[first[error.segment]]}: this text or its reference is {error.problem}"
        ) from error
    except (ValueError, MemoryError) as error:
        raise UserError(f"--metrics={name}: {error}") from error
    statistics = statistics[order]
    if of_systems:
        scores = np.empty(len(order))
        systems = np.array(judged.systems or [""] * len(order))
        for system in np.unique(systems):
            scores[systems == system] = contributions(metric, statistics[systems == system])
    else:
        scores = metric.score(statistics)
    check_finite(name, scores, judged)
    return scores if metric.higher_is_better else -scores


def contributions(metric: AdditiveMetric, statistics: np.ndarray) -> np.ndarray:
    """Statistics float[N, K] of a corpus -> float[N], what each segment adds; their mean is the corpus's score.

    For a metric whose corpus score is a mean they are the segments' scores; else the jackknife's pseudo-values (Tukey,
    1958), N times the score less N - 1 times that without the segment, moved to have that mean.
    """
    size, total = len(statistics), statistics.sum(axis=0)
    score = float(metric.score(total))
    if size == 1:
        return np.array([score])
    values = size * score - (size - 1) * np.asarray(metric.score(total - statistics))
    return values + (score - values.mean())


def given_scores(option: str, judged: Judged, num_sets: int) -> np.ndarray:
    """`COLUMN`, or `NAME=FILE` with a number a judged text, after `-` where lower is better -> float64[N].

    UserError for a file of another length, a line that is no number, and a file with several sets of judgements.
    """
    name, equals, file = option.removeprefix("-").partition("=")
    sign = -1.0 if option.startswith("-") else 1.0
    if not equals:
        return sign * judged.scores[name]
    if num_sets > 1:
        raise UserError(f"--scores={option}: a file of scores goes with one file of judgements, not with {num_sets}")
    values = []
    for number, line in enumerate(read_lines(pathlib.Path(file)), start=1):
        try:
            values.append(float(line))
        except ValueError:
            raise UserError(f"{file}:{number}: not a number: {line[:40]!r}") from None
    if len(values) != len(judged.where):
        raise UserError(
            f"{file} has {len(values)} lines but {judged.name} {len(judged.where)} judged texts: one each, in order"
        )
    scores = sign * np.array(values)
    check_finite(name, scores, judged)
    return scores


def check_finite(name: str, scores: np.ndarray, judged: Judged) -> None:
    """UserError for a score that is NaN or infinite, with the place of its text."""
    if len(bad := np.flatnonzero(~np.isfinite(scores))):
        hint = "; for WMD use wmd|missing:2" if name.startswith("wmd") else ""
        raise UserError(f"{judged.where[bad[0]]}: {name} scores this text {scores[bad[0]]:g}{hint}")


def _statistics(metric: AdditiveMetric, texts: Sequence[str], references: Sequence[Any], what: str) -> np.ndarray:
    """The statistics float[N, K], counted on a terminal while they come."""
    each = min(metric.at_once, len(texts))
    starts = range(0, len(texts), each)
    blocks = [
        metric.statistics(texts[start : start + each], references[start : start + each])
        for start in track(starts, f"{what}, {metric.name}, texts", total=len(texts), each=each)
    ]
    return np.concatenate(blocks)
