"""`POST /api/runs` and `POST /api/curves`: the runs of a folder, and their measures while they train."""

from collections.abc import Mapping, Sequence
from typing import Any

from nmt_jax.errors import UserError
from nmt_jax.schema.key import Key
from nmt_jax.serving.endpoints.endpoint import Endpoint, finite
from nmt_jax.serving.models import Models
from nmt_jax.serving.runs import RunFolder

MOST = 50  # runs and measures of a request

Curves = tuple[list[str], list[str], list[str]]


def folder(models: Models) -> RunFolder:
    """Return the folder of runs. Raises UserError if the server has none."""
    if models.runs is None:
        raise UserError("the server shows no runs; start it with --runs=FOLDER")
    return models.runs


def parse_table(models: Models, body: Mapping[str, Any]) -> tuple[str, list[None]]:
    """Return the call. Raises UserError as `folder`."""
    folder(models)
    return "table", [None]


def compute_table(models: Models, call: str, items: Sequence[None]) -> list[Any]:
    """Return the table of all runs, once for all requests."""
    return [finite(folder(models).table())] * len(items)


def parse_curves(models: Models, body: Mapping[str, Any]) -> tuple[str, list[Curves]]:
    """Return the runs, measures and beginnings of a request. Raises UserError if they do not match."""
    folder(models)
    runs, since = body["runs"], body["since"]
    since = [""] * len(runs) if since is None else since
    if len(since) != len(runs):
        raise UserError(f"since: {len(since)} values, but 'runs' has {len(runs)}")
    return "curves", [(runs, body["measures"], since)]


def compute_curves(models: Models, call: str, items: Sequence[Curves]) -> list[Any]:
    """Return the curves of each request. Raises UserError if it names something that is not a run."""
    return [folder(models).curves(*item) for item in items]


TABLE = Endpoint(
    path="/api/runs",
    purpose="The runs below the folder of the server: their state, best value, and what differs between them",
    fields={},
    required=(),
    example={},
    parse=parse_table,
    compute=compute_table,
)
CURVES = Endpoint(
    path="/api/curves",
    purpose="What runs have logged, from some position on",
    fields={
        "runs": Key([""], f"Names of runs, as in /api/runs, at most {MOST}."),
        "measures": Key([""], "Keys of metrics.jsonl, as in /api/runs."),
        "since": Key([""], "For each run, `since` of an earlier answer, to get only what was logged after it."),
    },
    required=("runs", "measures"),
    example={"runs": ["quickstart"], "measures": ["dev/bleu"]},
    parse=parse_curves,
    compute=compute_curves,
    most_lines=MOST,
)
