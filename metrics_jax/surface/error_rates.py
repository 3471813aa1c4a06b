"""Error rates WER, CER, PER and CDER: the fewest edits that turn a hypothesis into the reference, per reference word.

WER edits word by word, CER character by character, CDER may also jump to any position of the hypothesis, PER ignores
word order; TER, which shifts blocks, is in `ter`. A set of word positions, or of columns of a dynamic programming
table, is represented by an integer whose bit i stands for position i.
"""

import dataclasses
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.api import AdditiveMetric, References, check_texts
from metrics_jax.surface.lcs import positions

Words = Sequence[Hashable]


def unmatched(hypothesis: Words, reference: Words) -> int:
    """Words of the longer text without a match in the other; symmetric, and never above the edit distance."""
    return max(len(hypothesis), len(reference)) - (Counter(hypothesis) & Counter(reference)).total()


def next_row(plus: int, minus: int, matches: int, full: int) -> tuple[int, int, int, int]:
    """Compute one row of the edit distance table D from the row above it (Myers, 1999; Hyyrö, 2003).

    Neighbouring cells differ by at most one. A row is two sets of columns j: plus, where D[i][j + 1] = D[i][j] + 1, and
    minus, where D[i][j + 1] = D[i][j] - 1. `matches` are the columns whose word equals the row's word, `full` is the
    set of all columns. Column 0 grows by one per row. Returns plus and minus of the new row, then the columns j whose
    cell j + 1 equals the cell diagonally above, and those where it is one more than the cell above.
    """
    equal = (((matches & plus) + plus) ^ plus) | matches | minus
    rises = minus | full & ~(equal | plus)
    right = rises << 1 | 1
    return (equal & plus) << 1 & full | full & ~(equal | right), right & equal, equal, rises


def edit_distance(hypothesis: Words, reference: Words) -> int:
    """Number of insertions, deletions and substitutions that turn one text into the other; symmetric."""
    columns, full = positions(hypothesis), (1 << len(hypothesis)) - 1
    plus, minus = full, 0
    for word in reference:
        plus, minus, _, _ = next_row(plus, minus, columns.get(word, 0), full)
    return len(reference) + plus.bit_count() - minus.bit_count()


def long_jump_distance(hypothesis: Words, reference: Words) -> int:
    """The long jump distance of CDER: the cheapest path from the first to the last cell of the table; not symmetric.

    A step is an insertion, a deletion, a substitution or a jump to any position of the hypothesis, at one edit each, or
    a match at no cost (Leusch et al., 2006). Every reference word is covered exactly once, and hypothesis words any
    number of times. Since jumps within a row (one reference word) reach every cell, no cell costs more than one edit
    above the cheapest cells of the row, so that the set of cheapest cells describes the row. The
    distance is never above the edit distance.
    """
    columns, end = positions(hypothesis), len(hypothesis)
    cost, cheapest = 0, 1  # before the first reference word: position 0 is free, all others need a jump
    for word in reference:
        matches = columns.get(word, 0) << 1  # positions after an equal word
        reached = cheapest << 1 & matches
        if reached:
            cheapest = reached
        else:  # one more edit: the reference word is inserted, substituted, or matched after a jump
            cost, cheapest = cost + 1, cheapest | cheapest << 1 & (2 << end) - 1 | matches
    return cost + 1 - (cheapest >> end & 1)


class ErrorRate(AdditiveMetric):
    """The fewest edits over a segment's references, divided by their mean length (Snover et al., 2006), in percent.

    The statistics of a segment are (num_edits, ref_length). If no reference has a word, the rate is 100, or 0 for an
    empty hypothesis. Rates may exceed 100.
    """

    higher_is_better: ClassVar[bool] = False

    def words(self, text: str) -> list[str]:
        """The words of a text."""
        raise NotImplementedError

    def reference_words(self, text: str) -> list[str]:
        """The words of a reference."""
        return self.words(text)

    def num_edits(self, hypothesis: Words, reference: Words) -> int:
        """Number of edits that turn the hypothesis into the reference."""
        raise NotImplementedError

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Statistics float[N, 2]: edits and mean reference length of each segment. Raises errors as `check_texts`."""
        rows = []
        for hypothesis, group in zip(hypotheses, check_texts(hypotheses, references), strict=True):
            words, other_words = self.words(hypothesis), [self.reference_words(text) for text in group]
            edits = min(self.num_edits(words, others) for others in other_words)
            rows.append((edits, sum(map(len, other_words)) / len(other_words)))
        return np.array(rows, np.float64)

    def score(self, statistics: np.ndarray) -> np.ndarray:
        edits, length = statistics[..., 0], statistics[..., 1]
        return 100 * (np.where(length > 0, edits, edits > 0) / np.where(length > 0, length, 1))

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """Sums over the segments: num_edits, and ref_length, the mean length of the references."""
        return {"num_edits": float(statistics[0]), "ref_length": float(statistics[1])}


@dataclasses.dataclass(frozen=True)
class _PlainWords(ErrorRate):
    """An error rate of words that are separated by white space."""

    lowercase: bool = False

    def words(self, text: str) -> list[str]:
        return (text.lower() if self.lowercase else text).split()


@dataclasses.dataclass(frozen=True)
class WER(_PlainWords):
    """Word error rate: insertions, deletions and substitutions of words (Levenshtein, 1966)."""

    name: ClassVar[str] = "wer"

    num_edits = staticmethod(edit_distance)


@dataclasses.dataclass(frozen=True)
class CER(_PlainWords):
    """Character error rate: insertions, deletions and substitutions of characters per reference character.

    Blanks between words are characters; those around the text are not, as in jiwer.
    """

    name: ClassVar[str] = "cer"

    num_edits = staticmethod(edit_distance)

    def words(self, text: str) -> list[str]:
        """The characters of a text."""
        return list((text.lower() if self.lowercase else text).strip())


@dataclasses.dataclass(frozen=True)
class PER(_PlainWords):
    """Position-independent error rate (Tillmann et al., 1997): max(|h|, |r|) - matches, for texts as bags of words."""

    name: ClassVar[str] = "per"

    num_edits = staticmethod(unmatched)


@dataclasses.dataclass(frozen=True)
class CDER(_PlainWords):
    """Cover-disjoint error rate (Leusch, Ueffing and Ney, 2006): WER with jumps in the hypothesis at one edit each."""

    name: ClassVar[str] = "cder"

    num_edits = staticmethod(long_jump_distance)
