"""How well a metric agrees with people: a coefficient, at the level of segments, in groups or not, or of systems.

    judged = Judgements(human, systems, items)
    agreement(judged, "acc_eq", "segment", "item").values(scores)

`comparison` makes intervals and tests of what it returns.
"""

from metrics_jax.judging import pairs
from metrics_jax.judging.coefficient import NAMES, Coefficient
from metrics_jax.judging.judgements import Judgements
from metrics_jax.judging.segment_agreement import PairAgreement, VectorAgreement
from metrics_jax.judging.system_agreement import SoftAgreement, SystemAgreement

LEVELS = ("segment", "system")


def agreement(judgements: Judgements, coefficient: str, level: str = "segment", grouping: str = "none") -> Coefficient:
    """The coefficient of a name, one of `coefficient.NAMES`, at a level.

    "segment": texts are compared all with all (grouping "none"), or, "item", those of one item, or, "system", those of
    one system, and the mean over groups is taken; grouping "item" is the summary level of TAC. WMT's variants of
    Kendall's tau and darr always compare texts of one item. "system": the means of systems are compared; "spa"
    (`soft_accuracy`) is of this level only. ValueError for what does not go together.
    """
    if level not in LEVELS or coefficient not in NAMES:
        wrong, known = (level, LEVELS) if level not in LEVELS else (coefficient, NAMES)
        raise ValueError(f"there is no {wrong!r}; there are {', '.join(known)}")
    pair = pairs.COEFFICIENTS.get(coefficient)
    if level == "system":
        if len(judgements.system_names) < 3:
            raise ValueError(f"{len(judgements.system_names)} systems: the level of systems needs three or more")
        if pair is not None and (pair.pooled or pair.calibrated):
            instead = "acc" if pair.calibrated else "kendall"
            raise ValueError(f"{coefficient} compares segments: take {instead} for systems, or level segment")
        return SoftAgreement(judgements) if coefficient == "spa" else SystemAgreement(judgements, coefficient)
    if coefficient == "spa":
        raise ValueError("spa compares systems: take level system")
    if pair is not None:
        return PairAgreement(judgements, pair, "item" if pair.pooled else grouping)
    return VectorAgreement(judgements, coefficient, grouping)
