"""`POST /api/score`: scores of systems against references, with confidence intervals and paired tests."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nmt_jax.errors import UserError
from nmt_jax.reporting.score_table import plain_rows
from nmt_jax.reporting.system_scores import Inference, score_texts
from nmt_jax.schema.key import Key
from nmt_jax.serving.endpoints.endpoint import Endpoint, finite
from nmt_jax.serving.models import Models


class Score(NamedTuple):
    """Scores of systems by metrics; the items are pairs of systems and references."""

    metrics: tuple[str, ...]
    paired: bool


Texts = tuple[dict[str, list[str]], list[str]]


def parse(models: Models, body: Mapping[str, Any]) -> tuple[Score, list[Texts]]:
    """Return the call and the texts of a request for scores. Raises UserError if it is invalid."""
    systems, references = body["systems"], body["references"]
    if not references:
        raise UserError("references: must contain at least one line")
    for name, lines in systems.items():
        if len(lines) != len(references):
            raise UserError(f"systems: {name!r:.80} has {len(lines)} lines, but references has {len(references)}")
    metrics = models.chosen_metrics(body["metrics"])
    return Score(metrics, bool(body["paired"]) and len(systems) > 1), [(systems, references)]


def compute(models: Models, call: Score, items: Sequence[Texts]) -> list[Any]:
    """Return the rows of scores for each item."""
    metrics = {name: models.metrics[name] for name in call.metrics}
    inference = Inference(confidence=True, paired="bootstrap" if call.paired else None)
    tables = []
    for systems, references in items:
        scores = score_texts(systems, {"references": references}, metrics, inference=inference)
        assert scores is not None
        tables.append(finite(plain_rows(scores)))
    return tables


ENDPOINT = Endpoint(
    path="/api/score",
    purpose="Score systems against references, with confidence intervals",
    fields={
        "systems": Key([""], "An object of names of systems and their lists of lines."),
        "references": Key([""], "The reference of each line."),
        "metrics": Key([""], "Metrics, as in /api/models; by default all of them."),
        "paired": Key(False, "Test the difference of every system from the first by paired bootstrap."),
    },
    required=("systems", "references"),
    example={"systems": {"A": ["A man sleeps ."]}, "references": ["A man is asleep ."]},
    parse=parse,
    compute=compute,
    most_lines=20_000,
)
