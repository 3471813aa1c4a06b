"""Reranking of translation candidates with features of a noisy channel (Yee et al., 2019; Ng et al., 2019).

By Bayes' rule, p(y|x) is proportional to p(x|y) p(y). The candidates y that a direct model of p(y|x) found for a source
x are ranked by a weighted sum of features, natural logarithms of the probabilities of whole texts:

    score(y) = w_direct log p(y|x) + w_channel log p(x|y) + w_language_model log p(y) + w_words |y|

|y| is the number of words. Yee et al. divide the first logarithm by the length of y and the others by that of x; here
the length is a feature of its own.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt_jax.data.lines import find
from nmt_jax.errors import UserError
from nmt_jax.translation.candidates import Candidates
from nmt_jax.translation.pairwise_tuning import Sampling, fit, normalized, qualities, sample_pairs
from nmt_jax.translation.requests import Line

DIRECT = {"direct": 1.0}  # weights that keep the order of an n-best list

Item = tuple[str, Candidates]  # a source and its candidates
Features = Mapping[str, float]
# The feature float[N] of N candidates, each the text of a line; the translation of the line is the source.
Scorer = Callable[[Sequence[Line]], Sequence[float]]


class Ranked(NamedTuple):
    """A candidate and its new score."""

    text: str
    score: float
    features: Features


def available(item: Item, added: Iterable[str]) -> set[str]:
    """Return the names of the features of candidates when those of models, `added`, are there."""
    return {"direct", "words", *added}.union(*item[1].features)


def add_features(group: Sequence[Item], models: Mapping[str, Scorer], name: str, first: int = 0) -> list[Candidates]:
    """Return the candidates of each line of a group with all features; those that they already have are kept.

    The direct feature is the score of a candidate, unless a model computes it. models: by the name of their feature.
    name: of the file of candidates, for error messages; first: number of lines before. Raises UserError for a feature
    that is unknown or not finite.
    """
    lines = [
        Line(text, location=f"{name}: candidates of line {number}: ", translation=source)
        for number, (source, own) in enumerate(group, start=first + 1)
        for text in own.texts
    ]
    scores = [score for _, own in group for score in own.scores]
    kept = [one for _, own in group for one in own.features or [{}] * len(own.texts)]
    computed = {feature: [float(value) for value in model(lines)] for feature, model in models.items()}
    rows = []
    for number, (line, score, features) in enumerate(zip(lines, scores, kept, strict=True)):
        row = {"direct": score, "words": len(line.text.split()), **features}
        row |= {feature: column[number] for feature, column in computed.items()}
        for feature, value in row.items():
            if not np.isfinite(value):
                raise UserError(f"{line.location}the feature {feature!r} is {value}; each candidate needs a number")
        rows.append(row)
    remaining = iter(rows)
    return [own._replace(features=[next(remaining) for _ in own.texts]) for _, own in group]


def rank(
    texts: Sequence[str], features: Sequence[Features], weights: Mapping[str, float], name: str, line: int
) -> list[Ranked]:
    """Return the candidates of a line by their weighted sums of features, best first; equal ones keep their order.

    name, line: where they are, for error messages. Raises UserError for a candidate without a feature that has a
    weight.
    """
    scores = _matrix(features, list(weights), name, line) @ np.array(list(weights.values()))
    order = np.argsort(-scores, kind="stable")
    return [Ranked(texts[number], float(scores[number]), features[number]) for number in order]


def _matrix(features: Sequence[Features], names: Sequence[str], name: str, line: int) -> np.ndarray:
    """The features of N candidates of a line by their names, float64[N, F]."""
    for one in features:
        for missing in [feature for feature in names if feature not in one]:
            raise UserError(f"{name}: candidates of line {line}: one lacks the feature {missing!r} that others have")
    return np.array([[one[feature] for feature in names] for one in features], np.float64)


# Weights


def tune(lists: Sequence[Candidates], references: Sequence[str], metric: Any, seed: int, name: str) -> dict[str, float]:
    """Return weights by pairwise ranked optimization (Hopkins and May, 2011); their magnitudes sum to 1.

    lists: the candidates of each line, with features. references: one of each line. metric: of `metrics_jax`. seed: of
    the pairs that are drawn. name: of the file of candidates, for error messages. Raises UserError if no line has
    candidates of different quality.
    """
    names = list(lists[0].features[0])
    rows = [_matrix(own.features, names, name, line) for line, own in enumerate(lists, start=1)]
    quality = qualities(metric, [own.texts for own in lists], references)
    pairs = sample_pairs(rows, quality, Sampling(), np.random.default_rng(seed))
    if not len(pairs):
        raise UserError(f"{name}: no line has candidates of different {metric.name}; use longer n-best lists")
    start = np.array([DIRECT.get(feature, 0.0) for feature in names])
    return dict(zip(names, normalized(fit(pairs, start)).tolist(), strict=True))


def read_weights(path: str | os.PathLike[str]) -> dict[str, float]:
    """Return the weights of a file by feature. Raises UserError for anything else."""
    try:
        content = json.loads(find(path).read_text(encoding="utf-8"))["weights"]
        weights = {feature: float(value) for feature, value in content.items()}
        if not weights or not np.isfinite(list(weights.values())).all():
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        form = '{"weights": {"direct": 1, "channel": 0.5}}'
        raise UserError(f"{path}: not a file of weights such as {form}; nmt-jax rerank --tune writes one") from None
    return weights
