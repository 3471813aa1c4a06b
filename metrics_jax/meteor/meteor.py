"""METEOR as its papers define it (Banerjee and Lavie, 2005; Lavie and Agarwal, 2007)."""

import dataclasses
import functools
from collections.abc import Callable, Container, Mapping, Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.api import AdditiveMetric, References
from metrics_jax.meteor.alignment import Group, count_chunks, extend
from metrics_jax.references import best, flatten, pair
from metrics_jax.surface.stemmers import porter
from metrics_jax.surface.synonyms import WordNet
from metrics_jax.surface.tokenizers import check_tokenizer, tokenize

MODULES = ("exact", "stem", "synonym")


@dataclasses.dataclass(frozen=True)
class Meteor(AdditiveMetric):
    """METEOR, 0 to 1: the harmonic mean of unigram precision and recall, less a penalty for scattered matches.

    F_mean = P R / (alpha P + (1 - alpha) R), penalty = gamma (chunks / matches)^beta, score = (1 - penalty) F_mean. The
    defaults are those of 2005; Lavie and Agarwal tuned alpha 0.81, beta 0.83, gamma 0.28 for English.

    modules: the stages of the alignment in order, of "exact", "stem" (Porter, 1980) and "synonym" (both words are in
    one set of synonyms of `wordnet`, by default the database that `synonyms.WordNet` finds). Each may match words that
    no stage before it has matched, and adds the largest set of one-to-one matches; of several the one with the fewest
    crossings, among themselves and with earlier stages'; and of those, where the papers are silent, the one with the
    fewest chunks. tokenize: see `tokenizers`; "none" splits at white space.

    Of several references the best counts, on ties the shorter. A corpus is scored on its summed counts. No match at
    all, an empty text included, scores 0; identical texts of n words score 1 - gamma / n^beta.
    """

    alpha: float = 0.9
    beta: float = 3.0
    gamma: float = 0.5
    modules: tuple[str, ...] = MODULES
    wordnet: WordNet | None = None
    tokenize: str = "none"
    lowercase: bool = True

    name: ClassVar[str] = "meteor"

    def __post_init__(self) -> None:
        check_parameters(self.alpha, self.beta, self.gamma)
        check_tokenizer(self.tokenize)
        object.__setattr__(self, "modules", tuple(self.modules))
        check_modules(self.modules, MODULES)
        if "synonym" not in self.modules:
            object.__setattr__(self, "wordnet", None)  # it does not change the number, so it is not signed
        elif self.wordnet is None:
            object.__setattr__(self, "wordnet", WordNet())

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """-> float[N, 4]: matches, chunks, hypothesis length, reference length, of the best reference."""
        split = functools.partial(tokenize, tokenizer=self.tokenize, lowercase=self.lowercase)
        return best_counts(hypotheses, references, split, self.align, self.score)[0]

    def align(self, hypothesis: Sequence[str], reference: Sequence[str]) -> dict[int, int]:
        """The words of two texts -> matched positions, hypothesis: reference."""
        alignment: dict[int, int] = {}
        for module in self.modules:
            words = _places(hypothesis, module, alignment)
            others = _places(reference, module, set(alignment.values()))
            if module == "synonym" and self.wordnet is not None:
                groups = _synonym_groups(words, others, self.wordnet)
            else:
                groups = [Group(words[word], others[word]) for word in words if word in others]
            alignment = extend(alignment, groups)
        return alignment

    def score(self, statistics: np.ndarray) -> np.ndarray:
        """Summed statistics float[..., 4] -> METEOR float[...], 0 to 1."""
        return score_counts(statistics, self.alpha, self.beta, self.gamma)

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """Summed statistics float[4] -> precision, recall, f_mean, penalty and the counts."""
        return name_parts(statistics, self.alpha, self.beta, self.gamma)


def _places(words: Sequence[str], module: str, taken: Container[int]) -> dict[str, list[int]]:
    """Word, or its stem for the module of that name, -> its positions that are not taken."""
    stem = porter("ORIGINAL_ALGORITHM") if module == "stem" else None
    places: dict[str, list[int]] = {}
    for position, word in enumerate(words):
        if position not in taken:
            places.setdefault(stem(word) if stem else word, []).append(position)
    return places


def _synonym_groups(words: Mapping[str, list[int]], others: Mapping[str, list[int]], wordnet: WordNet) -> list[Group]:
    """The connected parts of the graph that joins a word and a word of the reference if they share a synset."""
    members: dict[object, list[str]] = {}
    for other in others:
        for synset in wordnet.synsets(other):
            members.setdefault(synset, []).append(other)
    partners = {}
    for word in words:
        partners[word] = {other for synset in wordnet.synsets(word) for other in members.get(synset, ())}
    joined: dict[str, list[str]] = {}
    for word in words:
        for other in partners[word]:
            joined.setdefault(other, []).append(word)
    groups = []
    seen: set[str] = set()
    for word in words:
        if not partners[word] or word in seen:
            continue
        part = [word]
        seen.add(word)
        for one in part:  # grows as it is read
            more = {neighbour for other in partners[one] for neighbour in joined[other]} - seen
            seen |= more
            part += more
        reached = set().union(*(partners[one] for one in part))
        pairs = {i: _positions(others, partners[one]) for one in part for i in words[one]}
        complete = all(partners[one] == reached for one in part)
        groups.append(Group(sorted(pairs), _positions(others, reached), None if complete else pairs))
    return groups


def _positions(places: Mapping[str, list[int]], words: set[str]) -> list[int]:
    return sorted(position for word in words for position in places[word])


def check_parameters(alpha: float, beta: float, gamma: float) -> None:
    """ValueError for numbers that are none of METEOR's."""
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha={alpha}: the weight of recall lies between 0 and 1")
    if not 0 <= beta < np.inf:
        raise ValueError(f"beta={beta}: the exponent of the penalty is finite and at least 0")
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma={gamma}: the largest penalty lies between 0 and 1")


def check_modules(modules: tuple[str, ...], known: tuple[str, ...]) -> None:
    """ValueError for stages that do not exist, none, or one twice."""
    if not modules or len(set(modules)) < len(modules) or not set(modules) <= set(known):
        raise ValueError(f"modules={modules!r}: one or more of {', '.join(known)}, each once")


def best_counts(
    hypotheses: Sequence[str],
    references: References,
    split: Callable[[Sequence[str]], list[list[str]]],
    align: Callable[[Sequence[str], Sequence[str]], Mapping[int, int]],
    score: Callable[[np.ndarray], np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """-> counts float[N, 4] (see `Meteor.statistics`) and scores float[N], with each segment's best reference.

    Of references that score alike the shorter counts, then the one with fewer matches.
    """
    texts, owner = flatten(hypotheses, references)
    rows = []
    for words, others in zip(*pair(split(texts), owner), strict=True):
        alignment = align(words, others)
        rows.append((len(alignment), count_chunks(alignment), len(words), len(others)))
    counts = np.array(rows, np.float64)
    scores = score(counts)
    chosen = best(scores, owner, counts[:, 3], counts[:, 0])
    return counts[chosen], scores[chosen]


def score_counts(counts: np.ndarray, alpha: float, beta: float, gamma: float) -> np.ndarray:
    """Counts float[..., 4] (see `Meteor.statistics`) -> METEOR float[...], 0 to 1; 0 without a match."""
    f_mean, penalty = _f_mean_and_penalty(counts, alpha, beta, gamma)
    return (1 - penalty) * f_mean


def _f_mean_and_penalty(counts: np.ndarray, alpha: float, beta: float, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Counts float[..., 4] -> F_mean and penalty, float[...] each; 0 without a match."""
    matches, chunks, length, reference_length = np.moveaxis(counts, -1, 0)
    matched = matches > 0
    # P R / (alpha P + (1 - alpha) R) with P = m / |h| and R = m / |r|
    f_mean = _divide(matches, alpha * reference_length + (1 - alpha) * length, matched)
    return f_mean, np.where(matched, gamma * _divide(chunks, matches, matched) ** beta, 0.0)


def _divide(numerator: np.ndarray, denominator: np.ndarray, where: np.ndarray) -> np.ndarray:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator, np.float64), where=where)


def name_parts(counts: np.ndarray, alpha: float, beta: float, gamma: float) -> dict[str, float | np.ndarray]:
    """Summed counts float[4] -> what METEOR is made of, by name."""
    matches, chunks, length, reference_length = (float(count) for count in counts)
    f_mean, penalty = _f_mean_and_penalty(counts, alpha, beta, gamma)
    return {
        "precision": matches / max(length, 1),
        "recall": matches / max(reference_length, 1),
        "f_mean": float(f_mean),
        "penalty": float(penalty),
        "matches": matches,
        "chunks": chunks,
        "hypothesis_length": length,
        "reference_length": reference_length,
    }
