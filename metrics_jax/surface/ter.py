"""Translation edit rate (Snover et al., 2006), equal to sacreBLEU 2.6 but faster.

Edits are insertions, deletions, substitutions and shifts of a block of hypothesis words. Shifts are found by a greedy
search with the limits of Tercom and sacreBLEU, which affect the score and are reproduced exactly. Time is saved by
skipping shifts that cannot improve the result enough, and recomputing only the part of the table that a shift changes.
"""

import dataclasses
import functools
import math
from collections.abc import Hashable, Iterator
from typing import ClassVar, NamedTuple, TypeVar

from metrics_jax.surface.error_rates import ErrorRate, Words, next_row, unmatched
from metrics_jax.surface.lcs import positions
from metrics_jax.surface.tokenizers import tercom_words

Row = tuple[int, int, int, int, int, int]
Word = TypeVar("Word")

MAX_BLOCK = 10  # maximum number of words in a shifted block
MAX_DISTANCE = 50  # maximum distance between the starts of the block in the hypothesis and in the reference
BEAM = 25  # columns on either side of the table's diagonal
MAX_CANDIDATES = 1000  # maximum number of shifts considered for a sentence pair


@dataclasses.dataclass(frozen=True)
class TER(ErrorRate):
    """Translation edit rate, in percent of the reference words, with the options of sacreBLEU.

    normalized: apply Tercom's tokenization of punctuation. no_punct: remove punctuation. asian_support: apply both to
    Asian characters, too. case_sensitive: do not lower-case.
    """

    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False

    name: ClassVar[str] = "ter"

    def words(self, text: str) -> list[str]:
        return tercom_words(text, self.normalized, self.no_punct, self.asian_support, self.case_sensitive)

    def reference_words(self, text: str) -> list[str]:
        """Normalized references are tokenized twice, as in sacreBLEU: `,.5` becomes two words, then three."""
        words = self.words(text)
        return self.words(" ".join(words)) if self.normalized else words

    def num_edits(self, hypothesis: Words, reference: Words) -> int:
        return edits_with_shifts(hypothesis, reference)


class Swap(NamedTuple):
    """A swap of two adjacent blocks, words[first:middle] and words[middle:last]."""

    first: int
    middle: int
    last: int

    def apply(self, words: list[Word]) -> list[Word]:
        """The words after the swap."""
        first, middle, last = self
        return words[:first] + words[middle:last] + words[first:middle] + words[last:]


class Edits(NamedTuple):
    """How a hypothesis becomes its reference.

    shifts: swaps of two adjacent blocks, words[first:middle] and words[middle:last], one after the other. order: the
    positions of the hypothesis after them. pairs: places in `order` and positions of the reference that are matched or
    substituted; other words of the hypothesis are deleted, other words of the reference inserted.
    """

    shifts: list[tuple[int, int, int]]
    order: list[int]
    pairs: list[tuple[int, int]]


def edits(hypothesis: Words, reference: Words) -> Edits:
    """The shifts and edits that `edits_with_shifts` counts."""
    order = list(range(len(hypothesis)))
    if not reference:
        return Edits([], order, [])
    table = Table(reference, len(hypothesis))
    shifts, _ = _shift(hypothesis, reference, table)
    for swap in shifts:
        order = swap.apply(order)
    used = table.align()[0]
    pairs = [(used[j + 1] - 1, j) for j in range(len(reference)) if used[j + 1] > used[j]]
    return Edits([(*swap,) for swap in shifts], order, pairs)


def edits_with_shifts(hypothesis: Words, reference: Words) -> int:
    """Number of shifts and edits, not symmetric: repeatedly shift the block that saves most edits, until none does.

    The search also ends when the number of candidates reaches the limit; the best shift of that round is not made.
    """
    if not reference:
        return len(hypothesis)
    shifts, distance = _shift(hypothesis, reference, Table(reference, len(hypothesis)))
    return len(shifts) + distance


def _shift(hypothesis: Words, reference: Words, table: "Table") -> tuple[list[Swap], int]:
    """The shifts, and the distance after them, for which the table is filled."""
    words, shifts = list(hypothesis), []
    fewest = unmatched(hypothesis, reference)  # no order of the words takes fewer edits
    num_candidates = 0
    while (distance := table.fill(words)) > fewest:
        count, swaps = _candidates(words, table)
        num_candidates += count
        best = None if num_candidates >= MAX_CANDIDATES else _best(swaps, table, distance, fewest)
        if best is None:
            break
        words = best.apply(words)
        shifts.append(best)
    return shifts, distance


def _candidates(words: list[Hashable], table: "Table") -> tuple[int, list[Swap]]:
    """The number of candidate shifts that count towards the limit, and the distinct ones, best-ranked first.

    A candidate is a block that equals a block of the reference, contains an error on either side, and does not cover
    the position in the hypothesis that is aligned with the start of the reference block. Its targets are the position
    before the counterpart of the reference block, and those after the counterparts of its words. Among equal gains, the
    longest block ranks first, then the leftmost block, then the leftmost target. No shifts are returned at the limit.
    """
    used, next_error, next_reference_error = table.align()
    count, found = 0, set()
    runs: dict[int, int] = {}  # reference position -> number of equal words from there and from `start`
    for start in range(len(words) - 1, -1, -1):
        runs = {j: min(runs.get(j + 1, 0) + 1, MAX_BLOCK) for j in table.occurrences.get(words[start], ())}
        for j, longest in runs.items():
            shortest = max(next_error[start] - start, next_reference_error[j] - j) + 1
            counterpart = used[j + 1] - 1
            if counterpart >= start:
                longest = min(longest, counterpart - start)
            if shortest > longest or abs(j - start) > MAX_DISTANCE:
                continue
            for length in range(shortest, longest + 1):
                targets = set(used[j : j + length + 1])
                count += len(targets)
                found.update([(-length, start, target) for target in targets])
        if count >= MAX_CANDIDATES:
            return count, []
    return count, [_swap(start, -minus, target, len(words)) for minus, start, target in sorted(found)]


def _swap(start: int, length: int, target: int, num_words: int) -> Swap:
    """The shift of a block to a target; one within the block or at its end moves it by as many words."""
    end = start + length
    if target < start:
        return Swap(target, start, end)
    return Swap(start, end, target if target > end else min(end + target - start, num_words))


def _best(swaps: list[Swap], table: "Table", distance: int, fewest: int) -> Swap | None:
    """The first of the swaps that save the most edits, or None if none saves any.

    A swap changes the edit distance by at most twice the size of the smaller block, which could also be deleted in one
    place and inserted in the other. The difference between the beam's distance and the edit distance may add to this.
    """
    best, saved = None, 0
    for swap in swaps:
        first, middle, last = swap
        if 2 * min(middle - first, last - middle) + table.missed > saved:
            gain = distance - table.refill(swap)
            if gain > saved:
                best, saved = swap, gain
                if distance - saved == fewest:
                    break
    return best


class Table:
    """Edit distance table of a reference and hypotheses of one length, by rows as in `error_rates.next_row`.

    A row is (plus, minus, cell 0, columns of equal words, equal, rises). beam: leave out cells as Tercom does.
    """

    def __init__(self, reference: Words, num_rows: int, beam: bool = True) -> None:
        self.reference, self.num_rows, self.beam = reference, num_rows, beam
        self.full = (1 << len(reference)) - 1
        self.columns = positions(reference)
        self.occurrences: dict[Hashable, list[int]] = {}
        for j, word in enumerate(reference):
            self.occurrences.setdefault(word, []).append(j)

    def fill(self, words: Words) -> int:
        """Fill the table for a hypothesis and return its distance within the beam; `align` and `refill` use the table.

        missed: how much this distance exceeds the edit distance. A path of d edits stays within (d + difference in
        length) / 2 columns of the diagonal: usually the beam has no effect and is left out.
        """
        self.words, self.missed = list(words), 0
        self.cuts: list[tuple[int, int, int, int]] | None = None
        distance = self._fill()
        if self.beam and distance + abs(len(self.reference) - self.num_rows) > 2 * (BEAM - 2):
            self.cuts = self._beam
            self.missed = self._fill() - distance
        return distance + self.missed

    def _fill(self) -> int:
        start = (self.full, 0, 0, 0, 0, 0)
        self.rows = [start, *self._rows(self.words, 0, start)]
        plus, minus, cell, *_ = self.rows[-1]
        distance = cell + plus.bit_count() - minus.bit_count()
        self.rest = {(i, row[0], row[1]): distance - row[2] for i, row in enumerate(self.rows)}
        return distance

    def refill(self, swap: Swap) -> int:
        """The distance of the filled hypothesis after a swap.

        Rows before the swap do not change. After the swap, the distance that remains from a row depends only on the
        row: as soon as a row is known from an earlier computation, so is the distance.
        """
        words, new_rows = swap.apply(self.words), []
        for i, row in enumerate(self._rows(words[swap.first :], swap.first, self.rows[swap.first]), swap.first + 1):
            plus, minus, cell, *_ = row
            if i >= swap.last:
                rest = self.rest.get((i, plus, minus))
                if rest is not None:
                    break
                new_rows.append((i, plus, minus, cell))
        else:
            rest = plus.bit_count() - minus.bit_count()
        for i, plus, minus, row_cell in new_rows:
            self.rest[i, plus, minus] = cell + rest - row_cell
        return cell + rest

    def _rows(self, words: list[Hashable], i: int, row: Row) -> Iterator[Row]:
        """The rows of `words`, below row i."""
        plus, minus, cell, *_ = row
        columns, full, cuts = self.columns, self.full, self.cuts
        for word in words:
            matches = columns.get(word, 0)
            if cuts is None:
                plus, minus, equal, rises = next_row(plus, minus, matches, full)
                cell += 1
            else:
                i += 1
                inside, left, right, skipped = cuts[i]
                matches &= inside
                plus, minus, equal, rises = next_row(plus, minus, matches, full)
                equal |= full & ~inside
                cell += 1 + skipped + (plus & left).bit_count() - (minus & left).bit_count()
                plus, minus = plus & ~left | right, (minus | left) & ~right
            yield plus, minus, cell, matches, equal, rises

    @functools.cached_property
    def _beam(self) -> list[tuple[int, int, int, int]]:
        """For each row, the columns that a diagonal step may reach, and the columns left and right of the beam.

        The fourth entry is the number of columns on the left. Outside the beam, cells are set to increase by one per
        column away from it, and words do not match. No path through them is then cheaper than one inside, and cells
        inside are as if there were none outside.
        """
        columns, rows = len(self.reference), self.num_rows
        ratio = columns / rows if rows else 1
        width = BEAM if ratio <= 2 * BEAM else math.ceil(ratio / 2 + BEAM)
        diagonal = [math.floor(i * ratio) for i in range(rows + 1)]
        low = [0, *(max(0, column - width) for column in diagonal[1:])]  # cells low <= j < high are filled
        high = [columns + 1, *(min(columns + 1, column + width) for column in diagonal[1:])]
        cuts = [(0, 0, 0, 0)]
        for i in range(1, rows + 1):
            inside = (1 << high[i - 1]) - (1 << max(low[i - 1], low[i] - 1)) & self.full
            cuts.append((inside, (1 << low[i]) - 1, self.full + 1 - (1 << high[i] - 1), low[i]))
        return cuts

    def align(self) -> tuple[list[int], list[int], list[int]]:
        """Backtrace the cheapest path through the table; prefers match or substitution over deletion over insertion.

        Returns, for each number of reference words (0 to all), the number of hypothesis words consumed by then; and for
        each word of the hypothesis, and of the reference, the position of the next word that is not matched.
        """
        i, j = len(self.words), len(self.reference)
        used, next_error, next_reference_error = [0] * (j + 1), [i] * (i + 1), [j] * (j + 1)
        while i or j:
            column = 1 << j >> 1  # 0 before the first reference word, where a word can only be deleted
            _, _, _, matches, equal, rises = self.rows[i]
            if i and column and (matches & column or not equal & column):
                used[j] = i
                next_error[i - 1] = next_error[i] if matches & column else i - 1
                next_reference_error[j - 1] = next_reference_error[j] if matches & column else j - 1
                i, j = i - 1, j - 1
            elif i and (rises & column or not column):
                i -= 1
                next_error[i] = i
            else:
                used[j] = i
                j -= 1
                next_reference_error[j] = j
        return used, next_error, next_reference_error
