"""Metrics of n-grams: BLEU, NIST, CIDEr, chrF, word overlap and PER."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from metrics_jax.api import Result
from metrics_jax.surface.bleu import BLEU
from metrics_jax.surface.chrf import ChrF, split_words
from metrics_jax.surface.cider import CIDEr
from metrics_jax.surface.error_rates import PER
from metrics_jax.surface.nist import NIST
from metrics_jax.surface.overlap import WordOverlap
from metrics_jax.surface.tokenizers import tokenize

Tokens = Sequence[str]
Edges = Sequence[int]  # where each token begins, in the units of the text, and where the last one ends


def order(
    n: int, hypothesis: Tokens, reference: Tokens, edges: tuple[Edges, Edges] | None = None, unit: str = "word"
) -> dict[str, Any]:
    """Return the n-grams of one order with their places, those with most matches first, and how many match.

    matched: the smaller of its two counts (clipping).
    """
    places: dict[tuple[str, ...], tuple[list[list[int]], list[list[int]]]] = {}
    for side, tokens in enumerate((hypothesis, reference)):
        at = edges[side] if edges else range(len(tokens) + 1)
        for start in range(len(tokens) - n + 1):
            ngram = tuple(tokens[start : start + n])
            places.setdefault(ngram, ([], []))[side].append([at[start], at[start + n]])
    joint = "" if unit == "character" else " "
    found = [
        {"text": joint.join(ngram), "hypothesis": mine, "reference": others, "matched": min(len(mine), len(others))}
        for ngram, (mine, others) in places.items()
    ]
    return {
        "order": n,
        "unit": unit,
        "hypothesis": max(len(hypothesis) - n + 1, 0),
        "reference": max(len(reference) - n + 1, 0),
        "matches": sum(ngram["matched"] for ngram in found),
        "ngrams": sorted(found, key=lambda ngram: -ngram["matched"]),
    }


def of_words(sides: Sequence[Tokens], orders: Sequence[dict[str, Any]], equation: Sequence[str]) -> dict[str, Any]:
    """Return an explanation by n-grams of words."""
    return {
        "kind": "ngrams",
        "unit": "word",
        "hypothesis": list(sides[0]),
        "reference": list(sides[1]),
        "orders": list(orders),
        "equation": list(equation),
    }


def bleu(metric: BLEU, result: Result, hypothesis: str, reference: str) -> dict[str, Any]:
    """Explain BLEU by clipped n-gram precisions and the brevity penalty."""
    sides = tokenize([hypothesis, reference], metric.tokenize, metric.lowercase)
    parts = {name: np.asarray(value, np.float64) for name, value in result.parts.items()}
    orders = []
    for n in range(1, metric.max_ngram_order + 1):
        numbers = {"precision": float(parts["precisions"][n - 1])}
        orders.append(order(n, sides[0], sides[1]) | numbers)
    length, other = int(parts["sys_len"]), int(parts["ref_len"])
    bp = float(parts["bp"])
    if length >= other:
        penalty = f"BP = 1, since {length} ≥ {other} words"
    elif metric.brevity == "ratio" or not length:
        penalty = f"BP = {length}/{other} = {bp:.4f}"
    else:
        penalty = f"BP = exp(1 − {other}/{length}) = {bp:.4f}"
    count = metric.max_ngram_order
    if metric.effective_order:
        count = int(np.minimum.accumulate(parts["totals"] > 0).sum())
    if not any(one["matches"] for one in orders):
        score = "BLEU = 0, since no n-gram matches"
    else:
        names = " · ".join(f"p{n}" for n in range(1, count + 1))
        missed = [str(one["order"]) for one in orders[:count] if one["hypothesis"] and not one["matches"]]
        if missed and metric.smooth_method != "none":
            smoothed = f"no match of order {', '.join(missed)}: smoothed by {metric.smooth_method}"
            penalty = f"{penalty}; {smoothed}"
        numbers_of = " · ".join(f"{value:.2f}" for value in parts["precisions"][:count])
        root = f"^(1/{count})"
        score = f"BLEU = BP · ({names}){root} = {bp:.4f} · ({numbers_of}){root} = {result.score:.2f}"
    return of_words(sides, orders, [penalty, score])


def nist(metric: NIST, result: Result, hypothesis: str, reference: str) -> dict[str, Any]:
    """Explain NIST by the information of the n-grams of each order."""
    sides = tokenize([hypothesis, reference], metric.tokenize, metric.lowercase)
    values = np.asarray(result.parts["information"], np.float64).tolist()
    orders = [
        order(n, sides[0], sides[1]) | {"information": values[n - 1]} for n in range(1, metric.max_ngram_order + 1)
    ]
    total = math.fsum(values)
    penalty = result.score / total if total else 1.0
    terms = " + ".join(f"{value:.4f}" for value in values)
    lengths = f"{result.parts['sys_len']:g} of {result.parts['ref_len']:g} words"
    return of_words(
        sides,
        orders,
        [f"length penalty = {penalty:.4f} for {lengths}", f"NIST = ({terms}) · {penalty:.4f} = {result.score:.4f}"],
    )


def cider(metric: CIDEr, result: Result, hypothesis: str, reference: str) -> dict[str, Any]:
    """Explain CIDEr by the similarity of the n-grams of each order."""
    sides = tokenize([hypothesis, reference], metric.tokenize, metric.lowercase)
    values = np.asarray(result.parts["similarity"], np.float64).tolist()
    orders = [
        order(n, sides[0], sides[1]) | {"similarity": values[n - 1]} for n in range(1, metric.max_ngram_order + 1)
    ]
    name, terms = metric.variant.replace("cider", "CIDEr").replace("-d", "-D"), " + ".join(f"{v:.4f}" for v in values)
    if metric.frequencies is None:
        return of_words(sides, orders, [f"{name} = 0: n-grams have no weight if this reference is the only document"])
    return of_words(sides, orders, [f"{name} = ({terms}) / {len(orders)} orders = {result.score:.4f}"])


def chrf(metric: ChrF, result: Result, hypothesis: str, reference: str) -> dict[str, Any]:
    """Explain chrF by precision and recall of character n-grams, and of word n-grams in chrF++."""
    texts = [text.lower() if metric.lowercase else text for text in (hypothesis, reference)]
    characters = [list(text if metric.whitespace else "".join(text.split())) for text in texts]
    edges = [_edges(tokens) for tokens in characters]
    orders = [
        order(n, characters[0], characters[1], (edges[0], edges[1]), "character")
        for n in range(1, metric.char_order + 1)
    ]
    words = [split_words(text) for text in texts]
    edges = [_edges(tokens) for tokens in words]
    orders += [order(n, words[0], words[1], (edges[0], edges[1])) for n in range(1, metric.word_order + 1)]
    weight = metric.beta**2
    for one in orders:
        if one["hypothesis"] and one["reference"]:
            precision, recall = one["matches"] / one["hypothesis"], one["matches"] / one["reference"]
            divisor = weight * precision + recall
            f = (1 + weight) * precision * recall / divisor if divisor else 0.0
            one |= {"precision": 100 * precision, "recall": 100 * recall, "f": 100 * f}
    reached = [one for one in orders if "f" in one]
    names = {"unit": "character", "hypothesis": texts[0].split(), "reference": texts[1].split()}
    if metric.eps_smoothing:
        equation = [f"chrF = mean of F over {len(orders)} orders = {result.score:.2f}"]
    elif not reached:
        equation = ["chrF = 0, since no order has n-grams in both texts"]
    else:
        equation = _f_equation(result, metric.beta, len(reached))
    return of_words(texts, orders, equation) | names


def _f_equation(result: Result, beta: float, count: int) -> list[str]:
    precision, recall = (100 * float(result.parts[name]) for name in ("precision", "recall"))
    if not precision + recall:
        return [f"P = R = 0 over {count} orders", "chrF = 0"]
    weight = f"{beta**2:g}"
    fraction = f"(1 + {weight}) · {precision:.2f} · {recall:.2f} / ({weight} · {precision:.2f} + {recall:.2f})"
    return [
        f"P = mean over {count} orders = {precision:.2f}",
        f"R = mean over {count} orders = {recall:.2f}",
        f"chrF = (1 + β²) P R / (β² P + R) = {fraction} = {result.score:.2f}",
    ]


def _edges(tokens: Tokens) -> list[int]:
    """Return where each token begins, in characters that are not white space, and where the last one ends."""
    sizes = [len("".join(token.split())) for token in tokens]
    return np.concatenate([[0], np.cumsum(sizes, dtype=int)]).astype(int).tolist()


def overlap(metric: WordOverlap, result: Result, hypothesis: str, reference: str) -> dict[str, Any]:
    """Explain word overlap by common words."""
    sides = tokenize([hypothesis, reference], metric.tokenize, metric.lowercase)
    precision, recall = float(result.parts["precision"]), float(result.parts["recall"])
    one = order(1, sides[0], sides[1]) | {"precision": 100 * precision, "recall": 100 * recall}
    counts = f"P = {one['matches']}/{one['hypothesis']}, R = {one['matches']}/{one['reference']}"
    return of_words(sides, [one], [counts, f"F = (1 + β²) P R / (β² P + R) = {result.score:.4f}, β = {metric.beta:g}"])


def per(metric: PER, result: Result, hypothesis: str, reference: str) -> dict[str, Any]:
    """Explain PER by common words."""
    sides = [metric.words(hypothesis), metric.reference_words(reference)]
    one = order(1, sides[0], sides[1])
    length, other, matches = one["hypothesis"], one["reference"], one["matches"]
    equation = f"PER = (max({length}, {other}) − {matches} matches) / {other} words = {result.score:.2f} %"
    return of_words(sides, [one], [equation if other else f"PER = {result.score:g} %: the reference has no words"])
