"""Question answering: exact match and word F1 of answers, as in the evaluation script of SQuAD 1.1.

Source: Rajpurkar et al. (2016), section 6.1. Values equal those of the script.
"""

import collections
import re
import string
from collections.abc import Callable, Sequence

import numpy as np

from metrics_jax.api import check_lengths

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(answer: str) -> str:
    """Lower-case the answer, remove ASCII punctuation and the words a, an, the, and collapse white space."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Fraction, 0 to 1, of N answers that equal one of their reference answers after normalisation.

    Raises ValueError for unequal lengths, no answers, or a question without a reference; TypeError for a string.
    """
    return _mean_best(hypotheses, references, lambda one, other: normalize_answer(one) == normalize_answer(other))


def word_f1(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Mean F1, 0 to 1, of the words that N answers share with the closest of their reference answers.

    A repeated word counts as often as it occurs in both. Raises errors as `exact_match`.
    """
    return _mean_best(hypotheses, references, _f1)


def _f1(answer: str, reference: str) -> float:
    words, reference_words = normalize_answer(answer).split(), normalize_answer(reference).split()
    shared = (collections.Counter(words) & collections.Counter(reference_words)).total()
    return 2 * shared / (len(words) + len(reference_words)) if shared else 0.0


def _mean_best(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], score: Callable[[str, str], float]
) -> float:
    if any(isinstance(side, str) for side in (hypotheses, references, *references)):
        raise TypeError("hypotheses must be a sequence of strings, and references a sequence of sequences of strings")
    check_lengths(hypotheses, references)
    if not len(hypotheses) or not all(references):
        raise ValueError("nothing to compare: there are no answers, or a question has no reference answer")
    best = [max(score(answer, one) for one in group) for answer, group in zip(hypotheses, references, strict=True)]
    return float(np.mean(best))
