"""Agreement of a metric with human judgements: a coefficient at the level of segments (grouped or not) or of systems.

    judged = Judgements(human, systems, items)
    agreement(judged, "acc_eq", "segment", "item").values(scores)

`comparison` computes confidence intervals and tests of the coefficients.
"""

from metrics_jax.judging import pairs
from metrics_jax.judging.coefficient import NAMES, Coefficient
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
