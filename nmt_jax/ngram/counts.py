"""Counts of the n-grams of a text, with memory for the distinct n-grams only."""

import array
import collections
import dataclasses
import itertools
import pathlib
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO

import numpy as np

from nmt_jax.errors import UserError
from nmt_jax.ngram.trie import NONE, Trie, pack, preceding
from nmt_jax.ngram.vocabulary import BOS, EOS, SPECIAL, Vocabulary, split
from nmt_jax.progress import track
from nmt_jax.storage.files import naming

BLOCK = 1 << 21  # places of the text that are counted together, 8 bytes each in a few arrays


@dataclasses.dataclass(frozen=True, eq=False)
class Counts:
    """The n-grams of a text up to an order, and for each order the occurrences int64 of each n-gram.

    A line is `<s>`, its words and `</s>`; n-grams do not cross lines.
    """

    vocabulary: Vocabulary
    trie: Trie
    occurrences: tuple[np.ndarray, ...]

    def adjusted(self, suffixes: list[np.ndarray]) -> Iterator[np.ndarray]:
        """Yields for each order the adjusted counts int64 (Kneser and Ney, 1995), `<s>` with 0.

        An n-gram of the highest order, or one that begins with `<s>`, has its occurrences; any other the number of
        distinct words before it. suffixes: those of the trie.
        """
        for order, (occurrences, longer) in enumerate(itertools.zip_longest(self.occurrences, suffixes), start=1):
            adjusted = occurrences.copy()
            if longer is not None:
                before = np.bincount(longer, minlength=len(occurrences))
                adjusted[before > 0] = before[before > 0]  # the others begin with <s>
            if order == 1:
                adjusted[BOS] = 0
            yield adjusted


def count(lines: Iterable[str], order: int, *, name: str = "text", total: int | None = None) -> Counts:
    """Counts the n-grams of the orders 1 to `order` in lines of words separated by spaces or tabs.

    The word `<unk>` stands for unknown words. While counting, a temporary file has 8 bytes for each word. name: of the
    text, for errors. total: number of lines, for the display of progress. Raises UserError for a text without words,
    and `name:LINE` for one with `<s>` or `</s>`.
    """
    with tempfile.TemporaryFile() as file, tempfile.TemporaryFile() as other:
        vocabulary = _write_stream(track(lines, "reading lines", total), file, name)
        words = np.memmap(file, np.int32, "r")
        occurrences = [np.zeros(len(vocabulary), np.int64)]
        for start, stop in _blocks(len(words)):
            _append(words[start:stop], other)  # not through the map, in which a full disk would be fatal
            occurrences[0] += np.bincount(words[start:stop], minlength=len(vocabulary))
        ends = np.memmap(other, np.int32, "r+")  # number of the n-gram that ends at each place
        trie = Trie(len(vocabulary), ())
        for longer in range(2, order + 1):
            found = _count_order(words, ends, f"counting {longer}-grams")
            trie = Trie(len(vocabulary), (*trie.keys, found[0]))
            occurrences.append(found[1])
            if longer < order:
                _number_ends(words, ends, trie)
        return Counts(vocabulary, trie, tuple(occurrences))


def _write_stream(lines: Iterable[str], file: IO[bytes], name: str) -> Vocabulary:
    """Writes the numbers of all words, int32, and returns the vocabulary, in the order of first occurrences."""
    numbers: dict[str, int] = collections.defaultdict(itertools.count(len(SPECIAL)).__next__)
    numbers.update({word: number for number, word in enumerate(SPECIAL)})
    stream, only_ends = array.array("i"), True
    for line_number, line in enumerate(lines, start=1):
        words = split(line)
        for mark in (SPECIAL[BOS], SPECIAL[EOS]):
            if mark in line and mark in words:
                raise UserError(f"{name}:{line_number}: the word {mark} marks line ends; remove it from the text")
        only_ends = only_ends and not words
        stream.append(BOS)
        stream.extend(map(numbers.__getitem__, words))
        stream.append(EOS)
        if len(stream) > BLOCK:
            _append(stream, file)
            del stream[:]
    if only_ends:
        raise UserError(f"{name}: the text has no words; there is nothing to count")
    _append(stream, file)
    return Vocabulary(list(numbers))


def _append(numbers: "array.array[int] | np.ndarray", file: IO[bytes]) -> None:
    with naming(pathlib.Path(tempfile.gettempdir())):  # the file has no name
        numbers.tofile(file)
        file.flush()


def _blocks(length: int) -> list[tuple[int, int]]:
    return [(start, min(start + BLOCK, length)) for start in range(0, length, BLOCK)]


def _keys(words: np.ndarray, ends: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Returns for each place of a block the n-gram that ends there; negative if there is none in the line."""
    before = int(ends[start - 1]) if start else NONE
    own = np.asarray(words[start:stop])
    return pack(preceding(np.asarray(ends[start:stop]), own, before), own)


def _count_order(words: np.ndarray, ends: np.ndarray, label: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns the sorted n-grams of the next order and their occurrences; ends: those of the order before."""
    found = np.zeros(0, np.int64), np.zeros(0, np.int64)
    blocks = _blocks(len(words))
    for block in track(blocks, label, len(blocks)):
        keys = _keys(words, ends, *block)
        found = _merged(found, np.unique(keys[keys >= 0], return_counts=True))
    return found


def _merged(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the union of two sorted lists of n-grams, and the sums of their occurrences."""
    if not len(one[0]):
        return other
    keys, occurrences = (np.concatenate(pair) for pair in zip(one, other, strict=True))
    ranks = np.argsort(keys, kind="stable")  # merges two sorted runs in linear time
    keys, occurrences = keys[ranks], occurrences[ranks]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return keys[first], np.add.reduceat(occurrences, first)


def _number_ends(words: np.ndarray, ends: np.ndarray, trie: Trie) -> None:
    """Replaces the numbers of the n-grams that end at each place by those of the highest order of the trie."""
    for start, stop in reversed(_blocks(len(words))):  # backwards, since a block needs the old number before it
        keys = _keys(words, ends, start, stop)
        places = np.searchsorted(trie.keys[-1], keys)
        ends[start:stop] = np.where(keys >= 0, places, NONE)
