"""How well answers agree with the given ones: exact match and F1 of words, as SQuAD's evaluation computes them.

Rajpurkar et al. (2016), section 6.1. Values equal those of the evaluation script of SQuAD 1.1.
"""

import collections
import re
import string
from collections.abc import Callable, Sequence

import numpy as np

from metrics_jax.api import check_lengths

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalized(answer: str) -> str:
    """In small letters, without ASCII punctuation, without the words a, an, the, one blank between words."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """N answers and the given ones of each -> the share that equals one of them once normalised, 0 to 1.

    ValueError for unequal lengths, none at all, or a question without a given answer; TypeError for a string where a
    sequence is wanted.
    """
    return _mean_best(hypotheses, references, lambda one, other: float(normalized(one) == normalized(other)))


def word_f1(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """N answers and the given ones of each -> the mean F1 of the words they share with the nearest one, 0 to 1.

    Words count as often as they occur. Errors as `exact_match`.
    """
    return _mean_best(hypotheses, references, _f1)


def _f1(answer: str, given: str) -> float:
    words, wanted = normalized(answer).split(), normalized(given).split()
    shared = (collections.Counter(words) & collections.Counter(wanted)).total()
    return 2 * shared / (len(words) + len(wanted)) if shared else 0.0


def _mean_best(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], score: Callable[[str, str], float]
) -> float:
    if (
        isinstance(hypotheses, str)
        or isinstance(references, str)
        or any(isinstance(given, str) for given in references)
    ):
        raise TypeError("hypotheses must be a sequence of strings, references a sequence of sequences of strings")
    check_lengths(hypotheses, references)
    if not len(hypotheses) or not all(references):
        raise ValueError("no answers: nothing to compare")
    best = [max(score(answer, one) for one in given) for answer, given in zip(hypotheses, references, strict=True)]
    return float(np.mean(best))
