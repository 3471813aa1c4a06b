"""Parallel text for alignment: numbered words, numbered pairs of words that occur together, and padded batches."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from nmt_jax.errors import UserError

Sentence = Sequence[str]
LENGTHS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)  # to which sentences are padded
LONGEST = LENGTHS[-1]
SPECIAL = 2  # numbers that are not words: padding and unknown
POSITIONS = 1 << 18  # pairs of positions in a batch


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """Sentence pairs of similar lengths, padded; rows after the last sentence are empty.

    lines: int[N], numbers of the sentence pairs, N <= B. source: int32[B, S], target: int32[B, T]: numbers of words,
    0 = padding, 1 = unknown. pairs: int32[B, T, S]: number of the pair of words at these positions, 0 = padding or a
    pair that did not occur in training.
    """

    lines: np.ndarray
    source: np.ndarray
    target: np.ndarray
    pairs: np.ndarray

    def directed(self, reverse: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns source, target and pairs; with `reverse`, the two sides are exchanged."""
        if reverse:
            return self.target, self.source, np.ascontiguousarray(self.pairs.swapaxes(1, 2))
        return self.source, self.target, self.pairs


class Words:
    """Numbers of words; 0 stands for padding and 1 for unknown words."""

    def __init__(self, sentences: Sequence[Sentence]):
        self.words = list(dict.fromkeys(word for sentence in sentences for word in sentence))
        self._number = {word: number for number, word in enumerate(self.words, start=SPECIAL)}

    def __len__(self) -> int:
        """Number of words with the two special ones."""
        return len(self.words) + SPECIAL

    def padded(self, sentences: Sequence[Sentence], rows: int, length: int) -> np.ndarray:
        """Returns int32[rows, length]: the numbers of the words."""
        numbers = np.zeros((rows, length), np.int32)
        lengths = np.array([len(sentence) for sentence in sentences])[:, None]
        is_word = np.arange(length) < lengths
        numbers[: len(sentences)][is_word] = [self._number.get(word, 1) for sentence in sentences for word in sentence]
        return numbers


class Bitext:
    """The words and the pairs of words of a parallel text; memory is needed for pairs that occur, not for all.

    keys: int64[P], sorted; pair n > 0 consists of the words keys[n] // len(target_words) and
    keys[n] % len(target_words). Pair 0 is padding. batches: the text.
    """

    def __init__(self, source: Sequence[Sentence], target: Sequence[Sentence], multiple_of: int = 1):
        """Numbers all words and pairs; multiple_of: of the rows of a batch, for several devices.

        Raises UserError for a sentence of more than LONGEST words.
        """
        self.source_words, self.target_words, self._multiple_of = Words(source), Words(target), multiple_of
        raw = list(self._raw_batches(source, target))
        keys = np.sort(np.concatenate([[0], *(keys for _, keys, _ in raw)]))
        self.keys = keys[_is_new(keys)]
        self.batches = [self._numbered(*one) for one in raw]

    @property
    def pair_words(self) -> tuple[np.ndarray, np.ndarray]:
        """int32[P], int32[P]: the source word and the target word of each pair."""
        source, target = np.divmod(self.keys, len(self.target_words))
        return source.astype(np.int32), target.astype(np.int32)

    def batches_of(self, source: Sequence[Sentence], target: Sequence[Sentence]) -> Iterator[Batch]:
        """Yields batches of a text, which may contain unknown words and pairs.

        Raises UserError for a sentence of more than LONGEST words.
        """
        return (self._numbered(*one) for one in self._raw_batches(source, target))

    def places_of(self, first: int, number: int) -> Iterator[tuple[int, slice]]:
        """Yields the numbers of the batches with lines from `first` on, and the rows of these lines."""
        for place, batch in enumerate(self.batches):
            start, stop = np.searchsorted(batch.lines, [first, first + number]).tolist()
            if start < stop:
                yield place, slice(start, stop)

    def _raw_batches(
        self, source: Sequence[Sentence], target: Sequence[Sentence]
    ) -> Iterator[tuple[Batch, np.ndarray, np.ndarray]]:
        """Yields batches without pairs, the keys of their pairs, and for each pair of positions the index of its key.

        Pairs with an empty side are left out.
        """
        by_length = defaultdict(list)
        for line, (one, other) in enumerate(zip(source, target, strict=True)):
            if one and other:
                if (longest := max(len(one), len(other))) > LONGEST:
                    raise UserError(
                        f"a sentence of {longest:,} words cannot be aligned; at most {LONGEST:,} are possible: split "
                        "it, or skip it with a smaller config.data.max_length"
                    )
                by_length[next(length for length in LENGTHS if length >= longest)].append(line)
        for length, lines in sorted(by_length.items()):
            # A power of two, so that there are few shapes, but not many empty rows for a short text.
            on_each = -(-len(lines) // self._multiple_of)
            rows = min(max(POSITIONS // length**2, 1), 1 << (on_each - 1).bit_length()) * self._multiple_of
            for first in range(0, len(lines), rows):
                some = lines[first : first + rows]
                sources = self.source_words.padded([source[line] for line in some], rows, length)
                targets = self.target_words.padded([target[line] for line in some], rows, length)
                keys = sources[:, None, :].astype(np.int64) * len(self.target_words) + targets[:, :, None]
                keys[(sources[:, None, :] == 0) | (targets[:, :, None] == 0)] = 0
                found, index = _distinct(keys)
                batch = Batch(np.array(some), sources, targets, np.empty(0, np.int32))
                yield batch, found, index

    def _numbered(self, batch: Batch, keys: np.ndarray, index: np.ndarray) -> Batch:
        numbers = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        numbers[self.keys[numbers] != keys] = 0
        return dataclasses.replace(batch, pairs=numbers.astype(np.int32)[index])


def _distinct(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the distinct keys, int64[N], sorted, and for each key the index of its equal, int32[...]."""
    order = _order(keys.ravel())
    sorted_keys = keys.ravel()[order]
    is_new = _is_new(sorted_keys)
    index = np.empty(keys.size, np.int32)
    index[order] = np.cumsum(is_new) - 1
    return sorted_keys[is_new], index.reshape(keys.shape)


def _is_new(keys: np.ndarray) -> np.ndarray:
    """Returns which of the sorted keys differ from the key before, bool[N]."""
    return np.diff(keys, prepend=-1) != 0


def _order(keys: np.ndarray) -> np.ndarray:
    """Returns positions int64[N] that sort the keys, which must not be negative."""
    bits = len(keys).bit_length()
    if int(keys.max()) >> (63 - bits):
        return np.argsort(keys)
    # NumPy sorts numbers several times faster than it finds their order, so each carries its position.
    packed = keys << bits | np.arange(len(keys))
    packed.sort()
    return packed & ((1 << bits) - 1)
