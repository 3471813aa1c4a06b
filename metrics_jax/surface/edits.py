"""Error rates: the fewest edits that make a hypothesis the reference, over the words of the reference.

WER edits word by word, CDER may also jump to any place of the hypothesis, PER forgets the order; TER (room `ter`)
moves blocks. A set of word positions, or of columns of a dynamic programming table, is an integer: bit i stands for i.
"""

import dataclasses
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.api import AdditiveMetric, References, check_texts
from metrics_jax.surface.lcs import positions

Words = Sequence[Hashable]


class ErrorRate(AdditiveMetric):
    """Fewest edits over a segment's references, over their mean length (as in Snover et al., 2006), times 100.

    A segment is counted as (num_edits, ref_length). Against references without a word every hypothesis word is wrong:
    the rate is 100, whatever their number, and 0 for an empty hypothesis. It can exceed 100.
    """

    higher_is_better: ClassVar[bool] = False

    def words(self, text: str) -> list[str]:
        """A text's words."""
        raise NotImplementedError

    def reference_words(self, text: str) -> list[str]:
        """A reference's words."""
        return self.words(text)

    def num_edits(self, hypothesis: Words, reference: Words) -> int:
        """What it takes to make one the other."""
        raise NotImplementedError

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """-> float[N, 2], a segment's edits and its references' mean length; errors as `check_texts`."""
        rows = []
        for hypothesis, group in zip(hypotheses, check_texts(hypotheses, references), strict=True):
            words, answers = self.words(hypothesis), [self.reference_words(text) for text in group]
            edits = min(self.num_edits(words, answer) for answer in answers)
            rows.append((edits, sum(map(len, answers)) / len(answers)))
        return np.array(rows, np.float64)

    def score(self, statistics: np.ndarray) -> np.ndarray:
        """Summed statistics float[..., 2] -> float[...] from 0 (best) upwards, in percent."""
        edits, length = statistics[..., 0], statistics[..., 1]
        return 100 * (np.where(length > 0, edits, edits > 0) / np.where(length > 0, length, 1))

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """The edits and the reference length of the corpus, in words."""
        return {"num_edits": float(statistics[0]), "ref_length": float(statistics[1])}


@dataclasses.dataclass(frozen=True)
class _PlainWords(ErrorRate):
    """Words as white space separates them."""

    lowercase: bool = False

    def words(self, text: str) -> list[str]:
        """A text's words, lower-cased if asked."""
        return (text.lower() if self.lowercase else text).split()


@dataclasses.dataclass(frozen=True)
class WER(_PlainWords):
    """Word error rate: insertions, deletions and substitutions (Levenshtein, 1966) of words."""

    name: ClassVar[str] = "wer"

    def num_edits(self, hypothesis: Words, reference: Words) -> int:
        """The edit distance; symmetric."""
        return edit_distance(hypothesis, reference)


@dataclasses.dataclass(frozen=True)
class PER(_PlainWords):
    """Position-independent error rate (Tillmann et al., 1997): two bags of words, max(|h|, |r|) - matches edits."""

    name: ClassVar[str] = "per"

    def num_edits(self, hypothesis: Words, reference: Words) -> int:
        """The words of the longer side that find no equal on the other; symmetric, never above the edit distance."""
        return unmatched(hypothesis, reference)


@dataclasses.dataclass(frozen=True)
class CDER(_PlainWords):
    """Cover-disjoint error rate (Leusch, Ueffing and Ney, 2006): WER that may jump in the hypothesis for one edit."""

    name: ClassVar[str] = "cder"

    def num_edits(self, hypothesis: Words, reference: Words) -> int:
        """The long jump distance; not symmetric, never above the edit distance."""
        return long_jump_distance(hypothesis, reference)


def unmatched(first: Words, second: Words) -> int:
    """max(|first|, |second|) less the words that both have, each as often as both have it."""
    left, matches = Counter(second), 0
    for word in first:
        if count := left.get(word):
            left[word] = count - 1
            matches += 1
    return max(len(first), len(second)) - matches


def next_row(plus: int, minus: int, matches: int, full: int) -> tuple[int, int, int, int]:
    """One row of the edit distance table D from the row above it (Myers, 1999; Hyyrö, 2003).

    Neighbouring cells differ by at most one. A row is two sets of columns j: plus, where D[i][j + 1] is one more than
    D[i][j], and minus, where it is one less; `matches` are the columns whose word equals the row's word, `full` all
    columns. Column 0 grows by one a row. -> plus and minus of the new row, then the columns where its cell j + 1
    equals the cell diagonally above, and those where it is one more than the cell above.
    """
    equal = (((matches & plus) + plus) ^ plus) | matches | minus
    rises = minus | full & ~(equal | plus)
    right = rises << 1 | 1
    return (equal & plus) << 1 & full | full & ~(equal | right), right & equal, equal, rises


def edit_distance(first: Words, second: Words) -> int:
    """Insertions, deletions and substitutions that make one the other."""
    where, full = positions(first), (1 << len(first)) - 1
    plus, minus = full, 0
    for word in second:
        plus, minus, _, _ = next_row(plus, minus, where.get(word, 0), full)
    return len(second) + plus.bit_count() - minus.bit_count()


def long_jump_distance(hypothesis: Words, reference: Words) -> int:
    """The edits of CDER (Leusch et al., 2006): the cheapest way through the table from its first to its last cell.

    A step is an insertion, a deletion, a substitution or a jump to any place of the hypothesis, at one edit each, or a
    match. Every reference word is so covered once; those of the hypothesis as often as it pleases. Within a row of the
    table (one reference word) a jump leads anywhere, so no cell costs more than the row's cheapest ones and one more:
    the cheapest ones say it all.
    """
    where, end = positions(hypothesis), len(hypothesis)
    cost, cheapest = 0, 1  # before the first reference word: the beginning is free, the rest a jump away
    for word in reference:
        matches = where.get(word, 0) << 1  # places behind an equal word
        reached = cheapest << 1 & matches
        if reached:
            cheapest = reached
        else:  # one edit more: the reference word is missing or substituted, or was matched after a jump
            cost, cheapest = cost + 1, cheapest | cheapest << 1 & (2 << end) - 1 | matches
    return cost + 1 - (cheapest >> end & 1)
