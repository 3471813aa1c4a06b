"""Translation edit rate (Snover et al., 2006): the number that sacreBLEU 2.6 computes, sooner.

Edits are insertions, deletions, substitutions and shifts of a block of hypothesis words. Which shifts are made is a
greedy search with Tercom's and sacreBLEU's limits, which change the number and are kept to the letter. What is saved:
a shift that cannot gain, or not enough, is not tried, and the table of a tried one is filled only where it is new.
"""

import dataclasses
import functools
import math
from collections.abc import Hashable, Iterator
from typing import ClassVar, NamedTuple

from metrics_jax.surface import tercom
from metrics_jax.surface.edits import ErrorRate, Words, next_row, unmatched
from metrics_jax.surface.lcs import positions

Row = tuple[int, int, int, int, int, int]

MAX_BLOCK = 10  # words in a shifted block
MAX_DISTANCE = 50  # between the block's start in the hypothesis and in the reference
BEAM = 25  # columns on either side of the table's diagonal
MAX_CANDIDATES = 1000  # shifts of one sentence pair


@dataclasses.dataclass(frozen=True)
class TER(ErrorRate):
    """Translation edit rate, in percent of the reference words; options as sacreBLEU names them.

    normalized: Tercom's tokenization of punctuation. no_punct: drop punctuation. asian_support: do either of it to
    Asian characters, too. case_sensitive: do not lower-case.
    """

    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False

    name: ClassVar[str] = "ter"

    def words(self, text: str) -> list[str]:
        """A text's words after Tercom's tokenizer."""
        return tercom.tokenize(text, self.normalized, self.no_punct, self.asian_support, self.case_sensitive)

    def reference_words(self, text: str) -> list[str]:
        """As `words`, once more if normalized: so does sacreBLEU, and `,.5` is two words first, then three."""
        words = self.words(text)
        return self.words(" ".join(words)) if self.normalized else words

    def num_edits(self, hypothesis: Words, reference: Words) -> int:
        """Shifts, and the edits that are then left; not symmetric."""
        return edits_with_shifts(hypothesis, reference)


class _Swap(NamedTuple):
    """Two neighbouring blocks that change places: words[first:middle] and words[middle:last]."""

    first: int
    middle: int
    last: int

    def apply(self, words: list[Hashable]) -> list[Hashable]:
        """The words in their new order."""
        first, middle, last = self
        return words[:first] + words[middle:last] + words[first:middle] + words[last:]


def edits_with_shifts(hypothesis: Words, reference: Words) -> int:
    """Shift the block that saves most edits until none does or too many were looked at; count shifts and edits.

    Once the number of candidates reaches the limit, the best of the round is not shifted any more.
    """
    if not reference:
        return len(hypothesis)
    words, table = list(hypothesis), _Table(reference, len(hypothesis))
    fewest = unmatched(hypothesis, reference)  # no order of the words takes fewer edits
    shifts = looked_at = 0
    while (distance := table.fill(words)) > fewest:
        count, swaps = _candidates(words, table)
        looked_at += count
        best = None if looked_at >= MAX_CANDIDATES else _best(swaps, table, distance, fewest)
        if best is None:
            break
        words = best.apply(words)
        shifts += 1
    return shifts + distance


def _candidates(words: list[Hashable], table: "_Table") -> tuple[int, list[_Swap]]:
    """The shifts to look at -> how many count towards the limit, and those that differ, best-ranked first.

    A candidate is a block that equals a block of the reference, holds an error on either side, and does not cover the
    place in the hypothesis that the reference block starts at. Its targets are the place before, and the places behind
    the counterparts of the reference block's words. Of equal gains the longest block ranks first, then the one furthest
    left, then the target furthest left. If the limit is reached here, the shifts do not matter and are left out.
    """
    used, wrong_here, wrong_there = table.align()
    count, found = 0, set()
    runs: dict[int, int] = {}  # how many words are equal from `start` and from a place in the reference on
    for start in range(len(words) - 1, -1, -1):
        runs = {place: min(runs.get(place + 1, 0) + 1, MAX_BLOCK) for place in table.places.get(words[start], ())}
        for place, longest in runs.items():
            shortest = max(wrong_here[start] - start, wrong_there[place] - place) + 1
            counterpart = used[place + 1] - 1
            if counterpart >= start:
                longest = min(longest, counterpart - start)
            if shortest > longest or abs(place - start) > MAX_DISTANCE:
                continue
            for length in range(shortest, longest + 1):
                targets = set(used[place : place + length + 1])
                count += len(targets)
                found.update([(-length, start, target) for target in targets])
        if count >= MAX_CANDIDATES:
            return count, []
    return count, [_swap(start, -minus, target, len(words)) for minus, start, target in sorted(found)]


def _swap(start: int, length: int, target: int, num_words: int) -> _Swap:
    """The shift of a block to a target; one within the block, or at its end, moves it on by as many words."""
    end = start + length
    if target < start:
        return _Swap(target, start, end)
    return _Swap(start, end, target if target > end else min(end + target - start, num_words))


def _best(swaps: list[_Swap], table: "_Table", distance: int, fewest: int) -> _Swap | None:
    """The first of the swaps that save most of the distance, if any saves something.

    The smaller block could as well be deleted here and inserted there, so a swap changes the edit distance by no more
    than twice its words; what the beam misses of the edit distance may come on top.
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


class _Table:
    """The edit distance table of a reference and hypotheses of one length, row by row as in `edits.next_row`.

    A row is (plus, minus, cell 0, the columns of equal words, equal, rises).
    """

    def __init__(self, reference: Words, num_rows: int) -> None:
        self.reference, self.num_rows = reference, num_rows
        self.full = (1 << len(reference)) - 1
        self.where = positions(reference)
        self.places: dict[Hashable, list[int]] = {}
        for place, word in enumerate(reference):
            self.places.setdefault(word, []).append(place)

    def fill(self, words: list[Hashable]) -> int:
        """The distance of a hypothesis within the beam; its table is kept for `align` and `refill`.

        missed: how much more that is than the edit distance. A way of d edits through the table stays within
        (d + difference in length) / 2 columns of the diagonal: mostly the beam does not matter, and is left out.
        """
        self.words, self.missed = words, 0
        self.cuts: list[tuple[int, int, int, int]] | None = None
        distance = self._fill()
        if distance + abs(len(self.reference) - self.num_rows) > 2 * (BEAM - 2):
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

    def refill(self, swap: _Swap) -> int:
        """The distance of the filled hypothesis after a swap.

        Rows before it are as they were. Behind it, what a row adds to its cell 0 on the way to the end depends only on
        the row: as soon as it has occurred, the distance is known.
        """
        words, passed = swap.apply(self.words), []
        for i, row in enumerate(self._rows(words[swap.first :], swap.first, self.rows[swap.first]), swap.first + 1):
            plus, minus, cell, *_ = row
            if i >= swap.last:
                rest = self.rest.get((i, plus, minus))
                if rest is not None:
                    break
                passed.append((i, plus, minus, cell))
        else:
            rest = plus.bit_count() - minus.bit_count()
        for i, plus, minus, above in passed:
            self.rest[i, plus, minus] = cell + rest - above
        return cell + rest

    def _rows(self, words: list[Hashable], i: int, row: Row) -> Iterator[Row]:
        """The rows of `words`, below row i."""
        plus, minus, cell, *_ = row
        where, full, cuts = self.where, self.full, self.cuts
        for word in words:
            matches = where.get(word, 0)
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
        """For each row: the columns a diagonal step may lead to, those left of the beam and right of it, how many left.

        Outside the beam, cells are set to rise by one a column away from it, and words do not match. So no way through
        them is cheaper than one inside, and what is inside is as if nothing were outside.
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
        """The cheapest way through the filled table; from its end, match or substitute before delete before insert.

        -> for each number of reference words (0 to all), the number of hypothesis words used up when the last of them
        is; for each word of the hypothesis, and of the reference, the next word from there on that is not matched.
        """
        i, j = len(self.words), len(self.reference)
        used, wrong_here, wrong_there = [0] * (j + 1), [i] * (i + 1), [j] * (j + 1)
        while i or j:
            column = 1 << j >> 1  # 0 in front of the reference, where a word can only be deleted
            _, _, _, matches, equal, rises = self.rows[i]
            if i and column and (matches & column or not equal & column):
                used[j] = i
                wrong_here[i - 1] = wrong_here[i] if matches & column else i - 1
                wrong_there[j - 1] = wrong_there[j] if matches & column else j - 1
                i, j = i - 1, j - 1
            elif i and (rises & column or not column):
                i -= 1
                wrong_here[i] = i
            else:
                used[j] = i
                j -= 1
                wrong_there[j] = j
        return used, wrong_here, wrong_there
