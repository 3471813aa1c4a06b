"""Minimum-Bayes-risk decoding: choose the candidate of maximum expected utility under the model.

y* = argmax_y sum_r w_r u(y, r) over pseudo-references r (Kumar and Byrne, 2004); with samples as pseudo-references
Eikema and Aziz (2020, 2022); with neural metrics as utilities Freitag et al. (2022).
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from metrics_jax.api import AdditiveMetric, IndexedTexts
from metrics_jax.registry import REGISTRY, metric_class
from nmt_jax.errors import UserError

METHODS = ("exact", "aggregate", "prune")
WEIGHTS = ("uniform", "probability")
PERCENT = frozenset({"bleu", "chrf", "ter", "cder", "wer", "cer", "per", "sari"})  # metrics on a scale of 0 to 100
FIRST_REFERENCES = 8  # in the first round of pruning; doubled in each further round
NUM_BOOTSTRAPS = 500  # as Cheng and Vlachos (2023)


class Utility(NamedTuple):
    """A metric and its weight among several."""

    metric: AdditiveMetric
    weight: float = 1.0


class Expected(NamedTuple):
    """Expectations over the pseudo-references: of the utility, at most 1, and of the other metric, on its own scale."""

    utility: float
    evaluated: float


@dataclasses.dataclass(frozen=True, eq=False)
class Choice:
    """The choice among the C candidates of a line.

    index: the chosen candidate. chosen: its expectations. first: those of the first candidate, the result without this
    decoding. utilities: float[C], NaN for candidates dropped before they were compared with all pseudo-references.
    num_pairs: number of pairs of different texts that the utilities compared.
    """

    index: int
    chosen: Expected
    first: Expected
    utilities: np.ndarray
    num_pairs: int


@dataclasses.dataclass(frozen=True)
class MinimumBayesRisk:
    """Chooses the candidate of maximum expected utility, the first among equals.

    utilities: the utility is their weighted mean; percentages are divided by 100, and distances negated. evaluated:
    another metric, which is reported but not optimised. weights of the pseudo-references: "uniform" (for samples), or
    "probability", proportional to p ** (1 / temperature) (for n-best lists; Kumar and Byrne, 2004; Ehling et al.,
    2007).

    method: which candidates are compared with every pseudo-reference. "exact": all. "aggregate": the best `finalists`
    by comparison with an aggregate of all references: for BLEU and chrF the expected n-gram counts (DeNero et al.,
    2009; Vamvas and Sennrich, 2024), for embedding metrics the cosine to the centroid instead of the metric itself.
    "prune": those that, after 8, 16, 32 ... pseudo-references in an order drawn by `seed`, are at least as good as the
    best with a bootstrap probability above 1 - `confidence` (Cheng and Vlachos, 2023, algorithm 1).

    Raises UserError if an option is invalid, if a metric has no `pairwise` or, for "aggregate", no `aggregated`, and if
    `evaluated` is one of the utilities.
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
                raise UserError(f"{name} cannot be a utility: it has no `pairwise`")
        if not metrics or not all(0 < utility.weight < np.inf for utility in self.utilities):
            raise UserError("utilities must be at least one metric, each with a positive weight")
        if self.evaluated.name in {metric.name for metric in metrics}:
            raise UserError(f"{self.evaluated.name} is one of the utilities: evaluate with another metric")
        for name, choices in (("method", METHODS), ("weights", WEIGHTS)):
            if getattr(self, name) not in choices:
                raise UserError(f"{name}={getattr(self, name)!r}: use one of {', '.join(choices)}")
        if not 0 < self.temperature < np.inf or not 0 < self.confidence < 1 or self.finalists < 1:
            raise UserError("temperature must be above 0, confidence between 0 and 1, and finalists at least 1")
        for metric in metrics if self.method == "aggregate" else []:
            if not hasattr(metric, "aggregated"):
                known = ", ".join(name for name in REGISTRY if hasattr(metric_class(name), "aggregated"))
                raise UserError(f"{metric.name} cannot aggregate references: use one of {known}")

    @property
    def reads_sources(self) -> bool:
        """Whether a metric reads sources."""
        return any("sources" in metric.needs for metric in (*(one.metric for one in self.utilities), self.evaluated))

    def __call__(
        self,
        candidates: Sequence[Sequence[str]],
        log_probs: Sequence[Sequence[float]] | None = None,
        references: Sequence[Sequence[str]] | None = None,
        sources: Sequence[str] | None = None,
    ) -> list[Choice]:
        """Return the choice for each of N lists of candidates, which may differ in length.

        references: N lists of pseudo-references, by default the candidates themselves. log_probs: N lists, of the
        pseudo-references. sources: N texts, for metrics that read them. Repeated texts count as often as they occur,
        but are compared once. A choice does not depend on other lists nor, ties apart, on the order of the candidates.
        Metrics read each text once per call, so one call with many lists is faster than many calls. Raises UserError if
        a list is empty, if lengths differ, or if log-probabilities are missing for weights="probability".
        """
        others = candidates if references is None else references
        if any(one is not None and len(one) != len(candidates) for one in (others, log_probs, sources)):
            raise UserError(
                f"{len(candidates)} lists of candidates need as many lists of pseudo-references and log_probs, and as "
                "many sources"
            )
        origins = [""] * len(candidates) if sources is None else sources  # equal texts of two sources are two texts
        texts = sorted(
            {
                (text, origin)
                for side in (candidates, others)
                for origin, group in zip(origins, side, strict=True)
                for text in group
            }
        )
        numbers = {text: number for number, text in enumerate(texts)}
        mixed = [(_index(utility.metric, texts), self._factor(utility)) for utility in self.utilities]
        evaluated = _index(self.evaluated, texts)
        choices = []
        for n, (group, other) in enumerate(zip(candidates, others, strict=True)):
            if not group or not other:
                raise UserError(f"list {n + 1} has no candidates or no pseudo-references")
            shares = self._shares(n, len(other), None if log_probs is None else log_probs[n])
            rows, columns = ([numbers[text, origins[n]] for text in side] for side in (group, other))
            choices.append(self._choose(_Line.of(rows, columns, shares, mixed), evaluated))
        return choices

    def _factor(self, utility: Utility) -> float:
        """The factor of its scores in the weighted mean."""
        sign = 1 if utility.metric.higher_is_better else -1
        scale = 100 if utility.metric.name in PERCENT else 1
        return sign * utility.weight / sum(one.weight for one in self.utilities) / scale

    def _shares(self, n: int, count: int, log_probs: Sequence[float] | None) -> np.ndarray:
        """Weights float64[N] of the pseudo-references of line n; their sum is 1."""
        if self.weights == "uniform":
            return np.full(count, 1 / count)
        values = np.asarray([] if log_probs is None else log_probs, np.float64) / self.temperature
        if len(values) != count or np.isnan(values).any() or not np.isfinite(values.max()):
            raise UserError(f"list {n + 1}: weights=probability needs a log-probability for each of {count} texts")
        shares = np.exp(values - values.max())
        return shares / shares.sum()

    def _choose(self, line: "_Line", evaluated: IndexedTexts) -> Choice:
        """Choose among the finalists of a line."""
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
        """The best candidates by comparison with the aggregated pseudo-references."""
        sides = line.hypotheses, line.references, line.weights
        scores = np.sum([factor * texts.aggregated(*sides) for texts, factor in line.mixed], axis=0)
        return np.sort(line.ranked(scores, np.arange(len(scores)))[: self.finalists])

    def _prune(self, line: "_Line") -> np.ndarray:
        """The candidates left after pruning with more and more pseudo-references."""
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


def _index(metric: Any, texts: Sequence[tuple[str, str]]) -> IndexedTexts:
    """Prepare texts, each with its source, for a metric, which may not read sources."""
    read = [[source for _, source in texts]] if "sources" in metric.needs else []
    return metric.index_texts([text for text, _ in texts], *read)


@dataclasses.dataclass(eq=False)
class _Line:
    """The H distinct candidates and R distinct pseudo-references of a line, and the utilities computed so far.

    hypotheses int[H], references int[R]: indices of the texts. inverse int[C]: index into H of each candidate; place
    int[H]: the first candidate with that text. copies int[N]: index into R of each pseudo-reference; shares float[N]:
    their weights; weights float[R]: the sums for equal texts. mixed: the indexed texts of each metric, with its factor.
    scores, known [H, R]: utilities, and whether they are computed.
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
        """Leave out pseudo-references of weight 0, and sort the others, so that their order does not matter."""
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
        """Return the utilities float[rows, columns] of these pairs; missing ones are computed as one block."""
        missing = ~self.known[np.ix_(rows, columns)]
        if missing.any():
            some, others = rows[missing.any(axis=1)], columns[missing.any(axis=0)]
            block, sides = np.ix_(some, others), (self.hypotheses[some], self.references[others])
            self.scores[block] = np.sum([factor * texts.pairwise(*sides) for texts, factor in self.mixed], axis=0)
            self.num_pairs += int((~self.known[block]).sum())
            self.known[block] = True
        return self.scores[np.ix_(rows, columns)]

    def ranked(self, scores: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Order of the candidates `rows` by falling scores; equal ones by their place in the list."""
        return np.lexsort((self.place[rows], -scores))
