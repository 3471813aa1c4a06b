"""One-to-one alignment of the words of two texts with as many matches and as few crossings as possible.

This is the alignment of METEOR (Banerjee and Lavie, 2005, section 2.1): two matches cross if their words are in one
order in one text and in the other order in the other.
"""

import functools
import heapq
import itertools
import math
from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

_BEAM = 32  # enough for nearly every sentence; other sentences are searched a second time
_STEPS = 2**19  # work limit of the second search, about half a second


class Group(NamedTuple):
    """Positions, ascending, of words of two texts that match no words outside the group.

    partners: the reference positions that each hypothesis position matches; None means all positions of the group.
    """

    hypothesis: Sequence[int]
    reference: Sequence[int]
    partners: Mapping[int, Sequence[int]] | None = None

    @property
    def steps(self) -> int:
        """A measure of the work of a search that keeps one alignment."""
        pairs = len(self.hypothesis) * len(self.reference)
        return pairs if self.partners is None else pairs * len(self.hypothesis)

    @property
    def is_settled(self) -> bool:
        """Whether the best way to match the group does not depend on the rest of the alignment.

        Exchanging the partners of two crossing matches, where possible, always reduces crossings. If all pairs of the
        group match, its matches are therefore in order, and if both sides have as many words, there is only one way.
        """
        return self.partners is None and len(self.hypothesis) == len(self.reference)


def extend(alignment: Mapping[int, int], groups: Sequence[Group]) -> dict[int, int]:
    """Extend an alignment (hypothesis position: reference position) by matches within groups of unmatched words.

    Returns the largest extension; among these, one with the fewest crossings, and then with the fewest chunks, if it is
    found within _STEPS, as is the case for sentences. For longer texts (such as 150 words from a vocabulary of three),
    it is the best of the most promising extensions within the limit, and a group that alone exceeds the limit is
    matched in order of occurrence. The result is deterministic.
    """
    extended = dict(alignment)
    searched = []
    for group in groups:
        if group.is_settled:
            extended.update(zip(group.hypothesis, group.reference, strict=True))
        else:
            searched.append(group)
    searched.sort(key=lambda group: group.steps)
    while (steps := sum(group.steps for group in searched)) > _STEPS:
        _match_in_order(extended, searched.pop())
    if searched:
        extended.update(_match_best(extended, searched, _STEPS // steps))
    return extended


def count_chunks(alignment: Mapping[int, int]) -> int:
    """Number of runs of matched words that are adjacent and in the same order in both texts."""
    return sum(alignment.get(i - 1) != j - 1 for i, j in alignment.items())


def _match_in_order(alignment: dict[int, int], group: Group) -> None:
    """Match every word of the hypothesis with its first free partner."""
    free = dict.fromkeys(group.reference)
    for position in group.hypothesis:
        partners = free if group.partners is None else group.partners[position]
        choice = next((partner for partner in partners if partner in free), None)
        if choice is not None:
            del free[choice]
            alignment[position] = choice


def _match_best(alignment: Mapping[int, int], groups: Sequence[Group], beam: int) -> dict[int, int]:
    """The best matches (hypothesis position: reference position) of groups, given the matches of an alignment."""
    crossing = 2 * sum(len(group.hypothesis) for group in groups) + 1  # cost of a crossing; exceeds that of all chunks
    slots = _slots(alignment, groups, crossing)
    found = _search(slots, crossing, min(_BEAM, beam), _NO_RESULT)
    if found.is_pruned and beam > _BEAM:
        found = _search(slots, crossing, beam, found)
    matches, path = {}, found.path
    for slot in reversed(slots):
        choice, path = path
        if choice is not None:
            matches[slot.position] = choice
    return matches


class _Slot(NamedTuple):
    """A hypothesis word that may be matched in several ways or left unmatched, and the state of its group there.

    choices: (reference position, cost), and (None, 0) for no match; the cost is that of crossings with the given
    alignment, minus the number of chunks that are joined. references: bit set of the group's reference words; in_order:
    whether they are matched from left to right; size: number of matches of the group. capacity: maps a bit set of free
    reference words to the number of them that can be matched to later hypothesis words. least[n]: lower bound of the
    cost of n matches from this word on; least_after: the same for later words. is_followed: whether the next word is a
    slot, too, and may continue a chunk.
    """

    position: int
    choices: list[tuple[int | None, int]]
    references: int
    in_order: bool
    size: int
    capacity: Callable[[int], int]
    least: list[int]
    least_after: list[int]
    is_followed: bool


def _slots(alignment: Mapping[int, int], groups: Sequence[Group], crossing: int) -> list[_Slot]:
    """The words of the groups from left to right."""
    positions = {position for group in groups for position in group.hypothesis}
    matched = 0  # bit set of matched reference words
    matched_before = {}  # those matched to words before a position
    for position in sorted(alignment.keys() | positions):
        matched_before[position] = matched
        matched |= 1 << alignment[position] if position in alignment else 0

    def cost(i: int, j: int) -> int:
        left, right = matched_before[i], matched & ~matched_before[i]
        crossed = (left >> j).bit_count() + (right & (1 << j) - 1).bit_count()
        joined = (alignment.get(i - 1) == j - 1) + (alignment.get(i + 1) == j + 1)
        return crossed * crossing - joined

    slots = []
    for words, references, partners in groups:
        others = [references if partners is None else partners[i] for i in words]
        costs = [[(j, cost(i, j)) for j in row] for i, row in zip(words, others, strict=True)]
        masks = [] if partners is None else [_bits(row) for row in others]
        size = min(len(words), len(references)) if partners is None else _matching(masks, _bits(references))
        least: list[list[int]] = [[0]]
        cheapest: list[int] = []
        for i, row in zip(reversed(words), reversed(costs), strict=True):
            insort(cheapest, min(cost for _, cost in row) - (i - 1 in positions))
            del cheapest[size:]
            least.append([0, *itertools.accumulate(cheapest)])
        for after, i, row in zip(itertools.count(), reversed(words), reversed(costs)):
            slots.append(
                _Slot(
                    position=i,
                    choices=[(None, 0), *row],
                    references=_bits(references),
                    in_order=partners is None,
                    size=size,
                    capacity=_capacity(after, masks[len(masks) - after :] if masks else None),
                    least=least[after + 1],
                    least_after=least[after],
                    is_followed=i + 1 in positions,
                )
            )
    return sorted(slots, key=lambda slot: slot.position)


def _bits(positions: Sequence[int]) -> int:
    return functools.reduce(lambda bits, position: bits | 1 << position, positions, 0)


def _capacity(words: int, masks: Sequence[int] | None) -> Callable[[int], int]:
    """Function from free bits to the number of them that can be matched to `words` words.

    Each word matches the bits of its mask, or all bits if `masks` is None.
    """
    if masks is None:
        return lambda free: min(words, free.bit_count())
    return functools.cache(functools.partial(_matching, masks))


def _matching(masks: Sequence[int], free: int) -> int:
    """Size of the largest one-to-one matching of words to free bits of their masks, by augmenting paths."""
    owners: dict[int, int] = {}

    def assign(word: int, tried: set[int]) -> bool:
        for bit in range(free.bit_length()):
            if masks[word] & free & 1 << bit and bit not in tried:
                tried.add(bit)
                if bit not in owners or assign(owners[bit], tried):
                    owners[bit] = word
                    return True
        return False

    return sum(assign(word, set()) for word in range(len(masks)))


class _SearchResult(NamedTuple):
    """Choices for all slots as (last, (last but one, ...)), their cost, and whether the search was pruned."""

    cost: float
    path: Any
    is_pruned: bool


_NO_RESULT = _SearchResult(math.inf, None, False)


def _search(slots: Sequence[_Slot], crossing: int, beam: int, known: _SearchResult) -> _SearchResult:
    """The cheapest choices for all slots, or `known` if none are cheaper, by a beam search over the slots.

    A state is the set of reference words that are taken, and the last of them if it may start a chunk. Later costs
    depend on nothing else, so that only the cheapest path to a state is kept (Bellman, 1957), the first of equals.
    Paths end if they cannot be cheaper than the known result, or if a group cannot be fully matched.
    """
    first_slots = {slot.references: slot for slot in reversed(slots)}.values()
    bound = sum(slot.least[slot.size] for slot in first_slots)  # lower bound of the remaining cost
    states: dict[tuple[int, int | None], tuple[int, int, Any]] = {(0, None): (0, bound, None)}
    is_pruned = False
    for slot in slots:
        reached: dict[tuple[int, int | None], tuple[int, int, Any]] = {}
        for (taken, last), (cost, bound, path) in states.items():
            taken_here = taken & slot.references
            missing = slot.size - taken_here.bit_count()
            free = slot.references & (-1 << taken_here.bit_length() if slot.in_order else ~taken_here)
            for choice, choice_cost in slot.choices:
                if choice is None:
                    new_free, new_missing, new_taken, new_cost = free, missing, taken, cost
                elif missing and free >> choice & 1:
                    new_free = free & (-2 << choice if slot.in_order else ~(1 << choice))
                    new_missing = missing - 1
                    new_taken = taken | 1 << choice
                    new_cost = cost + choice_cost + crossing * (taken >> choice).bit_count() - (last == choice - 1)
                else:
                    continue
                if slot.capacity(new_free) < new_missing:
                    continue
                new_bound = bound - slot.least[missing] + slot.least_after[new_missing]
                state = new_taken, choice if slot.is_followed else None
                if new_cost + new_bound < known.cost and (state not in reached or new_cost < reached[state][0]):
                    reached[state] = new_cost, new_bound, (choice, path)
        states = reached
        if len(states) > beam:
            is_pruned = True
            states = dict(heapq.nsmallest(beam, states.items(), key=lambda item: item[1][0] + item[1][1]))
    if not states:
        return known
    cost, _, path = min(states.values(), key=lambda found: found[0])
    return _SearchResult(cost, path, is_pruned)
