"""`POST /api/explain`: what metrics matched in a hypothesis and a reference."""

from collections.abc import Mapping, Sequence
from typing import Any

from nmt_jax.errors import UserError
from nmt_jax.reporting.explanations.explain import explain
from nmt_jax.schema.key import Key
from nmt_jax.serving.endpoints.endpoint import Endpoint, finite
from nmt_jax.serving.models import Models

MOST = 2000  # characters of a text

Metrics = tuple[str, ...]


def parse(models: Models, body: Mapping[str, Any]) -> tuple[Metrics, list[tuple[str, str]]]:
    """Return the names of the metrics and the pair of texts. Raises UserError if a text is too long."""
    for name in ("hypothesis", "reference"):
        if len(body[name]) > MOST:
            raise UserError(f"{name}: {len(body[name]):,} characters; at most {MOST:,} can be explained")
    return models.chosen_metrics(body["metrics"]), [(body["hypothesis"], body["reference"])]


def compute(models: Models, metrics: Metrics, pairs: Sequence[tuple[str, str]]) -> list[Any]:
    """Return the explanations of all metrics for each pair."""
    return [[{"metric": name} | finite(explain(models.metrics[name], *pair)) for name in metrics] for pair in pairs]


ENDPOINT = Endpoint(
    path="/api/explain",
    purpose="What metrics matched in a hypothesis and a reference, and how their scores follow from it",
    fields={
        "hypothesis": Key("", "A text."),
        "reference": Key("", "What it is compared with."),
        "metrics": Key([""], "Metrics, as in /api/models; by default all of them."),
    },
    required=("hypothesis", "reference"),
    example={"hypothesis": "A man sleeps .", "reference": "A man is asleep .", "metrics": ["bleu"]},
    parse=parse,
    compute=compute,
)
