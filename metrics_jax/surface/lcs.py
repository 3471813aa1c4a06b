"""Longest common subsequences (LCS) of words: their length, their positions in the reference, and weighted variants.

A set of positions in a text is represented by an integer: bit i stands for word i. A row of the usual table L[j][i]
(LCS of the first j hypothesis words and the first i reference words) is an integer, too: bit i is 0 where L[j][i + 1] =
L[j][i] + 1. The next row then takes a few operations on whole integers (Hyyrö, 2004, "Bit-parallel LCS-length
computation revisited").
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

_BLOCK = 256  # number of second texts compared at a time


def positions(words: Sequence[Word]) -> dict[Word, int]:
    """The set of positions of each word."""
    sets: dict[Word, int] = {}
    bit = 1
    for word in words:
        sets[word] = sets.get(word, 0) | bit
        bit <<= 1
    return sets


def length(first: Words, second: Words) -> int:
    """The length of the longest common subsequence; symmetric."""
    if len(first) < len(second):
        first, second = second, first
    where, row = positions(first), (1 << len(first)) - 1
    for word in second:
        row = _next_row(row, where.get(word, 0), len(first))
    return len(first) - row.bit_count()


def pairwise_lengths(firsts: Sequence[Words], seconds: Sequence[Words]) -> np.ndarray:
    """`length` int64[F, S] of every first text with every second text; the rows of all tables are computed together."""
    lengths = np.zeros((len(firsts), len(seconds)), np.int64)
    numbers = {word: number for number, word in enumerate(set(itertools.chain.from_iterable(seconds)))}
    # len(numbers) stands for padding and for words that are in no second text.
    ids = np.full((len(firsts), max(map(len, firsts), default=0)), len(numbers))
    for row, words in enumerate(firsts):
        ids[row, : len(words)] = [numbers.get(word, len(numbers)) for word in words]
    short = [index for index, words in enumerate(seconds) if len(words) < 64]  # their rows fit into a machine word
    for index in set(range(len(seconds))) - set(short):
        lengths[:, index] = [length(words, seconds[index]) for words in firsts]
    for start in range(0, len(short), _BLOCK):
        block = short[start : start + _BLOCK]
        where = np.zeros((len(numbers) + 1, len(block)), np.uint64)
        for column, index in enumerate(block):
            for word, marked in positions(seconds[index]).items():
                where[numbers[word], column] = marked
        widths = np.array([len(seconds[index]) for index in block])
        full = (np.uint64(1) << widths.astype(np.uint64)) - np.uint64(1)
        rows = np.tile(full, (len(firsts), 1))
        for words_at in ids.T:
            used = rows & where[words_at]
            rows = ((rows + used) | (rows - used)) & full
        lengths[:, block] = widths - np.bitwise_count(rows)
    return lengths


def marks(reference: Words, hypothesis: Words) -> int:
    """The positions in the reference of one longest common subsequence, the one that both ROUGE programs choose.

    Going backwards from the end, equal words belong to it; otherwise a hypothesis word is dropped if only that keeps
    the length, and a reference word in all other cases.
    """
    where, rows = positions(reference), [(1 << len(reference)) - 1]
    for word in hypothesis:
        rows.append(_next_row(rows[-1], where.get(word, 0), len(reference)))
    # A reference word is dropped if the LCS without it is as long.
    return _backtrace(reference, hypothesis, lambda i, j: rows[j + 1] >> i & 1)


def pairs(reference: Words, hypothesis: Words) -> list[tuple[int, int]]:
    """The positions in the reference that `marks` chooses, each with a position in the hypothesis, both ascending."""
    found, start, marked = [], 0, marks(reference, hypothesis)
    for position, word in enumerate(reference):
        if marked >> position & 1:
            start = hypothesis.index(word, start) + 1
            found.append((position, start - 1))
    return found


def weighted_marks(reference: Words, hypothesis: Words, weight: Callable[[int], float]) -> int:
    """As `marks`, for the best subsequence if a run of k consecutive words counts weight(k); see `weighted_length`."""
    _, drops_reference = _weighted_table(reference, hypothesis, weight)
    return _backtrace(reference, hypothesis, lambda i, j: drops_reference[i][j])


def weighted_length(reference: Words, hypothesis: Words, weight: Callable[[int], float]) -> float:
    """The weighted LCS, if a run of k words that are consecutive in both texts counts weight(k) (Lin, 2004, 3.3).

    This is the paper's recursion, which extends a run wherever words are equal, and may miss the best subsequence.
    """
    return _weighted_table(reference, hypothesis, weight)[0]


def _weighted_table(
    reference: Words, hypothesis: Words, weight: Callable[[int], float]
) -> tuple[float, list[list[bool]]]:
    """The weighted LCS, and for each cell of the table where words differ, whether a reference word is dropped."""
    gains = [weight(k + 1) for k in range(min(len(reference), len(hypothesis)))]
    losses = [weight(k) for k in range(len(gains))]
    scores, runs = [0.0] * (len(hypothesis) + 1), [0] * (len(hypothesis) + 1)
    drops_reference = []
    for word in reference:
        above, scores, runs_above, runs = scores, [0.0], runs, [0]
        drops = []
        for j, other in enumerate(hypothesis):
            if word == other:
                run = runs_above[j]
                scores.append(above[j] + gains[run] - losses[run])  # in this order, since rounding decides ties
                runs.append(run + 1)
                drops.append(False)
            else:
                drops.append(above[j + 1] >= scores[j])
                scores.append(max(above[j + 1], scores[j]))
                runs.append(0)
        drops_reference.append(drops)
    return scores[-1], drops_reference


def _backtrace(reference: Words, hypothesis: Words, drops_reference: Callable[[int, int], int]) -> int:
    """The matched positions in the reference, from the end; where words i, j differ, one of them is dropped."""
    found, i, j = 0, len(reference), len(hypothesis)
    while i and j:
        if reference[i - 1] == hypothesis[j - 1]:
            i, j = i - 1, j - 1
            found |= 1 << i
        elif drops_reference(i - 1, j - 1):
            i -= 1
        else:
            j -= 1
    return found


def union_matches(references: Sequence[Words], hypotheses: Sequence[Words]) -> int:
    """Matches of two texts as lists of sentences: the union of the LCS of each reference sentence.

    As in both ROUGE programs, no word counts more often than it occurs in the hypothesis (Lin, 2004, section 3.2).
    """
    if len(references) == len(hypotheses) == 1:
        return length(references[0], hypotheses[0])
    return sum(counted.bit_count() for _, counted in _union(references, hypotheses, marks))


def weighted_union_matches(
    references: Sequence[Words], hypotheses: Sequence[Words], weight: Callable[[int], float]
) -> float:
    """As `union_matches`, but each run of k consecutive reference words counts weight(k), with runs as in ROUGE-1.5.5.

    A run ends before a position that is not in the union, and at the end of the sentence. A word that does not count is
    skipped; if it ends a run, the words before it are added to the next run, or lost at the end of the sentence.
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
    """For each reference sentence, the union of its marks with all hypothesis sentences, and the part that counts."""
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
    """The next row of the table, for a hypothesis word with these positions in the reference."""
    used = row & matches
    return ((row + used) | (row - used)) & ((1 << width) - 1) if used else row
