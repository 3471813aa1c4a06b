"""Longest common subsequences (LCS) of words: how long, where in the reference, and weighted by unbroken runs.

A set of positions in a text is an integer: bit i stands for word i. A row of the usual table L[j][i] (LCS of the
first j hypothesis words and the first i reference words) is one, too: bit i is 0 where L[j][i + 1] = L[j][i] + 1. The
next row then takes a few operations on whole integers (Hyyrö, 2004, "Bit-parallel LCS-length computation revisited").
"""

import functools
import itertools
import operator
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import numpy as np

Word = TypeVar("Word", bound=Hashable)
Words = Sequence[str]
Marks = Callable[[Words, Words], int]

_PAIRED = 256  # second texts compared at once


def positions(words: Sequence[Word]) -> dict[Word, int]:
    """Where each word stands."""
    where: dict[Word, int] = {}
    bit = 1
    for word in words:
        where[word] = where.get(word, 0) | bit
        bit <<= 1
    return where


def length(first: Words, second: Words) -> int:
    """The length of the longest common subsequence; symmetric."""
    if len(first) < len(second):
        first, second = second, first
    where, row = positions(first), (1 << len(first)) - 1
    for word in second:
        row = _next_row(row, where.get(word, 0), len(first))
    return len(first) - row.bit_count()


def pairwise_lengths(firsts: Sequence[Words], seconds: Sequence[Words]) -> np.ndarray:
    """int64[F, S]: `length` of every first text with every second one, all rows of all tables in step."""
    lengths = np.zeros((len(firsts), len(seconds)), np.int64)
    numbers = {word: number for number, word in enumerate(set(itertools.chain.from_iterable(seconds)))}
    ids = np.full((len(firsts), max(map(len, firsts), default=0)), len(numbers))  # a word that no second text has
    for row, words in enumerate(firsts):
        ids[row, : len(words)] = [numbers.get(word, len(numbers)) for word in words]
    fits = [place for place, words in enumerate(seconds) if len(words) < 64]
    for place in set(range(len(seconds))) - set(fits):
        lengths[:, place] = [length(words, seconds[place]) for words in firsts]
    for start in range(0, len(fits), _PAIRED):
        block = fits[start : start + _PAIRED]
        where = np.zeros((len(numbers) + 1, len(block)), np.uint64)
        for column, place in enumerate(block):
            for word, marked in positions(seconds[place]).items():
                where[numbers[word], column] = marked
        widths = np.array([len(seconds[place]) for place in block])
        full = (np.uint64(1) << widths.astype(np.uint64)) - np.uint64(1)
        rows = np.tile(full, (len(firsts), 1))
        for words_at in ids.T:
            used = rows & where[words_at]
            rows = ((rows + used) | (rows - used)) & full
        lengths[:, block] = widths - np.bitwise_count(rows)
    return lengths


def marks(reference: Words, hypothesis: Words) -> int:
    """The positions in the reference of one longest common subsequence: the one both ROUGE programs read out.

    From the end, equal words belong to it; else a hypothesis word is dropped if that alone keeps the length, otherwise
    a reference word.
    """
    where, rows = positions(reference), [(1 << len(reference)) - 1]
    for word in hypothesis:
        rows.append(_next_row(rows[-1], where.get(word, 0), len(reference)))
    found, i, j = 0, len(reference), len(hypothesis)
    while i and j:
        last = 1 << (i - 1)
        if where.get(hypothesis[j - 1], 0) & last:
            found |= last
            i, j = i - 1, j - 1
        elif rows[j] & last:  # without this reference word the LCS is as long
            i -= 1
        else:
            j -= 1
    return found


def weighted_marks(reference: Words, hypothesis: Words, weight: Callable[[int], float]) -> int:
    """As `marks`, for the subsequence that is best if an unbroken run of k words counts weight(k) (Lin, 2004, 3.3).

    The recursion is the paper's, which extends a run wherever words are equal. It need not find the best subsequence.
    """
    gains = [weight(k + 1) for k in range(min(len(reference), len(hypothesis)))]
    losses = [weight(k) for k in range(len(gains))]
    scores, runs = [0.0] * (len(hypothesis) + 1), [0] * (len(hypothesis) + 1)
    drops_reference = []  # for each cell of the table, where words differ: is a reference word dropped?
    for word in reference:
        above, scores, runs_above, runs = scores, [0.0], runs, [0]
        drops = []
        for j, other in enumerate(hypothesis):
            if word == other:
                run = runs_above[j]
                scores.append(above[j] + gains[run] - losses[run])  # in this order: ties depend on rounding
                runs.append(run + 1)
                drops.append(False)
            else:
                drops.append(above[j + 1] >= scores[j])
                scores.append(max(above[j + 1], scores[j]))
                runs.append(0)
        drops_reference.append(drops)
    found, i, j = 0, len(reference), len(hypothesis)
    while i and j:
        if reference[i - 1] == hypothesis[j - 1]:
            i, j = i - 1, j - 1
            found |= 1 << i
        elif drops_reference[i - 1][j - 1]:
            i -= 1
        else:
            j -= 1
    return found


def union_matches(references: Sequence[Words], hypotheses: Sequence[Words]) -> int:
    """Matches of two texts as lists of sentences: the union of each reference sentence's LCS (Lin, 2004, 3.2).

    As in both ROUGE programs no word of the hypothesis counts more often than it occurs there.
    """
    if len(references) == len(hypotheses) == 1:
        return length(references[0], hypotheses[0])
    return sum(counted.bit_count() for _, counted in _union(references, hypotheses, marks))


def weighted_union_matches(
    references: Sequence[Words], hypotheses: Sequence[Words], weight: Callable[[int], float]
) -> float:
    """As `union_matches`, each run of k words of the reference counting weight(k), the way ROUGE-1.5.5 finds runs.

    A run ends before a position that is not in the union, and with the sentence. A word that does not count is passed
    over; if a run ends with one, the words before it go into the next run, or are lost at the end of the sentence.
    """
    matches = 0.0
    for marked, counted in _union(references, hypotheses, functools.partial(weighted_marks, weight=weight)):
        run = 0
        for position in range(marked.bit_length()):
            if counted >> position & 1:
                run += 1
                if not marked >> (position + 1) & 1:
                    matches += weight(run)
                    run = 0
    return matches


def _union(references: Sequence[Words], hypotheses: Sequence[Words], marks: Marks) -> list[tuple[int, int]]:
    """For each reference sentence the union of its marks with every hypothesis sentence, and those that count."""
    left = Counter(itertools.chain.from_iterable(hypotheses))
    unions = []
    for reference in references:
        marked = functools.reduce(operator.or_, (marks(reference, hypothesis) for hypothesis in hypotheses), 0)
        counted = 0
        for position, word in enumerate(reference):
            if marked >> position & 1 and left[word]:
                left[word] -= 1
                counted |= 1 << position
        unions.append((marked, counted))
    return unions


def _next_row(row: int, matches: int, width: int) -> int:
    """The table's next row, of a hypothesis word with these positions in the reference."""
    used = row & matches
    return ((row + used) | (row - used)) & ((1 << width) - 1) if used else row
