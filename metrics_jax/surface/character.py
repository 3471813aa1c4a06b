"""CharacTER (Wang et al., 2016): words are shifted as in TER, but edits are counted in characters."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.api import AdditiveMetric, References, check_texts
from metrics_jax.surface.error_rates import edit_distance, unmatched
from metrics_jax.surface.ter import Swap, Table


@dataclasses.dataclass(frozen=True)
class CharacTER(AdditiveMetric):
    """Edits of characters and costs of shifted words per character of the hypothesis, 0 to 1 (Wang et al., 2016).

    Words are separated by white space, and joined by single spaces for the edits. The best of several references is
    used; a corpus scores the mean over segments. If only one text is empty, the rate is 1. capped: rates are at most 1,
    as in the package cer; the authors' script has no limit.
    """

    lowercase: bool = False
    capped: bool = True

    name: ClassVar[str] = "character"
    higher_is_better: ClassVar[bool] = False

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Statistics float[N, 5]: rate, edits of characters, cost of shifts, characters of the hypothesis, 1."""
        rows = []
        for hypothesis, group in zip(hypotheses, check_texts(hypotheses, references), strict=True):
            words = self.words(hypothesis)
            rows.append(min(self._row(words, self.words(reference)) for reference in group))
        return np.array(rows, np.float64)

    def score(self, statistics: np.ndarray) -> np.ndarray:
        return statistics[..., 0] / statistics[..., 4]

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """Sums over the segments: num_edits of characters, shift_cost, and sys_len, the characters of hypotheses."""
        names = ("num_edits", "shift_cost", "sys_len")
        return {name: float(value) for name, value in zip(names, statistics[1:4], strict=True)}

    def words(self, text: str) -> list[str]:
        """The words of a text."""
        return (text.lower() if self.lowercase else text).split()

    def _row(self, hypothesis: list[str], reference: list[str]) -> tuple[float, ...]:
        words = shift(hypothesis, reference)
        text = " ".join(words)
        edits, cost = edit_distance(text, " ".join(reference)), shift_cost(hypothesis, words)
        rate = (edits + cost) / len(text) if text else float(edits > 0)
        return min(rate, 1.0) if self.capped else rate, edits, cost, len(text), 1


def shift(hypothesis: list[str], reference: list[str]) -> list[str]:
    """Repeatedly shift the block that saves most edits of words, until none saves any; returns the words.

    A block is a longest run of words that the reference has elsewhere, and is moved to the position it has there. Among
    equal gains, the text that comes last in the order of code points is chosen, as in the authors' script.
    """
    words, fewest = hypothesis, unmatched(hypothesis, reference)
    table = Table(reference, len(hypothesis), beam=False)
    while (distance := table.fill(words)) > fewest:
        best: tuple[int, list[str]] = (1, [])  # any shift that saves an edit is better
        sizes = [(min(swap.middle - swap.first, swap.last - swap.middle), swap) for swap in _swaps(words, table)]
        for size, text, swap in sorted(((size, swap.apply(words), swap) for size, swap in sizes), reverse=True):
            # A swap saves at most twice the size of its smaller block; see `ter`.
            if (min(2 * size, distance - fewest), text) > best:
                best = max(best, (distance - table.refill(swap), text))
        if not best[1]:
            break
        words = best[1]
    return words


def _swaps(words: list[str], table: Table) -> set[Swap]:
    """The shifts of all longest runs of equal words to their positions in the reference, as swaps."""
    swaps, runs = set(), dict[int, int]()  # runs: reference position -> number of equal words from there and from start
    for start in range(len(words) - 1, -1, -1):
        runs = {j: runs.get(j + 1, 0) + 1 for j in table.occurrences.get(words[start], ())}
        for position, length in runs.items():
            target = min(position, len(words) - length)
            if target < start:
                swaps.add(Swap(target, start, start + length))
            elif target > start:
                swaps.add(Swap(start, start + length, target + length))
    return swaps


def shift_cost(words: list[str], shifted: list[str]) -> float:
    """The cost of shifts: for each block that was shifted, the mean number of characters of its words.

    A block is a run of words that are in another place than before, and stand together further behind.
    """
    cost, start = 0.0, 0
    while start < len(words):
        length = 1
        if words[start] != shifted[start] and words[start] in shifted[start + 1 :]:
            place = shifted.index(words[start], start + 1)
            while place + length < len(words) and words[start + length] == shifted[place + length]:
                length += 1
            cost += sum(map(len, words[start : start + length])) / length
        start += length
    return cost
