"""Results of single runs: whether they have finished, and the values of measures."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nmt_jax.sweeps.runs import Run
from nmt_jax.training.record import best_step, has_ended, read_record

Log = Sequence[dict[str, Any]]


def main_measure(runs: Sequence[Run]) -> str:
    """Returns the metric that chooses the best checkpoint, `dev/…`, or `dev` if no run has started."""
    for run in runs:
        if run.workdir.config_file.is_file():
            return f"dev/{run.workdir.config().train.early_stopping_metric}"
    return "dev"


def has_finished(run: Run) -> bool:
    """Returns whether a run has reached the end set by its config."""
    return run.workdir.config_file.is_file() and has_ended(run.workdir.config(), read_record(run.workdir))


def read_log(run: Run) -> Log:
    """Returns the rows of a run's `metrics.jsonl`, none if it has not started."""
    return run.workdir.metrics() if run.workdir.metrics_file.is_file() else []


def measured(run: Run, log: Log, measure: str) -> float | None:
    """Returns the value of a measure in one run, or None if it has none yet."""
    if measure == "steps":
        return float(max((row["step"] for row in log), default=0))
    if measure == "minutes":
        return max((row.get("seconds") or 0.0 for row in log), default=0.0) / 60 if log else None
    if measure == "parameters":
        record = read_record(run.workdir)
        return float(record.parameters) if record else None
    if measure.endswith("_per_second"):
        speeds = [row[measure] for row in log if row.get(measure)]
        return float(np.median(speeds)) if speeds else None
    best = best_step(log, main_measure([run]))
    return next((row[measure] for row in reversed(log) if row["step"] <= best and row.get(measure) is not None), None)
