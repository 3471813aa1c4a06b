"""How well predicted numbers agree with the true ones: Pearson's and Spearman's correlation, as SciPy computes them."""

from collections.abc import Sequence

import numpy as np
import scipy.stats

Numbers = Sequence[float] | np.ndarray


def pearson(hypotheses: Numbers, references: Numbers) -> float:
    """N predicted and N true numbers -> Pearson's r, -1 to 1; 0 where it is undefined: one side is constant.

    ValueError for unequal lengths, fewer than two numbers, or one that is not finite.
    """
    predicted, true = (np.asarray(side, np.float64) for side in (hypotheses, references))
    if predicted.ndim != 1 or predicted.shape != true.shape:
        raise ValueError(f"{len(hypotheses)} hypotheses but {len(references)} references: one each, in the same order")
    if len(true) < 2:
        raise ValueError(f"{len(true)} numbers: a correlation needs two or more")
    if not (np.isfinite(predicted).all() and np.isfinite(true).all()):
        raise ValueError("a number is not finite")
    predicted, true = predicted - predicted.mean(), true - true.mean()
    spread = np.linalg.norm(predicted) * np.linalg.norm(true)
    return float(np.clip(predicted @ true / spread, -1.0, 1.0)) if spread else 0.0


def spearman(hypotheses: Numbers, references: Numbers) -> float:
    """Pearson's r of the ranks, equal numbers sharing the mean of theirs; else as `pearson`."""
    pearson(hypotheses, references)  # its errors
    return pearson(scipy.stats.rankdata(hypotheses), scipy.stats.rankdata(references))
