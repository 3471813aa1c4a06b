"""Metrics of vectors: the similarities of BERTScore and YiSi-1, the transport plans of MoverScore and WMD."""

from typing import Any

from metrics_jax.api import AdditiveMetric, Result
from metrics_jax.embedding.bertscore import BERTScore
from metrics_jax.embedding.yisi import YiSi1
from nmt_jax.errors import UserError
from nmt_jax.reporting.plots.compared import plan, similarities


def bertscore(metric: BERTScore, result: Result, hypothesis: str, reference: str) -> dict[str, Any]:
    """Explain BERTScore by similarities and greedy matches."""
    score = f"F = 2 P R / (P + R) = {result.score:.4f}"
    if metric.baseline is not None:
        score = f"F = {result.score:.4f}; P, R and F are rescaled by the baseline"
    return _similarity(metric, result, hypothesis, reference, score)


def yisi1(metric: YiSi1, result: Result, hypothesis: str, reference: str) -> dict[str, Any]:
    """Explain YiSi-1 likewise."""
    score = f"YiSi-1 = P R / (α P + (1 − α) R) = {result.score:.4f}, α = {metric.alpha:g}"
    return _similarity(metric, result, hypothesis, reference, score)


def _similarity(metric: AdditiveMetric, result: Result, hypothesis: str, reference: str, score: str) -> dict[str, Any]:
    found = similarities(metric, hypothesis, reference)
    if not found.matrix.size:
        raise UserError("a text has no token that is compared")
    precision, recall = float(result.parts["precision"]), float(result.parts["recall"])
    return {
        "kind": "similarity",
        "hypothesis": found.hypothesis,
        "reference": found.reference,
        "weights": [side.tolist() for side in found.weights],
        "matrix": found.matrix.round(6).tolist(),
        "equation": [
            f"P = weighted mean of the largest similarity in each row = {precision:.4f}",
            f"R = weighted mean of the largest similarity in each column = {recall:.4f}",
            score,
        ],
    }


def transport(metric: AdditiveMetric, result: Result, hypothesis: str, reference: str) -> dict[str, Any]:
    """Explain MoverScore or WMD by the transport plan."""
    found = plan(metric, hypothesis, reference)
    name = type(metric).__name__
    score = f"{name} = {found.formula.format('cost')} = " if found.formula else f"{name} = cost = "
    return {
        "kind": "transport",
        "hypothesis": found.hypothesis,
        "reference": found.reference,
        "weights": [side.tolist() for side in found.weights],
        "moved": found.moved.round(6).tolist(),
        "cost": found.cost.round(6).tolist(),
        "equation": [f"cost = Σ mass · distance = {found.distance:.4f}", f"{score}{result.score:.4f}"],
    }
