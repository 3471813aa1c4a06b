"""How an embedding metric compares two texts: its similarity matrix or its transport plan."""

from typing import NamedTuple

import numpy as np

from metrics_jax.api import AdditiveMetric, Result
from metrics_jax.embedding.bertscore import BERTScore
from metrics_jax.embedding.contextual import ContextualMetric
from metrics_jax.embedding.exact_transport import Problem
from metrics_jax.embedding.idf import Idf
from metrics_jax.embedding.lengths import bucket
from metrics_jax.embedding.moverscore import MoverScore
from metrics_jax.embedding.token_batches import Side
from metrics_jax.embedding.transport import solution
from metrics_jax.embedding.wmd import WMD, problem
from metrics_jax.embedding.yisi import YiSi1
from nmt_jax.errors import UserError
from nmt_jax.reporting.plots.labels import readable


class Similarities(NamedTuple):
    """Tokens of a hypothesis and a reference, their weights float64[S] and float64[T], and their similarities.

    matrix: float64[S, T], cosines. Precision is the weighted mean of the row maxima, recall that of the column maxima.
    nonnegative: maxima below 0 count as 0. result: the metric's result for the two texts.
    """

    hypothesis: list[str]
    reference: list[str]
    weights: tuple[np.ndarray, np.ndarray]
    matrix: np.ndarray
    nonnegative: bool
    metric: str
    result: Result

    def best(self, axis: int) -> np.ndarray:
        """Returns the maximum of each row (axis 1) or column (axis 0) as the metric counts it."""
        best = self.matrix.max(axis=axis)
        return np.maximum(best, 0.0) if self.nonnegative else best


class Plan(NamedTuple):
    """The transport plan between the units of a hypothesis and a reference.

    weights: float64[n] and float64[m], each summing to 1. cost: float64[n, m], per unit of mass. moved: float64[n, m],
    mass; its row and column sums are the weights, and its total cost is `distance`. result: the metric's result for the
    two texts.
    """

    hypothesis: list[str]
    reference: list[str]
    weights: tuple[np.ndarray, np.ndarray]
    cost: np.ndarray
    moved: np.ndarray
    metric: str
    formula: str  # the score as a function of the distance {0}, "" if they are equal
    result: Result

    @property
    def distance(self) -> float:
        """The total cost of the plan."""
        return float((self.moved * self.cost).sum())


def similarities(metric: AdditiveMetric, hypothesis: str, reference: str) -> Similarities:
    """Returns the similarities by which BERTScore or YiSi-1 scores two texts. Raises UserError for other metrics."""
    if not isinstance(metric, BERTScore | YiSi1):
        raise UserError(f"{metric.name} does not match tokens by similarity; use --metric=bertscore or yisi1")
    if isinstance(metric, YiSi1) and metric.n_gram > 1:
        raise UserError(f"yisi1 with n_gram:{metric.n_gram} compares n-grams; use --metric='yisi1|n_gram:1'")
    result = metric([hypothesis], [reference])
    (x, names), (y, others) = _sides(metric, hypothesis, reference)
    matrix = x.vectors[0].astype(np.float64) @ y.vectors[0].astype(np.float64).T
    matrix = matrix[: len(names), : len(others)]
    weights = x.weights[0, : len(names)], y.weights[0, : len(others)]
    nonnegative = isinstance(metric, YiSi1) or metric.nonnegative
    return Similarities(names, others, weights, matrix, nonnegative, type(metric).__name__, result)


def plan(metric: AdditiveMetric, hypothesis: str, reference: str) -> Plan:
    """Returns the transport plan of MoverScore or WMD; UserError for other metrics, or if a text has no weight."""
    if isinstance(metric, MoverScore):
        units, (a, b, cost) = _mover_score(metric, hypothesis, reference)
        formula = "1 − {0}" if metric.variant == "v1" else "1 / (1 + {0})"
    elif isinstance(metric, WMD):
        units, (a, b, cost) = _wmd(metric, hypothesis, reference)
        formula = ""
    else:
        raise UserError(f"{metric.name} has no transport plan; use --metric=moverscore or wmd")
    for weights, text in ((a, hypothesis), (b, reference)):
        if not weights.any():
            reason = "is in the word vectors" if isinstance(metric, WMD) else "has weight"
            raise UserError(f"no word of {text!r} {reason}, so there is nothing to transport")
    a, b = a / a.sum(), b / b.sum()
    solved = solution(a, b, cost, metric.transport)
    result = metric([hypothesis], [reference])
    return Plan(*units, (a, b), cost, np.asarray(solved.plan, np.float64), type(metric).__name__, formula, result)


def _mover_score(metric: MoverScore, hypothesis: str, reference: str) -> tuple[tuple[list[str], list[str]], Problem]:
    """Returns the n-grams of both texts, their weights and the cost matrix."""
    (x, names), (y, others) = _sides(metric, hypothesis, reference)
    a, b, cost = (one[0] for one in metric.problem(x, y))
    n_grams, other_n_grams = (
        [" ".join(pieces[k : k + metric.n_gram]) for k in range(max(len(pieces) - metric.n_gram + 1, 1))]
        for pieces in (names, others)
    )
    n, m = len(n_grams), len(other_n_grams)
    return (n_grams, other_n_grams), (a[:n], b[:m], cost.astype(np.float64)[:n, :m])


def _wmd(metric: WMD, hypothesis: str, reference: str) -> tuple[tuple[list[str], list[str]], Problem]:
    """Returns the words of both texts in order of first occurrence, their weights and the cost matrix."""
    sides = []
    for words in metric.known_words([hypothesis, reference]):
        rows = metric.vectors.rows(words)
        distinct, first = np.unique(rows, return_index=True)  # bags of words are sorted by row
        sides.append([(metric.vectors.words[row], position) for row, position in zip(distinct, first, strict=True)])
    a, b, cost = problem(*metric.bags([hypothesis, reference]))
    orders = [np.argsort([position for _, position in side]).astype(int) for side in sides]
    names = [[side[k][0] for k in order] for side, order in zip(sides, orders, strict=True)]
    return (names[0], names[1]), (a[orders[0]], b[orders[1]], cost[np.ix_(*orders)])


def _sides(metric: ContextualMetric, *texts: str) -> list[tuple[Side, list[str]]]:
    """Returns the tokens of a hypothesis and a reference that a metric compares, and their labels."""
    hypothesis, reference = texts
    metric = metric.fitted([reference])
    encoded = metric.encoded([hypothesis.strip(), reference.strip()])
    weights = metric.hypothesis_weights, metric.idf if isinstance(metric.idf, Idf) else None
    both = [metric.units(encoded, idf) for idf in weights]
    length = bucket(max(1, *(int(units.lengths[k]) for k, units in enumerate(both))))
    sides = []
    for number, units in enumerate(both):
        rows = units.rows[units.starts[number] :][: units.lengths[number]] - encoded.starts[number]
        names = _labels(metric.encoder.pieces(encoded[number][1].tolist()), rows.tolist())
        sides.append((units.padded(encoded.vectors, np.array([number]), 1, length), names))
    return sides


def _labels(pieces: list[str], kept: list[int]) -> list[str]:
    """Returns labels of the pieces that are compared, followed in brackets by ignored pieces of the same word."""
    labels, compared = readable(pieces), frozenset(kept)
    names = []
    for start in kept:
        end = start + 1
        while end < len(labels) and end not in compared and labels[end].startswith("·"):
            end += 1
        rest = "".join(label[1:] for label in labels[start + 1 : end])
        names.append(f"{labels[start]}({rest})" if rest else labels[start])
    return names
