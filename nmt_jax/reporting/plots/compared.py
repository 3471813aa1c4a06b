"""What an embedding metric compares of two texts: the similarities behind its score, or the plan that it costs."""

from typing import NamedTuple

import numpy as np

from metrics_jax.api import AdditiveMetric, Result
from metrics_jax.embedding.bertscore import BERTScore
from metrics_jax.embedding.contextual import ContextualMetric, Side
from metrics_jax.embedding.exact_transport import Problem
from metrics_jax.embedding.forward import bucket
from metrics_jax.embedding.idf import Idf
from metrics_jax.embedding.moverscore import MoverScore
from metrics_jax.embedding.transport import solution
from metrics_jax.embedding.wmd import WMD, problem
from metrics_jax.embedding.yisi import YiSi1
from nmt_jax.errors import UserError
from nmt_jax.reporting.plots.labels import readable


class Similarities(NamedTuple):
    """Tokens of a hypothesis and a reference, their weights float64[S] and float64[T], and how similar they are.

    matrix: float64[S, T], cosines. Precision is the weighted mean of the best of each row, recall that of each column;
    nonnegative: a best below 0 counts as 0. result: what the metric says of the two texts.
    """

    hypothesis: list[str]
    reference: list[str]
    weights: tuple[np.ndarray, np.ndarray]
    matrix: np.ndarray
    nonnegative: bool
    metric: str
    result: Result

    def best(self, axis: int) -> np.ndarray:
        """What each row (axis 1), or each column (axis 0), counts."""
        best = self.matrix.max(axis=axis)
        return np.maximum(best, 0.0) if self.nonnegative else best


class Plan(NamedTuple):
    """Units of a hypothesis and a reference, and what moves where.

    weights: float64[n] and float64[m], each summing to 1. cost: float64[n, m], of moving weight 1. moved: float64
    [n, m], with the weights as sums of rows and columns; what that costs in all is `distance`. result: what the metric
    says of the two texts.
    """

    hypothesis: list[str]
    reference: list[str]
    weights: tuple[np.ndarray, np.ndarray]
    cost: np.ndarray
    moved: np.ndarray
    metric: str
    formula: str  # the score of a distance {0}
    result: Result

    @property
    def distance(self) -> float:
        """What all moves cost."""
        return float((self.moved * self.cost).sum())


def similarities(metric: AdditiveMetric, hypothesis: str, reference: str) -> Similarities:
    """The similarities that BERTScore or YiSi-1 scores two texts by; UserError for another metric."""
    if not isinstance(metric, BERTScore | YiSi1):
        raise UserError(f"{metric.name} matches no tokens by their similarity: --metric=bertscore or yisi1 does")
    if isinstance(metric, YiSi1) and metric.n_gram > 1:
        raise UserError(f"yisi1 with n_gram:{metric.n_gram} compares runs of tokens: draw --metric='yisi1|n_gram:1'")
    result = metric([hypothesis], [reference])
    (x, names), (y, others) = _sides(metric, hypothesis, reference)
    matrix = x.vectors[0].astype(np.float64) @ y.vectors[0].astype(np.float64).T
    return Similarities(
        names,
        others,
        (x.weights[0, : len(names)], y.weights[0, : len(others)]),
        matrix[: len(names), : len(others)],
        isinstance(metric, YiSi1) or metric.nonnegative,
        type(metric).__name__,
        result,
    )


def plan(metric: AdditiveMetric, hypothesis: str, reference: str) -> Plan:
    """The plan by which MoverScore or WMD moves one text onto the other; UserError for another metric.

    UserError, too, where nothing of a text takes part.
    """
    if isinstance(metric, MoverScore):
        units, moves = _mover_score(metric, hypothesis, reference)
        formula = "1 − {0}" if metric.variant == "v1" else "1 / (1 + {0})"
    elif isinstance(metric, WMD):
        units, moves = _wmd(metric, hypothesis, reference)
        formula = ""
    else:
        raise UserError(f"{metric.name} moves no words: --metric=moverscore or wmd does")
    a, b, cost = moves
    for weights, text in ((a, hypothesis), (b, reference)):
        if not weights.any():
            known = "is in the word vectors" if isinstance(metric, WMD) else "has weight"
            raise UserError(f"nothing of {text!r} {known}, so there is nothing to move")
    a, b = a / a.sum(), b / b.sum()
    found = solution(a, b, cost, metric.transport)
    result = metric([hypothesis], [reference])
    return Plan(*units, (a, b), cost, np.asarray(found.plan, np.float64), type(metric).__name__, formula, result)


def _mover_score(metric: MoverScore, hypothesis: str, reference: str) -> tuple[tuple[list[str], list[str]], Problem]:
    """Runs of tokens, their weights and what moving them costs."""
    (x, names), (y, others) = _sides(metric, hypothesis, reference)
    a, b, cost = (one[0] for one in metric.problem(x, y, pairwise=False))
    runs, other_runs = (
        [" ".join(pieces[k : k + metric.n_gram]) for k in range(max(len(pieces) - metric.n_gram + 1, 1))]
        for pieces in (names, others)
    )
    n, m = len(runs), len(other_runs)
    return (runs, other_runs), (a[:n], b[:m], cost.astype(np.float64)[:n, :m])


def _wmd(metric: WMD, hypothesis: str, reference: str) -> tuple[tuple[list[str], list[str]], Problem]:
    """Words in the order in which they first appear, their weights and what moving them costs."""
    sides = []
    for words in metric.known_words([hypothesis, reference]):
        rows = metric.vectors.rows(words)
        distinct, first = np.unique(rows, return_index=True)  # a bag has its words in the order of their rows
        sides.append([(metric.vectors.words[row], place) for row, place in zip(distinct, first, strict=True)])
    a, b, cost = problem(*metric.bags([hypothesis, reference]))
    orders = [np.argsort([place for _, place in side]).astype(int) for side in sides]
    names = [[side[k][0] for k in order] for side, order in zip(sides, orders, strict=True)]
    return (names[0], names[1]), (a[orders[0]], b[orders[1]], cost[np.ix_(*orders)])


def _sides(metric: ContextualMetric, *texts: str) -> list[tuple[Side, list[str]]]:
    """The tokens of a hypothesis and a reference that a metric compares, and their labels."""
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
        sides.append((units.padded(np.array([number]), 1, length), names))
    return sides


def _labels(pieces: list[str], kept: list[int]) -> list[str]:
    """Those of the pieces that take part; in brackets what goes on with their word and does not."""
    labels, some = readable(pieces), frozenset(kept)
    names = []
    for place in kept:
        end = place + 1
        while end < len(labels) and end not in some and labels[end].startswith("·"):
            end += 1
        rest = "".join(label[1:] for label in labels[place + 1 : end])
        names.append(f"{labels[place]}({rest})" if rest else labels[place])
    return names
