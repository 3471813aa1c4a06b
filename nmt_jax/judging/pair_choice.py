"""Pairs of texts for people to compare: chosen where two metrics disagree, and the metrics' test by their choices."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from metrics_jax.judging.disagreement import Disagreements, choose_pairs, find_disagreements
from metrics_jax.judging.sign_test import pairs_needed, sign_test, sign_test_power
from nmt_jax.data.readers.judgements import Columns, Judged, judged_files, read_judged
from nmt_jax.data.readers.table import read_table
from nmt_jax.distributed.tables import Tables
from nmt_jax.errors import UserError
from nmt_jax.judging.evaluation import opened_metrics
from nmt_jax.judging.metric_scores import JudgedTexts, given_scores
from nmt_jax.pretrained.metrics import check_sources

HEADING = ("item", "reference", "left", "right", "choice", "left_metric", "right_metric", "left_system", "right_system")
CHOICES = ("left", "right", "tie")


@dataclasses.dataclass(frozen=True)
class Study:
    """How large a study must be: to find a difference of accuracy with a probability of `power` at level `alpha`."""

    difference: float = 0.05
    power: float = 0.8
    alpha: float = 0.05

    def share(self, rate: float) -> float:
        """The share of the pairs on which people side with the better metric, if the metrics disagree on `rate`.

        Where the metrics agree, both are right or both wrong: difference = rate (share - (1 - share)). Raises UserError
        if they disagree on too few pairs for the difference.
        """
        if self.difference > rate:
            raise UserError(
                f"--difference={self.difference:g}: the metrics order only {rate:.1%} of the pairs differently, so "
                "their accuracies cannot differ by more; name a smaller difference, or --pairs=N"
            )
        return (1 + self.difference / rate) / 2

    def size(self, rate: float) -> int:
        """The number of pairs to judge on which the metrics disagree, without ties. Raises UserError as `share`."""
        try:
            return pairs_needed(self.share(rate), self.power, self.alpha)
        except ValueError as error:
            raise UserError(f"--difference={self.difference:g}, --power={self.power:g}: {error}") from None


def score_texts(
    path: str, columns: Columns, metrics: Sequence[str], scores: Sequence[str], options: Mapping[str, Any]
) -> tuple[Judged, dict[str, np.ndarray]]:
    """Read the texts of a file; return also the scores float[N] of two metrics by name, higher is better.

    metrics, scores, options: as in `evaluate_metrics`. Raises UserError for a file that cannot be read, for another
    number of metrics, and if a metric needs sources and there are none, or none reads those that are given.
    """
    names = [*metrics, *(one.removeprefix("-").partition("=")[0] for one in scores)]
    if len(names) != 2 or names[0] == names[1]:
        same = " with the same name" if len(names) == 2 else ""
        raise UserError(f"two metrics are needed, not {len(names)}{same}: --metrics=A,B, or --scores=COLUMN")
    columns = dataclasses.replace(columns, scores=tuple(one.removeprefix("-") for one in scores if "=" not in one))
    files = judged_files(path)
    if len(files) > 1:
        raise UserError(f"{path}: {len(files)} files; name one")
    judged = read_judged(files[0], columns, unjudged=True)
    texts, tables = JudgedTexts(judged), Tables(None)
    with opened_metrics(metrics, {**options, "sources": judged.sources is not None}) as opened:
        check_sources(opened.values(), judged.sources is not None)
        for name, metric in opened.items():
            texts.add_table(tables, name, metric)
        arrays = tables.collect()
    rows = [texts.scores(name, arrays or [], of_systems=False) for name in metrics]
    return judged, dict(zip(names, [*rows, *(given_scores(one, judged, 1) for one in scores)], strict=True))


def disagreements(judged: Judged, scores: Mapping[str, np.ndarray]) -> Disagreements:
    """The pairs of texts of one item that the two metrics order differently. Raises UserError if there are none."""
    try:
        found = find_disagreements(
            np.stack(list(scores.values())), judged.hypotheses, judged.systems or [], judged.items or []
        )
    except ValueError as error:
        raise UserError(f"{judged.name}: {error}") from None
    if not len(found.first):
        raise UserError(
            f"{judged.name}: the metrics order none of the {found.num_pairs} pairs of different texts of one item "
            "differently"
        )
    return found


def rows_to_judge(
    judged: Judged, metrics: Sequence[str], pairs: Disagreements, count: int, seed: int
) -> list[list[str]]:
    """A table with a row per chosen pair, in random order and on random sides, and an empty column `choice`."""
    systems, items = judged.systems or [], judged.items or []
    random = np.random.default_rng(seed)
    rows = [list(HEADING)]
    for number in random.permutation(choose_pairs(pairs, systems, items, count)).tolist():
        sides = [(pairs.first[number], metrics[0]), (pairs.second[number], metrics[1])]
        (left, left_metric), (right, right_metric) = sides[:: random.choice([1, -1])]
        texts = [judged.references[left][0], judged.hypotheses[left], judged.hypotheses[right]]
        row = [items[left], *texts, "", left_metric, right_metric, systems[left], systems[right]]
        rows.append([re.sub(r"[\t\r\n]", " ", cell) for cell in row])
    return rows


def describe(pairs: Disagreements, study: Study, count: int, chosen: int) -> str:
    """How many pairs there are and are needed, and the power of the chosen number."""
    lines = [f"{len(pairs.first):,} of {pairs.num_pairs:,} pairs are ordered differently ({pairs.rate:.1%})"]
    if study.difference <= pairs.rate:
        share = study.share(pairs.rate)
        lines.append(
            f"if the accuracies differ by {study.difference:g}, people side with the better metric on {share:.1%} of "
            f"these; {chosen:,} of them have power {float(sign_test_power(chosen, share, study.alpha)):.2f}"
        )
        lines.append(
            f"{math.ceil(count / pairs.rate):,} pairs chosen at random would hold as many as {count:,} of these"
        )
    return "; ".join(lines)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The choices of people: `wins` of each metric by name, the number of ties, and the p-value of the sign test."""

    wins: dict[str, int]
    ties: int
    p_value: float


def read_choices(path: str | os.PathLike[str]) -> Verdict:
    """Read a table of `rows_to_judge` whose column `choice` holds left, right or tie; rows without one do not count.

    Raises UserError `FILE:LINE: …` for another choice, and if the metrics are not the same two in all rows.
    """
    wins: dict[str, int] = {}
    ties = 0
    for row in read_table(path, "choices"):
        choice = str(row.value("choice") or "").strip().lower()
        sides = {side: str(row.value(f"{side}_metric")) for side in ("left", "right")}
        for name in sides.values():
            wins.setdefault(name, 0)
        if len(set(sides.values())) != 2 or len(wins) != 2:
            raise UserError(f"{row.location}: the metrics must be the same two in all rows, not {', '.join(wins)}")
        if choice not in (*CHOICES, ""):
            raise UserError(f"{row.location}: 'choice' is {choice[:40]!r}: must be {', '.join(CHOICES)}, or empty")
        if choice == "tie":
            ties += 1
        elif choice:
            wins[sides[choice]] += 1
    if not sum(wins.values()):
        raise UserError(f"{path}: no choices: fill the column 'choice' with {', '.join(CHOICES)}")
    return Verdict(wins, ties, sign_test(*wins.values()))
