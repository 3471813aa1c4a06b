"""N-grams of a text; counts of many texts at once, whose n-grams are integers, so that one sort serves all orders."""

import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_LIMIT = 2**62  # codes are packed into int64
_BLOCK = 2**16  # tokens sorted at a time; they fit into a processor's cache

Ngram = tuple[str, ...]


def word_ngrams(words: Sequence[str], max_order: int) -> list[Ngram]:
    """The n-grams of one text, of all orders up to `max_order`."""
    return [tuple(words[i : i + n]) for n in range(1, max_order + 1) for i in range(len(words) - n + 1)]


class Tokens(NamedTuple):
    """N texts as integers: concatenated ids int64[M], lengths int64[N], and size, an upper bound of the ids."""

    ids: np.ndarray
    lengths: np.ndarray
    size: int


def encode_words(texts: Iterable[Sequence[Hashable]]) -> Tokens:
    """Number the tokens of texts in order of first occurrence."""
    texts = list(texts)
    numbers: defaultdict[Hashable, int] = defaultdict(itertools.count().__next__)
    ids = np.fromiter(map(numbers.__getitem__, itertools.chain.from_iterable(texts)), np.int64)
    return Tokens(ids, np.fromiter(map(len, texts), np.int64, len(texts)), len(numbers))


def encode_characters(texts: Sequence[str]) -> Tokens:
    """Number the characters (code points) that occur in the texts."""
    points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    used = np.zeros(int(points.max(initial=0)) + 1, np.bool_)
    used[points] = True
    number = np.cumsum(used) - 1
    return Tokens(number[points], np.fromiter(map(len, texts), np.int64, len(texts)), int(used.sum()))


def num_ngrams(lengths: np.ndarray, max_order: int) -> np.ndarray:
    """Number of n-grams of each order, int64[max_order, ...], in texts of `lengths` tokens."""
    return np.stack([np.maximum(lengths - n, 0) for n in range(max_order)])


def clipped_matches(tokens: Tokens, num_references: np.ndarray, max_order: int) -> np.ndarray:
    """Clipped n-gram matches int64[max_order, H] of H hypotheses (Papineni et al., 2002, section 2.1).

    The first H texts are the hypotheses; the references of the first follow, then those of the second, and so on;
    num_references int64[H] has their numbers. An n-gram counts min(count in hypothesis, largest count in a reference).
    """
    hypotheses = len(num_references)
    matches = np.zeros((max_order, hypotheses), np.int64)
    text_starts = np.concatenate([[0], np.cumsum(tokens.lengths)])
    reference_starts = hypotheses + np.concatenate([[0], np.cumsum(num_references)])
    sizes = np.diff(text_starts[: hypotheses + 1]) + np.diff(text_starts[reference_starts])
    block = np.cumsum(sizes) // _BLOCK
    for first, last in itertools.pairwise([*np.flatnonzero(np.diff(block, prepend=-1)), hypotheses]):
        texts = [np.arange(first, last), np.arange(reference_starts[first], reference_starts[last])]
        ids = [tokens.ids[text_starts[side[0]] : text_starts[side[-1] + 1]] for side in texts]
        part = Tokens(np.concatenate(ids), tokens.lengths[np.concatenate(texts)], tokens.size)
        matches[:, first:last] = _clipped_matches(part, num_references[first:last], max_order)
    return matches


def _clipped_matches(tokens: Tokens, num_references: np.ndarray, max_order: int) -> np.ndarray:
    """`clipped_matches` of one block, after sorting by the longest n-gram at each token, which joins equal n-grams."""
    hypotheses = np.arange(len(num_references))
    first = np.cumsum(num_references) - num_references
    # The number of each reference within its segment, from 1; 0 is the hypothesis.
    slots = 1 + np.arange(num_references.sum()) - np.repeat(first, num_references)
    text = np.repeat(np.arange(len(tokens.lengths)), tokens.lengths)
    group = np.concatenate([hypotheses, np.repeat(hypotheses, num_references)])[text]
    side = np.concatenate([np.zeros_like(hypotheses), slots])[text]
    remaining = np.cumsum(tokens.lengths)[text] - np.arange(len(text))  # tokens to the end of the text
    codes = list(_codes(tokens, remaining, group, len(hypotheses), max_order))
    order = np.argsort(codes[-1], kind="stable")  # faster than the default on partly sorted input
    side, group, remaining = side[order], group[order], remaining[order]
    count = [np.cumsum(side == slot, dtype=np.int32) for slot in range(num_references.max(initial=0) + 1)]
    matches = []
    for n, code in enumerate(codes, 1):
        ordered = code[order]
        ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], np.True_)) if len(order) else order
        runs = [np.diff(total[ends], prepend=0) for total in count]
        clipped = np.minimum(runs[0], np.maximum.reduce(runs[1:]))
        clipped[remaining[ends] < n] = 0  # the text ends before the n-gram does
        matches.append(np.bincount(group[ends], clipped, len(hypotheses)))
    return np.array(matches).astype(np.int64)


def pairwise_matches(tokens: Tokens, num_hypotheses: int, max_order: int) -> np.ndarray:
    """Clipped matches int64[max_order, H, R] of every hypothesis (the first H texts) with every other text.

    The k-th occurrence of an n-gram in a text is an item; all clipped matches, common items, are one sparse product.
    """
    tables = (table for table, _, _ in _occurrences(tokens, max_order))
    return np.array([(table[:num_hypotheses] @ table[num_hypotheses:].T).toarray() for table in tables])


def expected_matches(tokens: Tokens, num_hypotheses: int, weights: np.ndarray, max_order: int) -> np.ndarray:
    """Matches float64[max_order, H] of each hypothesis (the first H texts), clipped at expected counts.

    The expected count of an n-gram is the mean of its counts in the other texts, weighted by `weights` float64[R],
    which sum to 1 (DeNero et al., 2009).
    """
    matches = []
    for table, gram, occurrence in _occurrences(tokens, max_order):
        expected = np.bincount(gram, table[num_hypotheses:].T @ weights) if len(gram) else np.zeros(1)
        # min(count, E) is the sum of clip(E - k, 0, 1) over the occurrences k = 0, 1, ..., count - 1.
        left = np.clip(expected[gram] - occurrence, 0, 1)
        matches.append(table[:num_hypotheses] @ left if len(left) else np.zeros(num_hypotheses))
    return np.array(matches)


def _occurrences(tokens: Tokens, max_order: int) -> Iterator[tuple["csr_array", np.ndarray, np.ndarray]]:
    """For each order, a matrix texts x items of ones, and the n-gram and the occurrence number of each item."""
    from scipy.sparse import csr_array  # late: it takes as long as all other imports

    texts = len(tokens.lengths)
    text = np.repeat(np.arange(texts), tokens.lengths)
    remaining = np.cumsum(tokens.lengths)[text] - np.arange(len(text))
    for n, code in enumerate(_codes(tokens, remaining, np.zeros_like(text), 1, max_order), 1):
        distinct, gram = np.unique(code[remaining >= n], return_inverse=True)
        found = np.sort(text[remaining >= n] * len(distinct) + gram)
        row, gram = np.divmod(found, max(len(distinct), 1))
        position = np.arange(len(found))
        new = np.diff(found, prepend=-1) > 0
        occurrence = position - np.maximum.accumulate(np.where(new, position, 0))
        item, again, most = gram.copy(), ~new, occurrence.max(initial=0) + 1
        repeated, index = np.unique(gram[again] * most + occurrence[again], return_inverse=True)
        item[again] = len(distinct) + index  # the first occurrence of n-gram g is item g
        starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=texts))])
        items = len(distinct) + len(repeated)
        table = csr_array((np.ones(len(item), np.int64), item, starts), (texts, max(items, 1)))
        repeated_gram, times = np.divmod(repeated, most)
        grams = np.append(np.arange(len(distinct)), repeated_gram)
        yield table, grams, np.append(np.zeros(len(distinct), np.int64), times)


def _codes(
    tokens: Tokens, remaining: np.ndarray, group: np.ndarray, groups: int, max_order: int
) -> Iterator[np.ndarray]:
    """For each order, codes int64[M] of the n-grams that start at every token, equal for equal n-grams of a group.

    Codes sort like the n-grams themselves, so that n-grams of all orders are adjacent after sorting by the longest.
    Positions beyond the end of a text are encoded as 0.
    """
    symbols = np.append(tokens.ids + 1, np.zeros(max_order, np.int64))
    code, size = group, groups
    for n in range(max_order):
        if size * (tokens.size + 1) >= _LIMIT:  # too many possible codes: renumber those that occur
            distinct, code = np.unique(code, return_inverse=True)
            size = len(distinct)
        code = code * (tokens.size + 1) + np.where(remaining > n, symbols[n : n + len(code)], 0)
        size *= tokens.size + 1
        yield code
