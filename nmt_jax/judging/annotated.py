"""Scores of annotated texts: weighted errors and scores of raters, as ratings and as a table for `nmt-jax judge`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from metrics_jax.judging.error_weights import WEIGHTS, error_weight, key_parts
from metrics_jax.judging.ratings import Ratings
from nmt_jax.data.readers.annotations import Annotation
from nmt_jax.errors import UserError


def parse_weights(options: Sequence[str]) -> dict[str, float]:
    """The default weights, changed by options SEVERITY=WEIGHT or SEVERITY/CATEGORY=WEIGHT. Raises UserError."""
    weights = dict(WEIGHTS)
    for option in options:
        key, _, value = option.rpartition("=")
        try:
            weight = float(value)
        except ValueError:
            weight = -1.0
        if not key.strip() or not 0 <= weight < float("inf"):
            raise UserError(f"--weights={option}: must be SEVERITY=WEIGHT or SEVERITY/CATEGORY=WEIGHT, such as major=5")
        weights["/".join(key_parts(key))] = weight
    return weights


def make_ratings(
    annotations: Sequence[Annotation], kind: str, weights: Mapping[str, float] = WEIGHTS
) -> dict[str, Ratings]:
    """Ratings by name, higher is better: `mqm`; `esa` and `esa_spans`; or the columns of scores.

    `mqm` and `esa_spans` are the negated sums of the weights of the errors. Raises UserError, with FILE:LINE, for an
    error whose severity has no weight. Warns if a text differs between two annotations, and if no error is one of those
    that were given a weight in addition to the defaults.
    """
    _check_texts(annotations)
    by_name = {name: [one.scores[name] for one in annotations] for name in annotations[0].scores}
    if kind != "scores":
        by_name["mqm" if kind == "mqm" else "esa_spans"] = [0 - _sum_of_weights(one, weights) for one in annotations]
        _check_weights(annotations, weights)
    raters, systems, items = ([getattr(one, name) for one in annotations] for name in ("rater", "system", "item"))
    return {name: Ratings(np.array(scores), raters, systems, items) for name, scores in by_name.items()}


def _sum_of_weights(annotation: Annotation, weights: Mapping[str, float]) -> float:
    found = []
    for error in annotation.errors:
        try:
            found.append(error_weight(error.severity, error.category, weights))
        except ValueError as problem:
            hint = f"--weights={error.severity.lower()}=NUMBER"
            raise UserError(f"{error.location}: {problem}; give it one with {hint}") from None
    return math.fsum(found)  # the same for any order of the errors


def _check_weights(annotations: Sequence[Annotation], weights: Mapping[str, float]) -> None:
    """Warn about weights of errors that do not occur: they may be misspelt."""
    errors = {"/".join(key_parts(f"{error.severity}/{error.category}/")) for one in annotations for error in one.errors}
    unused = [key for key in weights if key not in WEIGHTS and not any(one.startswith(f"{key}/") for one in errors)]
    if unused:
        warnings.warn(f"--weights: there are no errors {', '.join(unused)}", stacklevel=3)


def _check_texts(annotations: Sequence[Annotation]) -> None:
    """Warn if a system has two texts for one item: then the items are not unique."""
    first: dict[tuple[str, str], Annotation] = {}
    for one in annotations:
        other = first.setdefault((one.system, one.item), one)
        if one.hypothesis.split() != other.hypothesis.split():
            warnings.warn(
                f"{one.location}: another text of system {one.system} for item {one.item} than in {other.location}; if "
                "the items of documents have the same numbers, name both columns: --item=doc+seg_id",
                stacklevel=3,
            )
            return


def standardize(ratings: Mapping[str, Ratings]) -> dict[str, Ratings]:
    """Z-scores of each rater, with `_z` after the names. Warns about raters who gave every text the same score."""
    for name, one in ratings.items():
        if constant := one.constant_raters:
            warnings.warn(
                f"{name}: these raters gave all texts one score, so their z-scores are 0: {', '.join(constant)}",
                stacklevel=2,
            )
    return {f"{name}_z": one.standardized() for name, one in ratings.items()}


def judgement_rows(
    annotations: Sequence[Annotation], ratings: Mapping[str, Ratings], reference: str | None = None
) -> list[list[str]]:
    """A table for `nmt-jax judge`, with a heading: a row per text with its mean scores over the raters.

    reference: the system whose texts are the references; it has no rows of its own. Raises UserError if it is unknown
    or lacks a text.
    """
    texts = {(one.system, one.item): one for one in reversed(annotations)}
    if reference is not None and reference not in (systems := {one.system for one in annotations}):
        raise UserError(f"--reference={reference}: no such system; the systems are {', '.join(sorted(systems))}")
    measures = list(ratings.values())
    heading = ["system", "item", "source", "hypothesis", *(["reference"] if reference is not None else [])]
    rows = [[*heading, "ratings", *ratings]]
    counts = [len(indices) for indices in measures[0].texts.values()]
    columns = zip(measures[0].texts, counts, *(one.text_scores().tolist() for one in measures), strict=True)
    for (system, item), count, *scores in columns:
        if system == reference:
            continue
        text = texts[system, item]
        row = [system, item, text.source, text.hypothesis]
        if reference is not None:
            if (reference, item) not in texts:
                raise UserError(f"{text.location}: --reference={reference} has no text for item {item}")
            row.append(texts[reference, item].hypothesis)
        rows.append([*row, str(count), *(f"{score + 0.0:.10g}" for score in scores)])
    return rows
