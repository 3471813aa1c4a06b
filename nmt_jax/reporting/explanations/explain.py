"""The explanation of a score: what any metric matched, as far as it can say so."""

import importlib
from typing import Any

import numpy as np

from metrics_jax.api import AdditiveMetric
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import metric_error

_FUNCTIONS = {  # metric: module and function that explain it
    **{name: ("ngrams", name) for name in ("bleu", "nist", "cider", "chrf", "overlap", "per")},
    **{name: ("alignments", name) for name in ("ter", "wer", "cder", "character", "eed", "gtm")},
    **{name: ("alignments", name) for name in ("rouge", "rouge155", "meteor", "meteor15")},
    **{name: ("vectors", name) for name in ("bertscore", "yisi1")},
    "cer": ("alignments", "wer"),
    "meteor_nltk": ("alignments", "meteor"),
    "moverscore": ("vectors", "transport"),
    "wmd": ("vectors", "transport"),
}


def explain(metric: AdditiveMetric, hypothesis: str, reference: str) -> dict[str, Any]:
    """Return the score of one pair of texts and what it was made of, as plain values.

    Always: score, signature, parts (as in `Result`), hypothesis and reference (lists of the words or pieces that are
    compared), equation (lines of text with the numbers in them) and kind, which says what else there is:

    - "ngrams": unit ("word" or "character"), orders with their n-grams; places are spans [first, end) in units.
    - "edits": shifts, order and pairs as in `ter.Edits`, and the counts of all edits.
    - "alignment": matches, each with positions in both texts, the module that made it and the number of its chunk.
    - "similarity": matrix [S][T] and the weights of both sides.
    - "transport": moved [S][T], cost [S][T] and the weights of both sides.
    - "score": nothing else; note says why, if there is a reason.
    """
    try:
        result = metric([hypothesis], [reference])
        parts = {name: np.asarray(value, np.float64).tolist() for name, value in result.parts.items()}
        common = {"score": result.score, "signature": result.signature, "parts": parts}
        if metric.name not in _FUNCTIONS:
            return common | score_only(hypothesis, reference)
        module, function = _FUNCTIONS[metric.name]
        explained = getattr(importlib.import_module(f"nmt_jax.reporting.explanations.{module}"), function)
        try:
            return common | explained(metric, result, hypothesis, reference)
        except UserError as error:  # there is nothing to match
            return common | score_only(hypothesis, reference, str(error))
    except ValueError as error:
        raise metric_error(error, metric.name) from error


def score_only(hypothesis: str, reference: str, note: str = "") -> dict[str, Any]:
    """Return the explanation of a metric that does not say what it matched."""
    return {
        "kind": "score",
        "hypothesis": hypothesis.split(),
        "reference": reference.split(),
        "equation": [],
        "note": note,
    }
