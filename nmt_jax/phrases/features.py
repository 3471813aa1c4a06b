"""The features of the log-linear model, and their weights.

The score of a translation is the sum of its features times their weights (Och and Ney, 2002).
"""

import numpy as np

OPTION = ("p(f|e)", "lex(f|e)", "p(e|f)", "lex(e|f)", "phrases", "words")
REORDERING = tuple(f"{side}_{name}" for side in ("before", "after") for name in ("monotone", "swap", "discontinuous"))
NAMES = (*OPTION, "language_model", "distortion", *REORDERING)
LANGUAGE_MODEL, DISTORTION, FIRST_REORDERING = len(OPTION), len(OPTION) + 1, len(OPTION) + 2

# Logarithms are natural; distortion counts the words that are skipped, and is negative.
INITIAL = dict(zip(OPTION, (0.2, 0.2, 0.2, 0.2, 0.2, 1.0), strict=True)) | {"language_model": 0.5, "distortion": 0.1}
INITIAL |= dict.fromkeys(REORDERING, 0.1)


def initial_weights() -> np.ndarray:
    """Returns the weights before tuning, float64[F]."""
    return np.array([INITIAL[name] for name in NAMES])
