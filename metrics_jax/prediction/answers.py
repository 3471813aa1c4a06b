"""Question answering: exact match and word F1 of answers, as in the evaluation scripts of SQuAD 1.1 and 2.0.

Source: Rajpurkar et al. (2016), section 6.1, and Rajpurkar et al. (2018), section 5. Values equal those of the scripts.
The reference answer of a question that has none is "", and only an answer without words is right. The scripts differ
for other reference answers without words, such as "the": they count here as in 1.1, with F1 0 for any answer; that of
2.0 drops them, and a question with no others has no answer.
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
    return float(np.mean(_best(hypotheses, references, _equal)))


def word_f1(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Mean F1, 0 to 1, of the words that N answers share with the closest of their reference answers.

    A repeated word counts as often as it occurs in both. Raises errors as `exact_match`.
    """
    return float(np.mean(_best(hypotheses, references, _f1)))


def best_threshold(
    scores: Sequence[float], hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> tuple[float, float]:
    """The threshold of the scores up to which no answer is given, with the best mean F1, and this F1, 0 to 1.

    It is the `best_f1` of the evaluation script of SQuAD 2.0; Devlin et al. (2019), section 4.3, call the threshold τ.
    It lies in the middle between two scores; of equally good ones, the lowest is chosen.

    scores: of N answers, higher where an answer is more probable. Raises errors as `exact_match`, and ValueError if
    there are not N finite scores.
    """
    if len(scores) != len(hypotheses):
        raise ValueError(f"{len(scores)} scores but {len(hypotheses)} answers: there must be one for each answer")
    if not np.isfinite(scores).all():
        raise ValueError("the scores contain NaN or infinity")
    given, withheld = _best(hypotheses, references, _f1), _best([""] * len(hypotheses), references, _f1)
    order = np.argsort(scores, kind="stable")
    ordered = np.asarray(scores, float)[order]
    # If the n lowest scores give no answer, n of the withheld and all but n of the given ones count.
    f1 = np.concatenate([[0.0], np.cumsum((withheld - given)[order])]) / len(ordered) + given.mean()
    middles = (ordered[1:] + ordered[:-1]) / 2
    thresholds = np.concatenate([[ordered[0] - 1], middles, [ordered[-1]]])
    possible = np.concatenate([[True], ordered[1:] > ordered[:-1], [True]])  # equal scores are treated alike
    best = int(np.argmax(np.where(possible, np.round(f1, 12), -np.inf)))
    return float(thresholds[best]), float(f1[best])


def _equal(answer: str, reference: str) -> float:
    return float(normalize_answer(answer) == normalize_answer(reference))


def _f1(answer: str, reference: str) -> float:
    if not reference:
        return float(not normalize_answer(answer))
    words, reference_words = normalize_answer(answer).split(), normalize_answer(reference).split()
    shared = (collections.Counter(words) & collections.Counter(reference_words)).total()
    return 2 * shared / (len(words) + len(reference_words)) if shared else 0.0


def _best(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], score: Callable[[str, str], float]
) -> np.ndarray:
    """The score of each answer with the closest reference, float[N]."""
    if any(isinstance(side, str) for side in (hypotheses, references, *references)):
        raise TypeError("hypotheses must be a sequence of strings, and references a sequence of sequences of strings")
    check_lengths(hypotheses, references)
    if not len(hypotheses) or not all(references):
        raise ValueError("nothing to compare: there are no answers, or a question has no reference answer")
    pairs = zip(hypotheses, references, strict=True)
    return np.array([max(score(answer, one) for one in group) for answer, group in pairs])
