"""Agreement of a metric with human judgements: a coefficient at the level of segments (grouped or not) or of systems.

    judged = Judgements(human, systems, items)
    agreement(judged, "acc_eq", "segment", "item").values(scores)

`comparison` computes confidence intervals and tests of the coefficients.
"""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.random import Generator

from metrics_jax.judging import pairs
from metrics_jax.judging.coefficient import NAMES, Advance, Coefficient, Swaps, no_progress
from metrics_jax.judging.judgements import Judgements
from metrics_jax.judging.segment_agreement import PairAgreement, VectorAgreement
from metrics_jax.judging.system_agreement import SoftAgreement, SystemAgreement

LEVELS = ("segment", "system")


def agreement(judgements: Judgements, coefficient: str, level: str = "segment", grouping: str = "none") -> Coefficient:
    """Make the coefficient of the given name, one of `coefficient.NAMES`, at a level.

    level="segment": texts are compared with one another: all texts (grouping "none"), texts of the same item ("item"),
    or texts of the same system ("system"), with the mean over groups; grouping "item" is the summary level of TAC.
    WMT's variants of Kendall's tau and darr always compare texts of the same item. level="system": means of systems are
    compared; "spa" (see `soft_accuracy`) exists only at this level. Raises ValueError for unknown names and for
    combinations that do not exist.
    """
    if level not in LEVELS or coefficient not in NAMES:
        wrong, known = (level, LEVELS) if level not in LEVELS else (coefficient, NAMES)
        raise ValueError(f"there is no {wrong!r}; choose one of {', '.join(known)}")
    pair = pairs.COEFFICIENTS.get(coefficient)
    if level == "system":
        if len(judgements.system_names) < 3:
            raise ValueError(f"{len(judgements.system_names)} systems: level system needs three or more")
        if pair is not None and (pair.pooled or pair.calibrated):
            instead = "acc" if pair.calibrated else "kendall"
            raise ValueError(f"{coefficient} compares segments: use {instead} for systems, or level segment")
        return SoftAgreement(judgements) if coefficient == "spa" else SystemAgreement(judgements, coefficient)
    if coefficient == "spa":
        raise ValueError("spa compares systems: use level system")
    if pair is not None:
        return PairAgreement(judgements, pair, "item" if pair.pooled else grouping)
    return VectorAgreement(judgements, coefficient, grouping)


class MeanAgreement(Coefficient):
    """The mean of the coefficients of several sets; sets where the coefficient is undefined are left out.

    Scores float[M, N] are those of the texts of the first set, then of the second, and so on. Bootstrap samples and
    swaps are drawn within each set.
    """

    def __init__(self, parts: Sequence[Coefficient], sizes: Sequence[int]) -> None:
        """Take one coefficient per set, and the number of texts in each set."""
        self._parts, self._ends = list(parts), np.cumsum(sizes)
        self.of_systems = any(part.of_systems for part in parts)

    def values(self, scores: np.ndarray) -> np.ndarray:
        return self._mean(scores, lambda part, scores: part.values(scores))

    def resampled(self, scores: np.ndarray, draws: int, generator: Generator) -> np.ndarray:
        return self._mean(scores, lambda part, scores: part.resampled(scores, draws, generator))

    def swapped(self, scores: np.ndarray, trials: int, generator: Generator, advance: Advance = no_progress) -> Swaps:
        def differences(part: Coefficient, scores: np.ndarray) -> np.ndarray:
            """Differences float[pairs of metrics, T]."""
            blocks: dict[tuple[int, int], list[np.ndarray]] = {pair: [] for pair in metric_pairs}
            for a, b, some in part.swapped(scores, trials, generator, lambda done: advance(done / len(self._parts))):
                blocks[a, b].append(some)
            return np.array([np.concatenate(block) for block in blocks.values()])

        if metric_pairs := list(itertools.combinations(range(len(scores)), 2)):
            yield from ((*pair, row) for pair, row in zip(metric_pairs, self._mean(scores, differences), strict=True))

    def _mean(self, scores: np.ndarray, function: Callable[[Coefficient, np.ndarray], np.ndarray]) -> np.ndarray:
        """Mean of a function of each set and its scores."""
        by_set = np.split(scores, self._ends[:-1], axis=1)
        return pairs.nan_mean(np.stack([function(*pair) for pair in zip(self._parts, by_set, strict=True)], axis=-1))
