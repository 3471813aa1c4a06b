"""The state of a run, read from its workdir in milliseconds: this module does not import JAX."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from metrics_jax.registry import REGISTRY, metric_class
from nmt_jax.checkpoints.ranking import METADATA, Score, best_first
from nmt_jax.storage.files import is_complete
from nmt_jax.workdir import Workdir

LOWER_IS_BETTER = ("loss", "perplexity", "median_rank")  # and names that end in these


class Record(NamedTuple):
    """The state of a run at its newest checkpoint.

    stale: evaluations since the best one. seconds: training time over all restarts. parameters: their number. measure:
    the dev metric that decides which one is best; "" in checkpoints of older versions.
    """

    step: int
    stale: int
    seconds: float
    parameters: int
    measure: str = ""


def read_record(workdir: Workdir) -> Record | None:
    """Return the record of the newest complete checkpoint; None if there is none."""
    if (tuned := workdir.phrases / "weights.json").is_file():
        return _tuned_record(tuned)
    for step, metadata in _metadata(workdir):
        try:
            meta, shapes = metadata["meta"], metadata["shapes"]
            parameters = sum(math.prod(shape) for name, shape in shapes.items() if name.startswith("params/"))
            return Record(step, meta["stale"], meta["seconds"], parameters, meta.get("measure", ""))
        except (ValueError, LookupError, TypeError, AttributeError):  # the run reports it
            continue
    return None


def dev_metrics(workdir: Workdir, which: str | int = "best") -> dict[str, float]:
    """Return the last dev metrics that were measured when a checkpoint was saved; none if there were none.

    which: "best", or "last" and any number for those of the newest checkpoint.
    """
    found: dict[int, tuple[Score, dict[str, float]]] = {}  # the newest first
    for step, metadata in _metadata(workdir):
        try:
            meta = metadata["meta"]
            found[step] = Score(metadata["score"], meta.get("measure") or None), dict(meta["metrics"])
        except (ValueError, LookupError, TypeError, AttributeError):
            continue
    best = best_first({step: score for step, (score, _) in found.items()}) if which == "best" else []
    return next((found[step][1] for step in (*best, *found)), {})


def _metadata(workdir: Workdir) -> Iterator[tuple[int, Any]]:
    """Yield the steps of complete checkpoints and what is saved beside their arrays, the newest first."""
    if not workdir.started:
        return
    steps = [int(path.name) for path in workdir.checkpoints.iterdir() if path.name.isdigit() and is_complete(path)]
    for step in sorted(steps, reverse=True):
        try:
            text = (workdir.checkpoints / str(step) / METADATA).read_text(encoding="utf-8")
            metadata = json.loads(text)["custom_metadata"]
        except (OSError, ValueError, LookupError, TypeError, RecursionError):  # the run reports it
            continue
        yield step, metadata


def _tuned_record(path: Path) -> Record | None:
    """Return the record of a phrase-based model: rounds of tuning, and the phrase pairs as its parameters."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return Record(int(found["rounds"]), int(found["stale"]), float(found["seconds"]), int(found["phrases"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None


def has_ended(config: ConfigDict, record: Record | None) -> bool:
    """Whether a run with this config would stop at its newest checkpoint."""
    if record is None:
        return False
    train = config.train
    out_of_time = bool(train.minutes) and record.seconds >= train.minutes * 60
    same_measure = record.measure in ("", f"dev/{train.early_stopping_metric}")
    return record.step >= train.steps or out_of_time or (same_measure and 0 < train.patience <= record.stale)


def higher_is_better(measure: str) -> bool:
    """Whether higher values of a measure are better; False for losses, perplexities, ranks and error rates."""
    name = measure.rpartition("/")[2]
    if name.endswith(LOWER_IS_BETTER):
        return False
    return name not in REGISTRY or bool(metric_class(name).higher_is_better)


def best_step(rows: Sequence[Mapping[str, Any]], measure: str) -> float:
    """Return the first step of a log with the best value of `measure`; infinity if it was never measured."""
    measured = [(row[measure], row["step"]) for row in rows if row.get(measure) is not None]
    sign = -1 if higher_is_better(measure) else 1
    return min(measured, key=lambda pair: (sign * pair[0], pair[1]))[1] if measured else math.inf
