"""METEOR as in its papers (Banerjee and Lavie, 2005; Lavie and Agarwal, 2007), and as computed by nltk."""

import dataclasses
from collections.abc import Container, Mapping, Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.api import AdditiveMetric, References, best, flatten, pair
from metrics_jax.meteor.alignment import Group, count_chunks, extend
from metrics_jax.surface.stemmers import porter
from metrics_jax.surface.tokenizers import check_tokenizer, tokenize
from metrics_jax.surface.wordnet import WordNet

MODULES = ("exact", "stem", "synonym")


@dataclasses.dataclass(frozen=True)
class MeteorFormula(AdditiveMetric):
    """Base class of metrics with the formula of `Meteor`; the last four statistics are its counts.

    Counts float[..., 4] are matches, chunks, hypothesis length and reference length.
    """

    alpha: float = 0.9
    beta: float = 3.0
    gamma: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha={self.alpha}: the weight of recall must be between 0 and 1")
        if not 0 <= self.beta < np.inf:
            raise ValueError(f"beta={self.beta}: the exponent of the penalty must be finite and at least 0")
        if not 0 <= self.gamma <= 1:
            raise ValueError(f"gamma={self.gamma}: the maximum penalty must be between 0 and 1")

    def words(self, texts: Sequence[str]) -> list[list[str]]:
        """The words of each text."""
        raise NotImplementedError

    def stages(self, hypothesis: Sequence[str], reference: Sequence[str]) -> dict[str, dict[int, int]]:
        """The matched positions of two texts' words, hypothesis: reference, after each module."""
        raise NotImplementedError

    def align(self, hypothesis: Sequence[str], reference: Sequence[str]) -> dict[int, int]:
        """Align the words of two texts. Returns matched positions, hypothesis: reference."""
        return list(self.stages(hypothesis, reference).values())[-1]

    def best_counts(self, hypotheses: Sequence[str], references: References) -> tuple[np.ndarray, np.ndarray]:
        """Counts float[N, 4] and scores float[N] with each segment's best reference.

        Among references with equal scores, the shorter is used, then the one with fewer matches.
        """
        texts, owner = flatten(hypotheses, references)
        rows = []
        for words, others in zip(*pair(self.words(texts), owner), strict=True):
            alignment = self.align(words, others)
            rows.append((len(alignment), count_chunks(alignment), len(words), len(others)))
        counts = np.array(rows, np.float64)
        scores = MeteorFormula.score(self, counts)
        chosen = best(scores, owner, counts[:, 3], counts[:, 0])
        return counts[chosen], scores[chosen]

    def score(self, statistics: np.ndarray) -> np.ndarray:
        f_mean, penalty = self._f_mean_and_penalty(statistics)
        return (1 - penalty) * f_mean

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """Precision, recall, f_mean and penalty of the summed counts, and the counts."""
        f_mean, penalty = self._f_mean_and_penalty(statistics)
        matches, chunks, length, reference_length = statistics[-4:].tolist()
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

    def _f_mean_and_penalty(self, statistics: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """F_mean and penalty, float[...] each; 0 without a match."""
        matches, chunks, length, reference_length = np.moveaxis(statistics[..., -4:], -1, 0)
        # P R / (alpha P + (1 - alpha) R) with P = m / |h| and R = m / |r|
        f_mean = _divide(matches, self.alpha * reference_length + (1 - self.alpha) * length, matches > 0)
        penalty = self.gamma * _divide(chunks, matches, matches > 0) ** self.beta
        return f_mean, np.where(matches > 0, penalty, 0.0)


@dataclasses.dataclass(frozen=True)
class Meteor(MeteorFormula):
    """METEOR, 0 to 1: a weighted harmonic mean of unigram precision and recall, with a penalty for scattered matches.

    F_mean = P R / (alpha P + (1 - alpha) R), penalty = gamma (chunks / matches)^beta, score = (1 - penalty) F_mean. The
    defaults are those of 2005; Lavie and Agarwal tuned alpha 0.81, beta 0.83, gamma 0.28 for English.

    modules: the stages of the alignment in order: "exact", "stem" (Porter, 1980) and "synonym" (both words are in one
    synset of `wordnet`, by default the database that `wordnet.WordNet` finds). Each stage matches words that earlier
    stages left unmatched, and adds the largest set of one-to-one matches; among several, the one with the fewest
    crossings, including those with matches of earlier stages; among these, where the papers do not define a choice, the
    one with the fewest chunks. tokenize: as for `BLEU`; "none" splits at white space.

    Of several references, the best is used, on ties the shorter. A corpus is scored on its summed counts. A text
    without matches scores 0; identical texts of n words score 1 - gamma / n^beta.
    """

    modules: tuple[str, ...] = MODULES
    wordnet: WordNet | None = None
    tokenize: str = "none"
    lowercase: bool = True

    name: ClassVar[str] = "meteor"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_tokenizer(self.tokenize)
        object.__setattr__(self, "modules", tuple(self.modules))
        check_modules(self.modules, MODULES)
        if "synonym" not in self.modules:
            object.__setattr__(self, "wordnet", None)  # it does not affect the score
        elif self.wordnet is None:
            object.__setattr__(self, "wordnet", WordNet())

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Statistics float[N, 4] for the best reference: matches, chunks, hypothesis length, reference length."""
        return self.best_counts(hypotheses, references)[0]

    def words(self, texts: Sequence[str]) -> list[list[str]]:
        return tokenize(texts, self.tokenize, self.lowercase)

    def stages(self, hypothesis: Sequence[str], reference: Sequence[str]) -> dict[str, dict[int, int]]:
        stages: dict[str, dict[int, int]] = {}
        alignment: dict[int, int] = {}
        for module in self.modules:
            words = _index_words(hypothesis, module, alignment)
            others = _index_words(reference, module, set(alignment.values()))
            if module == "synonym" and self.wordnet is not None:
                groups = _synonym_groups(words, others, self.wordnet)
            else:
                groups = [Group(words[word], others[word]) for word in words if word in others]
            stages[module] = alignment = extend(alignment, groups)
        return stages


@dataclasses.dataclass(frozen=True)
class MeteorNLTK(MeteorFormula):
    """METEOR as `nltk.translate.meteor_score` (3.10.4) computes it; use it only for comparison with published scores.

    Deviations of nltk from the papers: going from its last word to its first, each hypothesis word is matched with the
    last free reference word that fits, so that crossings and chunks are not minimised. Words left unmatched by stem
    remain stems, and are looked up in WordNet as such (`bicycl` never matches `bike`). Synonyms are compared with the
    reference word as it is, not with its base form, in the database's spelling (lower-cased `America` has no match).

    tokenize: as for `BLEU`; "none", also called "whitespace", splits at white space. Tokens are lower-cased after
    splitting. wordnet: by default the database that `wordnet.WordNet` finds; nltk uses WordNet 3.0. Of several
    references, the best is used. The corpus score is the mean over segments. A text without matches scores 0.
    """

    tokenize: str = "none"
    wordnet: WordNet | None = None

    name: ClassVar[str] = "meteor_nltk"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tokenize == "whitespace":
            object.__setattr__(self, "tokenize", "none")
        check_tokenizer(self.tokenize)
        if self.wordnet is None:
            object.__setattr__(self, "wordnet", WordNet())

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Statistics float[N, 6] for the best reference: score, 1, matches, chunks, lengths of both texts."""
        counts, scores = self.best_counts(hypotheses, references)
        return np.column_stack([scores, np.ones(len(scores)), counts])

    def score(self, statistics: np.ndarray) -> np.ndarray:
        """Summed statistics float[..., 6] -> mean score float[...], 0 to 1."""
        return statistics[..., 0] / np.maximum(statistics[..., 1], 1)

    def words(self, texts: Sequence[str]) -> list[list[str]]:
        return [[token.lower() for token in tokens] for tokens in tokenize(texts, self.tokenize)]

    def stages(self, hypothesis: Sequence[str], reference: Sequence[str]) -> dict[str, dict[int, int]]:
        assert self.wordnet is not None
        stages: dict[str, dict[int, int]] = {}
        alignment: dict[int, int] = {}
        words, reference_words = list(enumerate(hypothesis)), list(enumerate(reference))
        for module in MODULES:
            if module == "stem":
                stem = porter("NLTK_EXTENSIONS")
                words = [(i, stem(word)) for i, word in words]
                reference_words = [(j, stem(word)) for j, word in reference_words]
            positions: dict[str, list[int]] = {}
            for j, word in reference_words:
                positions.setdefault(word, []).append(j)
            for i, word in reversed(words):
                fitting = positions.keys() & (self.wordnet.synonyms(word) if module == "synonym" else {word})
                if fitting:
                    last = max(fitting, key=lambda other: positions[other][-1])
                    alignment[i] = positions[last].pop()
                    if not positions[last]:
                        del positions[last]
            stages[module] = dict(alignment)
            taken = set(alignment.values())
            words = [(i, word) for i, word in words if i not in alignment]
            reference_words = [(j, word) for j, word in reference_words if j not in taken]
        return stages


def _index_words(words: Sequence[str], module: str, taken: Container[int]) -> dict[str, list[int]]:
    """Map each word (or its stem, for that module) to its positions that are not taken."""
    stem = porter("ORIGINAL_ALGORITHM") if module == "stem" else None
    index: dict[str, list[int]] = {}
    for position, word in enumerate(words):
        if position not in taken:
            index.setdefault(stem(word) if stem else word, []).append(position)
    return index


def _synonym_groups(words: Mapping[str, list[int]], others: Mapping[str, list[int]], wordnet: WordNet) -> list[Group]:
    """The connected components of the graph that joins a word and a reference word if they share a synset."""
    members: dict[object, list[str]] = {}
    for other in others:
        for synset in wordnet.synsets(other):
            members.setdefault(synset, []).append(other)
    partners = {
        word: {other for synset in wordnet.synsets(word) for other in members.get(synset, ())} for word in words
    }
    joined: dict[str, list[str]] = {}
    for word in words:
        for other in partners[word]:
            joined.setdefault(other, []).append(word)
    groups = []
    seen: set[str] = set()
    for word in words:
        if not partners[word] or word in seen:
            continue
        component = [word]
        seen.add(word)
        for member in component:  # grows while it is read
            more = {neighbour for other in partners[member] for neighbour in joined[other]} - seen
            seen |= more
            component += more
        reached = set().union(*(partners[member] for member in component))
        pairs = {i: _positions(others, partners[member]) for member in component for i in words[member]}
        complete = all(partners[member] == reached for member in component)
        groups.append(Group(sorted(pairs), _positions(others, reached), None if complete else pairs))
    return groups


def _positions(index: Mapping[str, list[int]], words: set[str]) -> list[int]:
    return sorted(position for word in words for position in index[word])


def check_modules(modules: tuple[str, ...], known: tuple[str, ...]) -> None:
    """Raise ValueError for unknown or repeated modules, or none."""
    if not modules or len(set(modules)) < len(modules) or not set(modules) <= set(known):
        raise ValueError(f"modules={modules!r}: choose one or more of {', '.join(known)}, each at most once")


def _divide(numerator: np.ndarray, denominator: np.ndarray, where: np.ndarray) -> np.ndarray:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator, np.float64), where=where)
