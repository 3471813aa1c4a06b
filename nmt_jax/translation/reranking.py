"""Reranking of translation candidates by minimum Bayes risk, with metrics named by specifications."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt_jax.data.lines import chunks
from nmt_jax.decoding.minimum_bayes_risk import Choice, MinimumBayesRisk, Utility
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import metric_error, open_metric
from nmt_jax.translation.candidates import Candidates
from nmt_jax.translation.requests import Hypothesis

EVALUATED = ("bleu|effective_order:true", "chrf", "ter")  # default: the first that is not optimized
CHUNK = 16  # lines whose candidates are compared together


class Pair(NamedTuple):
    """The candidates of a line, its pseudo-references if they are others, and its source if a metric reads it."""

    own: Candidates
    others: Candidates | None
    source: str = ""


class Gains:
    """Utility of the chosen candidates and of the first candidates, summed over lines."""

    def __init__(self, evaluated: str) -> None:
        self.evaluated = evaluated
        self._sums = np.zeros(5)

    def add(self, choice: Choice) -> None:
        """Add the choice made for one more line."""
        self._sums += [1, *choice.chosen, *choice.first]

    def take(self) -> list[float]:
        """Return the sums since the last call: number of lines; utility and other metric, of chosen and of first."""
        sums, self._sums = self._sums, np.zeros(5)
        return sums.tolist()

    def report(self, sums: Sequence[Sequence[float]]) -> str:
        """Describe the means over all lines, from what `take` returned for some of them at a time."""
        num_lines, *totals = np.sum(sums, axis=0).tolist()
        utility, other, first_utility, first_other = (total / max(num_lines, 1) for total in totals)
        return (
            f"nmt-jax: {num_lines:.0f} lines: expected utility {utility:.4f} (first candidates: {first_utility:.4f}); "
            f"{self.evaluated}, not optimized, {other:.4g} (first candidates: {first_other:.4g})"
        )


def make_decision(
    utilities: Sequence[str], evaluate: str | None, options: dict[str, Any], **settings: Any
) -> tuple[MinimumBayesRisk, str]:
    """Open the metrics; returns the decision rule and the specification of the metric that evaluates it.

    utilities: `SPEC` or `SPEC@WEIGHT`. evaluate: a metric that is not optimized, or None for the first such metric of
    EVALUATED. options: of `open_metric`; settings: of `MinimumBayesRisk`.
    """
    opened = tuple(_utility(item, options) for item in utilities)
    names = {utility.metric.name for utility in opened}
    spec = evaluate or next((one for one in EVALUATED if one.partition("|")[0] not in names), "")
    if not spec:
        raise UserError("--evaluate=METRIC: name a metric that is not optimized, such as meteor15 or rougeL")
    return MinimumBayesRisk(opened, open_metric(spec, **options), **settings), spec


def _utility(item: str, options: dict[str, Any]) -> Utility:
    """Open `SPEC` or `SPEC@WEIGHT`."""
    spec, at, weight = item.partition("@")
    try:
        return Utility(open_metric(spec, **options), float(weight) if at else 1.0)
    except ValueError:
        raise UserError(f"--utility={item}: {weight!r} is not a weight; {spec}@2 gives {spec} weight 2") from None


def paired(candidates: Iterable[Candidates], references: Iterable[Candidates] | None) -> Iterator[Pair]:
    """Yield the candidates and pseudo-references of each line, None if these are the candidates themselves.

    Raises UserError if there are fewer or more lines of references.
    """
    if references is None:
        yield from (Pair(own, None) for own in candidates)
        return
    for number, (own, other) in enumerate(itertools.zip_longest(candidates, references), start=1):
        if own is None or other is None:
            longer, shorter = ("candidates", "references") if other is None else ("references", "candidates")
            raise UserError(f"--references: the {longer} have a line {number}, the {shorter} do not")
        yield Pair(own, other)


def choose_texts(
    decide: MinimumBayesRisk, group: Sequence[Pair], name: str = "stdin", first: int = 0
) -> Iterator[tuple[str, Choice]]:
    """Yield the text chosen for each line of a group of the file `name`, and the choice; first: number of lines before.

    Raises UserError if weights="probability" lacks a score, and if a metric rejects a text.
    """
    texts = [pair.own.texts for pair in group]
    weighted = [pair.others or pair.own for pair in group]
    if decide.weights == "probability":
        for line, one in enumerate(weighted, start=first + 1):
            if np.isnan(one.scores).any():
                raise UserError(f"{name}:{line}: --weights=probability needs a score for every candidate of a line")
    sources = [pair.source for pair in group] if decide.reads_sources else None
    choices = _decided(decide, texts, [one.scores for one in weighted], [one.texts for one in weighted], sources)
    yield from ((own[choice.index], choice) for own, choice in zip(texts, choices, strict=True))


def rerank_samples(
    results: Iterable[list[Hypothesis]], sources: Sequence[str], decide: MinimumBayesRisk, gains: Gains, n_best: int
) -> Iterator[list[Hypothesis]]:
    """Yield the `n_best` different samples of each source with the highest expected utility, which is their score."""
    for pairs in chunks(zip(results, sources, strict=True), CHUNK):
        group, read = zip(*pairs, strict=True)
        texts = [[one.text for one in own] for own in group]
        choices = _decided(decide, texts, None, None, read if decide.reads_sources else None)
        for own, choice in zip(group, choices, strict=True):
            gains.add(choice)
            order = [choice.index, *(n for n in np.argsort(-choice.utilities, kind="stable") if n != choice.index)]
            ranked = {own[n].text: own[n]._replace(score=float(choice.utilities[n])) for n in order}
            yield list(ranked.values())[:n_best]


def _decided(decide: MinimumBayesRisk, *arguments: Any) -> list[Choice]:
    """Call `decide`; an error of a metric, such as a text that is too long for its model, becomes a UserError."""
    try:
        return decide(*arguments)
    except (ValueError, MemoryError) as error:
        raise metric_error(error, "--utility") from error
