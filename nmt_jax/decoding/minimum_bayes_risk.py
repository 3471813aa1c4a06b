"""Minimum-Bayes-risk decoding: of many candidates the one that is expected to be best, by metrics, under the model.

Kumar and Byrne (2004); by samples Eikema and Aziz (2020, 2022); with metrics of embeddings Freitag et al. (2022).
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from metrics_jax.api import AdditiveMetric, IndexedTexts
from metrics_jax.registry import REGISTRY, metric_class
from nmt_jax.errors import UserError

METHODS = ("exact", "aggregate", "prune")
WEIGHTS = ("uniform", "probability")
PERCENT = frozenset({"bleu", "chrf", "ter", "cder", "wer", "per"})  # metrics whose scale ends at 100, not at 1
FIRST_REFERENCES = 8  # of the first round of pruning; each further round has twice as many
NUM_BOOTSTRAPS = 500  # as Cheng and Vlachos (2023)


class Utility(NamedTuple):
    """A metric, and its share in a mix of several."""

    metric: AdditiveMetric
    weight: float = 1.0


class Expected(NamedTuple):
    """Means over the pseudo-references: of the utility, 0 to 1 or less, and of the other metric, on its own scale."""

    utility: float
    evaluated: float


@dataclasses.dataclass(frozen=True, eq=False)
class Choice:
    """What was chosen of the C candidates of a line.

    index: its place among them. first: the same of the first candidate, what would have been chosen without all this.
    utilities: float[C], NaN for candidates that were dropped before they were compared with all pseudo-references.
    num_pairs: how many pairs of different texts the utilities compared.
    """

    index: int
    chosen: Expected
    first: Expected
    utilities: np.ndarray
    num_pairs: int


@dataclasses.dataclass(frozen=True)
class MinimumBayesRisk:
    """Chooses the candidate of the highest expected utility; of equals the first.

    utilities: what is expected is their mean by weight; metrics in percent are divided by 100, and distances negated.
    evaluated: a metric that was not optimised: what is gained by the utility alone is no gain. weights: of the
    pseudo-references, each alike ("uniform": samples), or in proportion to p ** (1 / temperature) ("probability":
    n-best lists, as in Kumar and Byrne, 2004, and Ehling et al., 2007).

    method: which candidates are compared with every pseudo-reference. "exact": all. "aggregate": the best `finalists`
    of a comparison with all references as one: for BLEU and chrF of their expected n-gram counts (DeNero et al., 2009;
    Vamvas and Sennrich, 2024), for metrics of embeddings their centroid; that is a cosine, not the metric itself.
    "prune": those that, after 8, 16, 32 ... pseudo-references, still have a chance of more than 1 - `confidence` to be
    at least as good as the best, by bootstrap (Cheng and Vlachos, 2023, algorithm 1); which come first `seed` says.

    UserError for an option that does not exist, a metric without `pairwise` or, to aggregate, without `aggregated`, and
    for an `evaluated` that is one of the utilities.
    """

    utilities: tuple[Utility, ...]
    evaluated: AdditiveMetric
    method: str = "exact"
    weights: str = "uniform"
    temperature: float = 1.0
    finalists: int = 1
    confidence: float = 0.99
    seed: int = 0

    def __post_init__(self) -> None:
        metrics = [utility.metric for utility in self.utilities]
        for metric in (*metrics, self.evaluated):
            if not hasattr(metric, "pairwise"):
                name = getattr(metric, "name", type(metric).__name__)
                raise UserError(f"{name} cannot compare every candidate with every other: it has no `pairwise`")
        if not metrics or not all(0 < utility.weight < np.inf for utility in self.utilities):
            raise UserError("utilities: at least one, each of a weight above 0")
        if self.evaluated.name in {metric.name for metric in metrics}:
            raise UserError(f"{self.evaluated.name} is what is optimised: evaluate by another metric")
        for name, choices in (("method", METHODS), ("weights", WEIGHTS)):
            if getattr(self, name) not in choices:
                raise UserError(f"{name}={getattr(self, name)!r} is none of {', '.join(choices)}")
        if not 0 < self.temperature < np.inf or not 0 < self.confidence < 1 or self.finalists < 1:
            raise UserError("temperature is above 0, confidence between 0 and 1, finalists at least 1")
        for metric in metrics if self.method == "aggregate" else []:
            if not hasattr(metric, "aggregated"):
                known = ", ".join(name for name in REGISTRY if hasattr(metric_class(name), "aggregated"))
                raise UserError(f"{metric.name} has no aggregate of references; these have: {known}")

    def __call__(
        self,
        candidates: Sequence[Sequence[str]],
        log_probs: Sequence[Sequence[float]] | None = None,
        references: Sequence[Sequence[str]] | None = None,
    ) -> list[Choice]:
        """N lists of candidates, which may differ in length -> what was chosen of each; no list changes another's.

        references: N lists of pseudo-references, the candidates themselves if not given. log_probs: N lists, of the
        pseudo-references. Equal texts count as often as they occur and are compared once; a line does not depend on
        the others or, ties apart, on the order of its candidates. UserError for an empty list, lists of unequal length,
        and where weights="probability" lacks log-probabilities. Time: what metrics do to read a text is done once for
        all lines, so many lines of a call are faster than one.
        """
        others = candidates if references is None else references
        if len(others) != len(candidates) or (log_probs is not None and len(log_probs) != len(candidates)):
            raise UserError(f"{len(candidates)} lists of candidates: as many of pseudo-references and log_probs")
        texts = sorted({text for side in (candidates, others) for group in side for text in group})
        numbers = {text: number for number, text in enumerate(texts)}
        mixed = [(utility.metric.index_texts(texts), self._factor(utility)) for utility in self.utilities]
        evaluated = self.evaluated.index_texts(texts)
        choices = []
        for n, (group, other) in enumerate(zip(candidates, others, strict=True)):
            if not group or not other:
                raise UserError(f"list {n + 1} has no candidates or no pseudo-references")
            shares = self._shares(n, len(other), None if log_probs is None else log_probs[n])
            own, theirs = ([numbers[text] for text in side] for side in (group, other))
            choices.append(self._choose(_Line.of(own, theirs, shares, mixed), evaluated))
        return choices

    def _factor(self, utility: Utility) -> float:
        """What its scores are multiplied by in the mix."""
        sign = 1 if utility.metric.higher_is_better else -1
        scale = 100 if utility.metric.name in PERCENT else 1
        return sign * utility.weight / sum(one.weight for one in self.utilities) / scale

    def _shares(self, n: int, count: int, log_probs: Sequence[float] | None) -> np.ndarray:
        """Weights float64[N] of the pseudo-references of line n, adding up to 1."""
        if self.weights == "uniform":
            return np.full(count, 1 / count)
        values = np.asarray([] if log_probs is None else log_probs, np.float64) / self.temperature
        if len(values) != count or np.isnan(values).any() or not np.isfinite(values.max()):
            raise UserError(f"list {n + 1}: weights=probability needs a log-probability for each of {count} texts")
        shares = np.exp(values - values.max())
        return shares / shares.sum()

    def _choose(self, line: "_Line", evaluated: IndexedTexts) -> Choice:
        """The best of a line's finalists."""
        rows = np.arange(len(line.hypotheses))
        narrow = {"aggregate": self._aggregate, "prune": self._prune}.get(self.method)
        left = narrow(line) if narrow else rows
        columns = np.arange(len(line.references))
        utilities = np.full(len(rows), np.nan)
        utilities[left] = line.compare(left, columns) @ line.weights
        best, first = int(left[line.ranked(utilities[left], left)[0]]), line.inverse[0]
        shown = np.unique([best, first])
        expected = line.compare(shown, columns) @ line.weights
        evaluated = evaluated.fitted(line.references[line.copies])
        others = evaluated.pairwise(line.hypotheses[shown], line.references) @ line.weights
        of = {row: Expected(float(expected[k]), float(others[k])) for k, row in enumerate(shown.tolist())}
        return Choice(int(line.place[best]), of[best], of[int(first)], utilities[line.inverse], line.num_pairs)

    def _aggregate(self, line: "_Line") -> np.ndarray:
        """The finalists, by one comparison each."""
        scores = line.aggregated()
        return np.sort(line.ranked(scores, np.arange(len(scores)))[: self.finalists])

    def _prune(self, line: "_Line") -> np.ndarray:
        """The candidates that more and more pseudo-references leave."""
        generator = np.random.default_rng(self.seed)
        order = generator.permutation(len(line.copies))
        left, seen = np.arange(len(line.hypotheses)), FIRST_REFERENCES
        while seen < len(order) and len(left) > 1:
            columns, column = np.unique(line.copies[order[:seen]], return_inverse=True)
            scores = line.compare(left, columns)
            shares = line.shares[order[:seen]]
            drawn = generator.multinomial(seen, np.full(seen, 1 / seen), NUM_BOOTSTRAPS)
            weights = np.vstack([shares, drawn * shares]) @ np.eye(len(columns))[column]
            means = scores @ (weights / weights.sum(axis=1, keepdims=True)).T
            best = means[:, 0].argmax()
            left = left[(means[:, 1:] >= means[best, 1:]).mean(axis=1) > 1 - self.confidence]
            seen *= 2
        return left


@dataclasses.dataclass(eq=False)
class _Line:
    """The H different candidates and R different pseudo-references of a line, and what is known of their pairs.

    hypotheses int[H], references int[R]: numbers of the texts. inverse int[C]: which of H each candidate is; place
    int[H]: the first such candidate. copies int[N]: which of R each pseudo-reference is, by number; shares float[N]
    their weights, weights float[R] those of equal ones together. mixed: readers of the texts, with factors.
    """

    hypotheses: np.ndarray
    place: np.ndarray
    inverse: np.ndarray
    references: np.ndarray
    copies: np.ndarray
    shares: np.ndarray
    weights: np.ndarray
    mixed: Sequence[tuple[IndexedTexts, float]]
    scores: np.ndarray
    known: np.ndarray
    num_pairs: int = 0

    @classmethod
    def of(
        cls,
        candidates: Sequence[int],
        others: Sequence[int],
        shares: np.ndarray,
        mixed: Sequence[tuple[IndexedTexts, float]],
    ) -> "_Line":
        """Pseudo-references that weigh nothing are left out; the others are sorted, so that order does not matter."""
        hypotheses, place, inverse = np.unique(candidates, return_index=True, return_inverse=True)
        numbers = np.asarray(others)
        order = np.lexsort((shares, numbers))
        order = order[shares[order] > 0]
        references, copies = np.unique(numbers[order], return_inverse=True)
        weights = np.bincount(copies, shares[order])
        mixed = [(texts.fitted(numbers[order]), factor) for texts, factor in mixed]
        empty = np.zeros((len(hypotheses), len(references)))
        return cls(
            hypotheses, place, inverse, references, copies, shares[order], weights, mixed, empty, empty.astype(bool)
        )

    def compare(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """-> float[rows, columns], the utilities of these pairs; those not known yet are computed, as one block."""
        missing = ~self.known[np.ix_(rows, columns)]
        if missing.any():
            some, others = rows[missing.any(axis=1)], columns[missing.any(axis=0)]
            block, sides = np.ix_(some, others), (self.hypotheses[some], self.references[others])
            self.scores[block] = np.sum([factor * texts.pairwise(*sides) for texts, factor in self.mixed], axis=0)
            self.num_pairs += int((~self.known[block]).sum())
            self.known[block] = True
        return self.scores[np.ix_(rows, columns)]

    def aggregated(self) -> np.ndarray:
        """-> float[H], the utility of each candidate with all pseudo-references as one."""
        sides = self.hypotheses, self.references, self.weights
        return np.sum([factor * texts.aggregated(*sides) for texts, factor in self.mixed], axis=0)

    def ranked(self, scores: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Scores of some candidates -> their order, best first, of equals the first of the list."""
        return np.lexsort((self.place[rows], -scores))
