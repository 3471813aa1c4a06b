"""Counting n-grams of many texts at once: n-grams become codes, and one sort serves all orders."""

import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse

_LIMIT = 2**62  # codes are packed into int64
_BLOCK = 2**16  # tokens sorted at a time: what a processor's cache holds


class Tokens(NamedTuple):
    """N texts as numbers: ids int64[M] of all texts in a row, lengths int64[N], size (ids are below it)."""

    ids: np.ndarray
    lengths: np.ndarray
    size: int


def encode_words(texts: Iterable[Sequence[Hashable]]) -> Tokens:
    """Number the tokens of texts in the order in which they are met."""
    texts = list(texts)
    numbers: defaultdict[Hashable, int] = defaultdict(itertools.count().__next__)
    ids = np.fromiter(map(numbers.__getitem__, itertools.chain.from_iterable(texts)), np.int64)
    return Tokens(ids, np.fromiter(map(len, texts), np.int64, len(texts)), len(numbers))


def encode_characters(texts: Sequence[str]) -> Tokens:
    """Number the characters (code points) of texts, densely."""
    points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    used = np.zeros(int(points.max(initial=0)) + 1, np.bool_)
    used[points] = True
    number = np.cumsum(used) - 1
    return Tokens(number[points], np.fromiter(map(len, texts), np.int64, len(texts)), int(used.sum()))


def num_ngrams(lengths: np.ndarray, max_order: int) -> np.ndarray:
    """int64[max_order, ...]: n-grams of each order in texts of `lengths` tokens."""
    return np.stack([np.maximum(lengths - n, 0) for n in range(max_order)])


def clipped_matches(tokens: Tokens, num_references: np.ndarray, max_order: int) -> np.ndarray:
    """int64[max_order, H]: n-grams of each hypothesis found in its references, clipped (Papineni et al., 2002, 2.1).

    The first H texts are the hypotheses, then come the references of the first, of the second ...; num_references
    int64[H] says how many. An n-gram counts min(its count in the hypothesis, its largest count in one reference).
    """
    hypotheses = len(num_references)
    matches = np.zeros((max_order, hypotheses), np.int64)
    text_starts = np.concatenate([[0], np.cumsum(tokens.lengths)])
    reference_starts = hypotheses + np.concatenate([[0], np.cumsum(num_references)])
    sizes = np.diff(text_starts[: hypotheses + 1]) + np.diff(text_starts[reference_starts])
    block = np.cumsum(sizes) // _BLOCK
    for first, last in itertools.pairwise([*np.flatnonzero(np.diff(block, prepend=-1)), hypotheses]):
        texts = [np.arange(first, last), np.arange(reference_starts[first], reference_starts[last])]
        ids = [tokens.ids[text_starts[some[0]] : text_starts[some[-1] + 1]] for some in texts]
        part = Tokens(np.concatenate(ids), tokens.lengths[np.concatenate(texts)], tokens.size)
        matches[:, first:last] = _clipped_matches(part, num_references[first:last], max_order)
    return matches


def _clipped_matches(tokens: Tokens, num_references: np.ndarray, max_order: int) -> np.ndarray:
    """`clipped_matches` of one block.

    Sorted by the longest n-gram that starts at a token, all n-grams of all orders lie in runs of equal ones.
    """
    hypotheses = np.arange(len(num_references))
    first = np.cumsum(num_references) - num_references
    slots = 1 + np.arange(num_references.sum()) - np.repeat(first, num_references)  # which reference of its hypothesis
    text = np.repeat(np.arange(len(tokens.lengths)), tokens.lengths)
    group = np.concatenate([hypotheses, np.repeat(hypotheses, num_references)])[text]
    side = np.concatenate([np.zeros_like(hypotheses), slots])[text]  # 0 = the hypothesis
    room = np.cumsum(tokens.lengths)[text] - np.arange(len(text))  # tokens to the end of the text
    codes = list(_codes(tokens, room, group, len(hypotheses), max_order))
    order = np.argsort(codes[-1], kind="stable")  # faster than the default where much is in order
    side, group, room = side[order], group[order], room[order]
    count = [np.cumsum(side == slot, dtype=np.int32) for slot in range(num_references.max(initial=0) + 1)]
    matches = []
    for n, code in enumerate(codes, 1):
        ordered = code[order]
        ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], np.True_)) if len(order) else order
        runs = [np.diff(total[ends], prepend=0) for total in count]
        clipped = np.minimum(runs[0], np.maximum.reduce(runs[1:]))
        clipped[room[ends] < n] = 0  # the text ends within the n-gram
        matches.append(np.bincount(group[ends], clipped, len(hypotheses)))
    return np.array(matches).astype(np.int64)


def pairwise_matches(tokens: Tokens, num_hypotheses: int, max_order: int) -> np.ndarray:
    """int64[max_order, H, R]: clipped matches of every hypothesis (the first H texts) with every other text.

    The k-th occurrence of an n-gram in a text is an item of its own; clipped matches are then common items, and all of
    them together one sparse matrix product.
    """
    tables = (table for table, _, _ in _occurrences(tokens, max_order))
    return np.array([(table[:num_hypotheses] @ table[num_hypotheses:].T).toarray() for table in tables])


def expected_matches(tokens: Tokens, num_hypotheses: int, weights: np.ndarray, max_order: int) -> np.ndarray:
    """float64[max_order, H]: matches of each hypothesis (the first H texts), clipped at expected counts.

    An n-gram's expected count is the mean of its counts in the other texts, weighted by `weights` float64[R], which add
    up to 1 (DeNero et al., 2009).
    """
    matches = []
    for table, gram, occurrence in _occurrences(tokens, max_order):
        expected = np.bincount(gram, table[num_hypotheses:].T @ weights) if len(gram) else np.zeros(1)
        # A whole number clipped at E is the sum over its occurrences 0, 1, ... of what E has left for them.
        left = np.clip(expected[gram] - occurrence, 0, 1)
        matches.append(table[:num_hypotheses] @ left if len(left) else np.zeros(num_hypotheses))
    return np.array(matches)


def _occurrences(tokens: Tokens, max_order: int) -> Iterator[tuple[scipy.sparse.csr_array, np.ndarray, np.ndarray]]:
    """For each order the texts' items, N x items, each 1; an item's n-gram by number, and which occurrence it is."""
    texts = len(tokens.lengths)
    text = np.repeat(np.arange(texts), tokens.lengths)
    room = np.cumsum(tokens.lengths)[text] - np.arange(len(text))
    for n, code in enumerate(_codes(tokens, room, np.zeros_like(text), 1, max_order), 1):
        distinct, gram = np.unique(code[room >= n], return_inverse=True)
        found = np.sort(text[room >= n] * len(distinct) + gram)
        row, gram = np.divmod(found, max(len(distinct), 1))
        position = np.arange(len(found))
        new = np.diff(found, prepend=-1) > 0
        occurrence = position - np.maximum.accumulate(np.where(new, position, 0))
        item, again, most = gram.copy(), ~new, occurrence.max(initial=0) + 1
        repeated, place = np.unique(gram[again] * most + occurrence[again], return_inverse=True)
        item[again] = len(distinct) + place  # the first occurrence of n-gram g is item g
        starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=texts))])
        items = len(distinct) + len(repeated)
        table = scipy.sparse.csr_array((np.ones(len(item), np.int64), item, starts), (texts, max(items, 1)))
        which, times = np.divmod(repeated, most)
        yield table, np.append(np.arange(len(distinct)), which), np.append(np.zeros(len(distinct), np.int64), times)


def _codes(tokens: Tokens, room: np.ndarray, group: np.ndarray, groups: int, max_order: int) -> Iterator[np.ndarray]:
    """For each order the n-grams that start at every token as int64[M], equal within a group where they are equal.

    Codes sort like the n-grams themselves, so those of one order lie together when a longer order is sorted. Behind
    the end of a text stands 0.
    """
    symbols = np.append(tokens.ids + 1, np.zeros(max_order, np.int64))
    code, size = group, groups
    for n in range(max_order):
        if size * (tokens.size + 1) >= _LIMIT:  # too many possible codes to pack: number those that occur
            distinct, code = np.unique(code, return_inverse=True)
            size = len(distinct)
        code = code * (tokens.size + 1) + np.where(room > n, symbols[n : n + len(code)], 0)
        size *= tokens.size + 1
        yield code
