"""One-to-one matches of the words of two texts: as many as possible, with as few crossings as possible.

The alignment of METEOR (Banerjee and Lavie, 2005, section 2.1): two matches cross if their words come in one order in
one text and in the other order in the other.
"""

import functools
import heapq
import itertools
import math
from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

_BEAM = 32  # settles nearly every sentence; what it does not settle is searched again
_STEPS = 2**19  # of that second search, about half a second


class Group(NamedTuple):
    """Positions, ascending, of words of two texts that match none outside the group.

    partners: the reference's positions that each position of the hypothesis matches; None: every one in the group.
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
        """Whether there is one best way to match the group, whatever the rest of the alignment.

        Two matches that cross, and whose words could be exchanged, always cross less once they are. So where every pair
        matches, matches run in order, and where both sides have as many words, that leaves one choice.
        """
        return self.partners is None and len(self.hypothesis) == len(self.reference)


def extend(alignment: Mapping[int, int], groups: Sequence[Group]) -> dict[int, int]:
    """Matched positions (hypothesis: reference) -> those, and the groups', whose positions must be others.

    The largest extension, of these the one with the fewest crossings, of these the one with the fewest chunks, wherever
    that is found within _STEPS, as it is for sentences. Beyond (pages of text, 150 words of a vocabulary of three) it
    is the best among the most promising ones that fit into so many steps; a group that alone takes more is matched in
    order of occurrence. The same groups always get the same alignment.
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
    """The number of runs of matched words that are adjacent, in the same order, in both texts."""
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
    """-> the best matches of groups beside those of an alignment, hypothesis: reference."""
    crossing = 2 * sum(len(group.hypothesis) for group in groups) + 1  # the price; more than all chunks they can join
    slots = _slots(alignment, groups, crossing)
    found = _search(slots, crossing, min(_BEAM, beam), _NOTHING)
    if found.is_pruned and beam > _BEAM:
        found = _search(slots, crossing, beam, found)
    matches, path = {}, found.path
    for slot in reversed(slots):
        choice, path = path
        if choice is not None:
            matches[slot.position] = choice
    return matches


class _Slot(NamedTuple):
    """A word of the hypothesis that may be matched in several ways, or left, and the state of its group there.

    choices: (reference position, price) and (None, 0) for no match; the price is that of crossings with the given
    alignment, less the chunks joined to it. references: the group's words in the reference, a bit each; in_order: they
    are matched from left to right; wanted: how many in all. room: bits still free -> how many of them can be matched to
    words after this one. least[n]: the least that n matches from this word on cost; least_after: of words after it.
    is_followed: the next word is a slot too, and may go on with a chunk.
    """

    position: int
    choices: list[tuple[int | None, int]]
    references: int
    in_order: bool
    wanted: int
    room: Callable[[int], int]
    least: list[int]
    least_after: list[int]
    is_followed: bool


def _slots(alignment: Mapping[int, int], groups: Sequence[Group], crossing: int) -> list[_Slot]:
    """The words of the groups from left to right."""
    positions = {position for group in groups for position in group.hypothesis}
    matched = 0  # words of the reference, a bit each
    matched_before = {}  # those matched to words left of a position
    for position in sorted(alignment.keys() | positions):
        matched_before[position] = matched
        matched |= 1 << alignment[position] if position in alignment else 0

    def price(i: int, j: int) -> int:
        left, right = matched_before[i], matched & ~matched_before[i]
        crossed = (left >> j).bit_count() + (right & (1 << j) - 1).bit_count()
        joined = (alignment.get(i - 1) == j - 1) + (alignment.get(i + 1) == j + 1)
        return crossed * crossing - joined

    slots = []
    for words, references, partners in groups:
        others = [references if partners is None else partners[i] for i in words]
        prices = [[(j, price(i, j)) for j in row] for i, row in zip(words, others, strict=True)]
        masks = [] if partners is None else [_bits(row) for row in others]
        wanted = min(len(words), len(references)) if partners is None else _matching(masks, _bits(references))
        least: list[list[int]] = [[0]]
        cheapest: list[int] = []
        for i, row in zip(reversed(words), reversed(prices), strict=True):
            insort(cheapest, min(price for _, price in row) - (i - 1 in positions))
            del cheapest[wanted:]
            least.append([0, *itertools.accumulate(cheapest)])
        for after, i, row in zip(itertools.count(), reversed(words), reversed(prices)):
            slots.append(
                _Slot(
                    position=i,
                    choices=[(None, 0), *row],
                    references=_bits(references),
                    in_order=partners is None,
                    wanted=wanted,
                    room=_room(after, masks[len(masks) - after :] if masks else None),
                    least=least[after + 1],
                    least_after=least[after],
                    is_followed=i + 1 in positions,
                )
            )
    return sorted(slots, key=lambda slot: slot.position)


def _bits(positions: Sequence[int]) -> int:
    return functools.reduce(lambda bits, position: bits | 1 << position, positions, 0)


def _room(words: int, masks: Sequence[int] | None) -> Callable[[int], int]:
    """Free bits -> how many can be matched to so many words, each to those of its mask, or each to any if None."""
    if masks is None:
        return lambda free: min(words, free.bit_count())
    return functools.cache(functools.partial(_matching, masks))


def _matching(masks: Sequence[int], free: int) -> int:
    """The size of the largest one-to-one matching of words to free bits of their masks, by augmenting paths."""
    owners: dict[int, int] = {}

    def place(word: int, tried: set[int]) -> bool:
        for bit in range(free.bit_length()):
            if masks[word] & free & 1 << bit and bit not in tried:
                tried.add(bit)
                if bit not in owners or place(owners[bit], tried):
                    owners[bit] = word
                    return True
        return False

    return sum(place(word, set()) for word in range(len(masks)))


class _Found(NamedTuple):
    """Choices for all slots as (last, (last but one, ...)), their cost, and whether states were left out."""

    cost: float
    path: Any
    is_pruned: bool


_NOTHING = _Found(math.inf, None, False)


def _search(slots: Sequence[_Slot], crossing: int, beam: int, known: _Found) -> _Found:
    """The cheapest choices for all slots, or `known` if none are cheaper; after each slot the best `beam` states stay.

    A state is the words of the reference that are taken, and the last of them if it may start a chunk: what follows
    depends on no more, so of several ways to a state the cheapest is kept (Bellman, 1957), the first of equals. Where
    the known cost can no longer be undercut, or a group no longer be matched in full, the way ends.
    """
    first_slots = {slot.references: slot for slot in reversed(slots)}.values()
    ahead_of_all = sum(slot.least[slot.wanted] for slot in first_slots)
    states: dict[tuple[int, int | None], tuple[int, int, Any]] = {(0, None): (0, ahead_of_all, None)}
    is_pruned = False
    for slot in slots:
        reached: dict[tuple[int, int | None], tuple[int, int, Any]] = {}
        for (taken, last), (cost, ahead, path) in states.items():
            own = taken & slot.references
            missing = slot.wanted - own.bit_count()
            free = slot.references & (-1 << own.bit_length() if slot.in_order else ~own)
            for choice, price in slot.choices:
                if choice is None:
                    still_free, wanted, now_taken, new_cost = free, missing, taken, cost
                elif missing and free >> choice & 1:
                    still_free = free & (-2 << choice if slot.in_order else ~(1 << choice))
                    wanted = missing - 1
                    now_taken = taken | 1 << choice
                    new_cost = cost + price + crossing * (taken >> choice).bit_count() - (last == choice - 1)
                else:
                    continue
                if slot.room(still_free) < wanted:
                    continue
                new_ahead = ahead - slot.least[missing] + slot.least_after[wanted]
                state = now_taken, choice if slot.is_followed else None
                if new_cost + new_ahead < known.cost and (state not in reached or new_cost < reached[state][0]):
                    reached[state] = new_cost, new_ahead, (choice, path)
        states = reached
        if len(states) > beam:
            is_pruned = True
            states = dict(heapq.nsmallest(beam, states.items(), key=lambda item: item[1][0] + item[1][1]))
    if not states:
        return known
    cost, _, path = min(states.values(), key=lambda found: found[0])
    return _Found(cost, path, is_pruned)
