"""The scores of checkpoints and their order; imports no JAX, so that the state of a run is read in milliseconds."""

import math
from collections.abc import Mapping
from typing import NamedTuple

METADATA = "_CHECKPOINT_METADATA"  # the file where Orbax stores the custom metadata of a checkpoint


class Score(NamedTuple):
    """The score of a checkpoint, higher is better, and the metric it comes from; None for unknown."""

    value: float | None
    measure: str | None


def best_first(scores: Mapping[int, Score]) -> list[int]:
    """Return the steps that have a score, best first; of equal scores, the earlier step comes first.

    Scores of another metric than that of the newest checkpoint, and NaN, are ignored.
    """
    measure = next((scores[step].measure for step in sorted(scores, reverse=True) if scores[step].measure), None)
    ranked = [
        (-score.value, step)
        for step, score in scores.items()
        if score.value is not None and not math.isnan(score.value) and score.measure in (None, measure)
    ]
    return [step for _, step in sorted(ranked)]
