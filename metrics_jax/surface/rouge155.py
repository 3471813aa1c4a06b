"""ROUGE (Lin, 2004) as the Perl script ROUGE-1.5.5 computes it, without its rounding to five decimals."""

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.api import References, best, flatten, pair, starts
from metrics_jax.surface import lcs, stop_words
from metrics_jax.surface.ngrams import Tokens, encode_words
from metrics_jax.surface.rouge import MeanF, ascii_words, count_ngrams, count_subsequences, split_sentences, stem_words
from metrics_jax.surface.stemmers import rouge_stem

VARIANTS = (*"123456789", "L", "W", "S", "SU")
_BLOCK = 2**22  # skip bigrams counted at a time


@dataclasses.dataclass(frozen=True)
class Rouge155(MeanF):
    """F-score of what a text shares with its references, 0 to 1; the score of a corpus is the mean over segments.

    variant (the script's flag in brackets): "1" to "9" for n-grams (-n); "L" for the union of the longest common
    subsequences of sentences, one per line; "W" (-w), the same with a run of k consecutive words counting k^w; "S" (-2)
    for pairs of words at most `skip_distance` words apart (any distance if negative); "SU" (-u) for these and all
    single words but the last. alpha (-p): F = PR / ((1 - alpha) P + alpha R). formula (-f): of several references, "A"
    sums the counts, "B" takes the one with the best recall. stem (-m): stem words of more than three characters with
    `stemmers.rouge_stem`; needs WordNet. remove_stopwords (-s): leave out stop words.

    weighting, of "W": in the "script" recall is weighted twice, so that a perfect text of n words has recall n^(1 - w),
    and runs are those of the union over sentences. "paper" has the formulas of Lin (2004, 3.3) for the weighted LCS of
    whole texts, whatever their lines, so that equal texts score 1. A text without words scores 0; for "W" the script
    divides by zero in this case.
    """

    variant: str = "L"
    skip_distance: int = 4
    w: float = 1.2
    alpha: float = 0.5
    formula: str = "A"
    stem: bool = False
    remove_stopwords: bool = False
    weighting: str = "script"

    name: ClassVar[str] = "rouge155"

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise ValueError(f"variant={self.variant!r}: choose one of {', '.join(map(repr, VARIANTS))}")
        if self.formula not in ("A", "B"):
            raise ValueError(f"formula={self.formula!r}: choose A or B")
        if self.weighting not in ("script", "paper"):
            raise ValueError(f"weighting={self.weighting!r}: choose script or paper")
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha={self.alpha}: must be between 0 (recall) and 1 (precision)")
        if not 0.1 <= self.w <= 5:
            raise ValueError(f"w={self.w}: must be between 0.1 and 5; 1.2 is usual")

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Statistics float[N, 4]: precision, recall, F, 1."""
        texts, owner = flatten(hypotheses, references)
        power = self.w if self.variant == "W" else 1.0
        counts = self._count(texts, owner).astype(np.float64)
        ranking = _divide(counts[0], counts[2]) ** (1 / power)
        if self.weighting == "script":
            counts[2] **= power  # the second weighting
        if self.formula == "A":
            counts = np.add.reduceat(counts, starts(owner), axis=1)
        else:
            counts = counts[:, best(ranking, owner)]
        precision = _divide(counts[0], counts[1]) ** (1 / power)
        recall = _divide(counts[0], counts[2]) ** (1 / power)
        f = _divide(precision * recall, (1 - self.alpha) * precision + self.alpha * recall)
        return np.stack([precision, recall, f, np.ones_like(f)], axis=-1)

    def words(self, texts: Sequence[str]) -> list[list[str]]:
        """The words of each text as they are compared."""
        words = ascii_words(texts)
        if self.remove_stopwords:
            excluded = stop_words.smart()
            words = [[word for word in text if word not in excluded] for text in words]
        return stem_words(words, rouge_stem) if self.stem else words

    def _count(self, texts: Sequence[str], owner: np.ndarray) -> np.ndarray:
        """Counts float[3, R] of N hypotheses followed by R references: matches, and the units of each text."""
        if self.variant == "W" and self.weighting == "paper":
            return self._count_weighted(*pair(self.words(texts), owner))
        if self.variant in ("L", "W"):
            hypotheses, references = pair(split_sentences(texts, self.words), owner)
            if self.variant == "L":
                return count_subsequences(hypotheses, references, lcs.union_matches)
            weight = functools.cache(lambda run: run**self.w)
            matches = functools.partial(lcs.weighted_union_matches, weight=weight)
            counts = count_subsequences(hypotheses, references, matches)
            counts[1] **= self.w
            counts[2] = [sum(weight(len(words)) for words in sentences) for sentences in references]
            return counts
        pairs = pair(self.words(texts), owner)
        if self.variant in ("S", "SU"):
            return self._count_skip_bigrams(*pairs)
        return count_ngrams(encode_words(itertools.chain(*pairs)), int(self.variant))

    def _count_weighted(self, hypotheses: list[list[str]], references: list[list[str]]) -> np.ndarray:
        """Counts float[3, P]: the weighted LCS of each pair, and the weights of its texts as one run."""
        weight = functools.cache(lambda run: run**self.w)
        rows = [
            [lcs.weighted_length(reference, hypothesis, weight), weight(len(hypothesis)), weight(len(reference))]
            for hypothesis, reference in zip(hypotheses, references, strict=True)
        ]
        return np.array(rows).T

    def _count_skip_bigrams(self, hypotheses: list[list[str]], references: list[list[str]]) -> np.ndarray:
        """Counts int64[3, P], in blocks: n words have n (n - 1) / 2 skip bigrams if the distance is unlimited."""
        lengths = np.array([[len(text) for text in texts] for texts in (hypotheses, references)])
        reach = lengths if self.skip_distance < 0 else np.minimum(lengths, min(self.skip_distance, _BLOCK) + 2)
        block = np.cumsum((lengths * reach).sum(axis=0)) // _BLOCK
        counts = []
        for first, last in itertools.pairwise([*np.flatnonzero(np.diff(block, prepend=-1)), len(block)]):
            tokens = encode_words([*hypotheses[first:last], *references[first:last]])
            counts.append(count_ngrams(skip_bigrams(tokens, self.skip_distance, self.variant == "SU"), 1))
        return np.concatenate(counts, axis=1)


def skip_bigrams(tokens: Tokens, distance: int, with_unigrams: bool) -> Tokens:
    """Encode the ordered pairs of words at most `distance` words apart (any distance if negative) as tokens.

    with_unigrams: add every word but the last of a text, as in the script.
    """
    text = np.repeat(np.arange(len(tokens.lengths)), tokens.lengths)
    behind = np.cumsum(tokens.lengths)[text] - np.arange(len(text)) - 1  # words after this one
    pairs = behind if distance < 0 else np.minimum(behind, min(distance, len(text)) + 1)
    items = pairs + (behind > 0) if with_unigrams else pairs
    start = np.repeat(np.arange(len(text)), items)
    step = np.arange(len(start)) - np.repeat(np.cumsum(items) - items, items) + (not with_unigrams)
    second = np.where(step == 0, tokens.size, tokens.ids[start + step])
    lengths = np.bincount(text, items, len(tokens.lengths)).astype(np.int64)
    return Tokens(tokens.ids[start] * (tokens.size + 1) + second, lengths, tokens.size * (tokens.size + 1))


def _divide(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
