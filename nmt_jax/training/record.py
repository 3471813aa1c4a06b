"""How far a run has come, read from its workdir in milliseconds: nothing here imports JAX."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from nmt_jax.workdir import Workdir

LOWER_IS_BETTER = ("loss", "perplexity")  # and what ends so, such as mlm_loss


class Record(NamedTuple):
    """What the newest checkpoint says of its run.

    stale: evaluations since the best one. seconds: of training, over all restarts. parameters: how many numbers.
    """

    step: int
    stale: int
    seconds: float
    parameters: int


def read_record(workdir: Workdir) -> Record | None:
    """The record of the newest checkpoint that is whole; None where there is none."""
    if not workdir.started:
        return None
    for step in sorted((int(path.name) for path in workdir.checkpoints.iterdir() if path.name.isdigit()), reverse=True):
        try:
            # Where Orbax writes what `Checkpoints.save` gives it as custom metadata.
            text = (workdir.checkpoints / str(step) / "_CHECKPOINT_METADATA").read_text(encoding="utf-8")
            own = json.loads(text)["custom_metadata"]
            shapes = [shape for name, shape in own["shapes"].items() if name.startswith("params/")]
            return Record(step, own["meta"]["stale"], own["meta"]["seconds"], sum(map(math.prod, shapes)))
        except (OSError, ValueError, KeyError, TypeError):  # damaged: the run itself will say so
            continue
    return None


def has_ended(config: ConfigDict, record: Record | None) -> bool:
    """Whether a run with this config would stop where its newest checkpoint is."""
    if record is None:
        return False
    train = config.train
    late = bool(train.minutes) and record.seconds >= train.minutes * 60
    return record.step >= train.steps or late or 0 < train.patience <= record.stale


def higher_is_better(measure: str) -> bool:
    """False for losses and perplexities."""
    return not measure.endswith(LOWER_IS_BETTER)


def best_step(rows: Sequence[Mapping[str, Any]], measure: str) -> float:
    """The step of a log at which `measure` was best, the first of equals; infinity where it was never measured."""
    measured = [(row[measure], row["step"]) for row in rows if row.get(measure) is not None]
    sign = -1 if higher_is_better(measure) else 1
    return min(measured, key=lambda pair: (sign * pair[0], pair[1]))[1] if measured else math.inf
