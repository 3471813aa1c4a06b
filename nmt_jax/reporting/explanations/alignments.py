"""Metrics that align texts or count edits: TER and other error rates, CharacTER, EED, GTM, ROUGE and METEOR."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from metrics_jax.api import Result
from metrics_jax.meteor.meteor import MeteorFormula
from metrics_jax.meteor.meteor15 import Meteor15
from metrics_jax.surface import lcs
from metrics_jax.surface.character import CharacTER
from metrics_jax.surface.eed import EED
from metrics_jax.surface.error_rates import CDER, CER, WER, ErrorRate
from metrics_jax.surface.gtm import GTM, runs
from metrics_jax.surface.rouge import Rouge
from metrics_jax.surface.rouge155 import Rouge155
from metrics_jax.surface.ter import TER, Edits, edits
from metrics_jax.surface.tokenizers import tokenize
from nmt_jax.reporting.explanations import ngrams

Words = Sequence[str]
EDITS = ("shift", "insertion", "deletion", "substitution")


def ter(metric: TER, result: Result, hypothesis: str, reference: str) -> dict[str, Any]:
    """Explain TER by its shifts and edits."""
    words, others = metric.words(hypothesis), metric.reference_words(reference)
    return _edits(metric, result, words, others, edits(words, others), EDITS)


def wer(metric: WER | CER, result: Result, hypothesis: str, reference: str) -> dict[str, Any]:
    """Explain WER or CER by its edits."""
    words, others = metric.words(hypothesis), metric.reference_words(reference)
    found = Edits([], list(range(len(words))), _levenshtein_pairs(words, others))
    return _edits(metric, result, words, others, found, EDITS[1:])


def cder(metric: CDER, result: Result, hypothesis: str, reference: str) -> dict[str, Any]:
    """Explain CDER by the number of edits and jumps."""
    words, others = metric.words(hypothesis), metric.reference_words(reference)
    edited = _rate(metric, result, f"{result.parts['num_edits']:g} edits")
    return {"kind": "score", "hypothesis": words, "reference": others, "note": "", "equation": [edited]}


def _edits(
    metric: ErrorRate, result: Result, words: Words, others: Words, found: Edits, kinds: Sequence[str]
) -> dict[str, Any]:
    """Return an explanation by shifts and edits; kinds: the edits that the metric knows."""
    substitutions = sum(words[found.order[place]] != others[j] for place, j in found.pairs)
    numbers = (len(found.shifts), len(others) - len(found.pairs), len(words) - len(found.pairs), substitutions)
    counts = {name: count for name, count in zip(EDITS, numbers, strict=True) if name in kinds}
    terms = " + ".join(f"{count} {name}{'s' * (count != 1)}" for name, count in counts.items())
    shown = found._asdict() | {"kind": "edits", "hypothesis": words, "reference": others, "counts": counts}
    return shown | {"equation": [_rate(metric, result, f"({terms})")]}


def _levenshtein_pairs(words: Words, others: Words) -> list[tuple[int, int]]:
    """Return the positions of both texts that are matched or substituted by the fewest edits.

    Of the cheapest paths through the table of edit distances, from its end, the one that prefers pairs over deletions
    over insertions.
    """
    columns = np.arange(len(others) + 1)
    others_array = np.array(others, object)
    table = [columns]
    for i, word in enumerate(words, start=1):
        above = table[-1]
        row = np.append(i, np.minimum(above[1:] + 1, above[:-1] + (others_array != word)))
        table.append(np.minimum.accumulate(row - columns) + columns)
    pairs = []
    i, j = len(words), len(others)
    while i and j:
        if table[i][j] == table[i - 1][j - 1] + (words[i - 1] != others[j - 1]):
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif table[i][j] == table[i - 1][j] + 1:
            i -= 1
        else:
            j -= 1
    return pairs[::-1]


def _rate(metric: ErrorRate, result: Result, edited: str) -> str:
    """Return the equation of an error rate."""
    name, length = metric.name.upper(), float(result.parts["ref_length"])
    if not length:
        return f"{name} = {result.score:g} %: the reference has no words"
    return f"{name} = {edited} / {length:g} words = {result.score:.2f} %"


def character(metric: CharacTER, result: Result, hypothesis: str, reference: str) -> dict[str, Any]:
    """Explain CharacTER by the edits of characters and the cost of shifts."""
    num_edits, shifts, length = (float(result.parts[name]) for name in ("num_edits", "shift_cost", "sys_len"))
    if not length:
        return _equation(hypothesis, reference, f"CharacTER = {result.score:g}: the hypothesis has no words")
    rate = f"({num_edits:g} edits + {shifts:.2f} for shifts) / {length:g} characters"
    limit = ", at most 1" if metric.capped and num_edits + shifts > length else ""
    return _equation(hypothesis, reference, f"CharacTER = {rate}{limit} = {result.score:.4f}")


def eed(metric: EED, result: Result, hypothesis: str, reference: str) -> dict[str, Any]:
    """Explain EED by the distance and the cost of coverage."""
    distance, coverage, length = (float(result.parts[name]) for name in ("distance", "coverage", "ref_length"))
    rate = f"({distance:.2f} + {coverage:.2f}) / ({length:g} characters + {coverage:.2f})"
    limit = ", at most 1" if distance > length else ""
    names = "(distance + coverage) / (reference + coverage)"
    return _equation(hypothesis, reference, f"EED = {names} = {rate}{limit} = {result.score:.4f}")


def _equation(hypothesis: str, reference: str, line: str) -> dict[str, Any]:
    """Return an explanation by the equation alone."""
    shown = {"kind": "score", "hypothesis": hypothesis.split(), "reference": reference.split(), "note": ""}
    return shown | {"equation": [line]}


def gtm(metric: GTM, result: Result, hypothesis: str, reference: str) -> dict[str, Any]:
    """Explain GTM by its runs of words."""
    words, others = tokenize([hypothesis, reference], metric.tokenize, metric.lowercase)
    found = runs(words, others)
    alignment = {i + k: j + k for i, j, length in found for k in range(length)}
    matches = _matches(alignment, dict.fromkeys(alignment.items(), "common"))
    shown = {"kind": "alignment", "hypothesis": words, "reference": others, "matches": matches}
    if not found:
        return shown | {"equation": ["GTM = 0, since no word matches"]}
    e, size = f"{metric.exponent:g}", result.parts["match_size"]
    terms = " + ".join(f"{length}^{e}" for _, _, length in found)
    precision, recall = (f"{float(result.parts[name]):.4f}" for name in ("precision", "recall"))
    equation = [
        f"MMS = ({terms})^(1/{e}) = {size:.4f}",
        f"P = MMS / {len(words)} words = {precision}, R = MMS / {len(others)} words = {recall}",
        f"GTM = 2 P R / (P + R) = {result.score:.4f}",
    ]
    return shown | {"equation": equation}


def rouge(metric: Rouge, result: Result, hypothesis: str, reference: str) -> dict[str, Any]:
    """Explain ROUGE by n-grams, or by a longest common subsequence."""
    return _rouge(metric, result, hypothesis, reference, "F1 = 2 P R / (P + R)")


def rouge155(metric: Rouge155, result: Result, hypothesis: str, reference: str) -> dict[str, Any]:
    """Explain ROUGE-1.5.5 likewise; the variants W, S and SU have no matches of their own."""
    name = f"F = P R / ((1 − α) P + α R), α = {metric.alpha:g},"
    return _rouge(metric, result, hypothesis, reference, name)


def _rouge(metric: Rouge | Rouge155, result: Result, hypothesis: str, reference: str, f: str) -> dict[str, Any]:
    sides = words, others = metric.words([hypothesis, reference])
    if metric.variant.isdecimal():
        one = ngrams.order(int(metric.variant), words, others)
        shown = ngrams.of_words(sides, [one], [])
        counts = one["matches"], one["hypothesis"], one["reference"]
    else:
        pairs = [(i, j) for j, i in lcs.pairs(others, words)] if metric.variant in ("L", "Lsum") else []
        matches = _matches(dict(pairs), dict.fromkeys(pairs, "common"))
        shown = {"kind": "alignment", "hypothesis": words, "reference": others, "matches": matches}
        counts = len(pairs), len(words), len(others)
    precision, recall = float(result.parts["precision"]), float(result.parts["recall"])
    equal = f"P = {precision:.4f}, R = {recall:.4f}"
    if metric.variant in (*"123456789", "L", "Lsum"):
        equal = f"P = {counts[0]}/{counts[1]} = {precision:.4f}, R = {counts[0]}/{counts[2]} = {recall:.4f}"
    return shown | {"equation": [equal, f"ROUGE-{metric.variant}: {f} = {result.score:.4f}"]}


def meteor(metric: MeteorFormula, result: Result, hypothesis: str, reference: str) -> dict[str, Any]:
    """Explain METEOR by its alignment and the chunks of that."""
    words, others = metric.words([hypothesis, reference])
    modules: dict[tuple[int, int], str] = {}
    alignment: dict[int, int] = {}
    for module, alignment in metric.stages(words, others).items():
        modules = dict.fromkeys(alignment.items(), module) | modules
    matches = _matches(alignment, modules)
    parts = {name: float(value) for name, value in result.parts.items()}
    count, alpha = len(matches), f"{metric.alpha:g}"
    equation = [
        f"P = {count}/{len(words)} = {parts['precision']:.4f}, R = {count}/{len(others)} = {parts['recall']:.4f}",
        f"F = P R / (α P + (1 − α) R) = {parts['f_mean']:.4f}, α = {alpha}",
        f"penalty = γ (chunks / matches)^β = {metric.gamma:g} · ({parts['chunks']:g}/{count})^{metric.beta:g} = "
        f"{parts['penalty']:.4f}",
        f"METEOR = (1 − penalty) F = (1 − {parts['penalty']:.4f}) · {parts['f_mean']:.4f} = {result.score:.4f}",
    ]
    shown = {"kind": "alignment", "hypothesis": words, "reference": others, "matches": matches}
    return shown | {"equation": equation if count else ["METEOR = 0, since no word matches"]}


def meteor15(metric: Meteor15, result: Result, hypothesis: str, reference: str) -> dict[str, Any]:
    """Explain METEOR 1.5 by its alignment of phrases."""
    words, others = metric.words(hypothesis), metric.words(reference)
    assert metric.modules is not None
    assert metric.parameters is not None
    matches: list[dict[str, Any]] = []
    end = None  # the positions in both texts right after the previous match
    chunk = -1
    for j, reference_length, i, length, module in metric.align(words, others):
        chunk += end != (i, j)
        end = (i + length, j + reference_length)
        places = {"hypothesis": list(range(i, i + length)), "reference": list(range(j, j + reference_length))}
        matches.append(places | {"module": metric.modules[module], "chunk": chunk})
    parts = {name: float(value) for name, value in result.parts.items()}
    alpha, beta, gamma, _ = metric.parameters
    equation = [
        f"P = {parts['precision']:.4f}, R = {parts['recall']:.4f}, with weights of words and modules",
        f"F = 1 / ((1 − α) / P + α / R) = {parts['fmean']:.4f}, α = {alpha:g}",
        f"penalty = γ (chunks / matched words)^β = {parts['frag_penalty']:.4f}, γ = {gamma:g}, β = {beta:g}",
        f"METEOR = (1 − penalty) F = {result.score:.4f}",
    ]
    return {
        "kind": "alignment",
        "hypothesis": words,
        "reference": others,
        "matches": matches,
        "equation": equation if matches else ["METEOR = 0, since no word matches"],
    }


def _matches(alignment: dict[int, int], modules: dict[tuple[int, int], str]) -> list[dict[str, Any]]:
    """Return one-to-one matches in the order of the hypothesis; chunk: the run of adjacent matches they belong to."""
    matches, chunk = [], -1
    for i, j in sorted(alignment.items()):
        chunk += alignment.get(i - 1) != j - 1
        matches.append({"hypothesis": [i], "reference": [j], "module": modules[i, j], "chunk": chunk})
    return matches
