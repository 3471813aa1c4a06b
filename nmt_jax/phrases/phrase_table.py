"""The phrase table: translations of source phrases, with log-probabilities, in sorted arrays."""

import dataclasses
import os
import zipfile
from typing import Any, NamedTuple

import numpy as np

from nmt_jax.errors import UserError
from nmt_jax.ngram.trie import NONE, Trie, pack
from nmt_jax.phrases import reordering
from nmt_jax.storage.files import whole_file
from nmt_jax.storage.paths import local_path_of, path_of


class Occurrences(NamedTuple):
    """Phrase pairs of a text, in which sentences follow each other.

    source_start, source_length, target_start, target_length: int64[P], places and lengths. orientation: int[P, 2].
    """

    source_start: np.ndarray
    source_length: np.ndarray
    target_start: np.ndarray
    target_length: np.ndarray
    orientation: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class PhraseTable:
    """R phrase pairs, sorted by source phrase, the most probable translations first.

    trie: the source phrases, and beginnings of them; their numbers count over all lengths. first: int64[N + 1], the
    first row of each source phrase. scores: float32[R, 4], log p(f|e), lex(f|e), p(e|f), lex(e|f). orientations:
    float32[R, 6], log-probabilities of orientations. word_start: int64[R + 1]. words: int32, the target phrases.
    """

    trie: Trie
    first: np.ndarray
    scores: np.ndarray
    orientations: np.ndarray
    word_start: np.ndarray
    words: np.ndarray

    def __len__(self) -> int:
        return len(self.scores)

    def find(self, sentence: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the translations of all phrases of a sentence: start, end and row, int64[O] each.

        sentence: int64[S], numbers of words, NONE for unknown ones.
        """
        found, offset = [], 0
        numbers = np.asarray(sentence, np.int64)
        for length, size in enumerate(self.trie.sizes[: len(sentence)], start=1):
            if length > 1:
                numbers = self.trie.find(length, numbers[:-1], sentence[length - 1 :])
            start = np.flatnonzero(numbers != NONE)
            phrases = numbers[start] + offset
            counts = self.first[phrases + 1] - self.first[phrases]
            rows = np.repeat(self.first[phrases] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
            starts = np.repeat(start, counts)
            found.append((starts, starts + length, rows))
            offset += size
        empty = np.zeros(0, np.int64)
        return tuple(map(np.concatenate, zip(*found, strict=True))) if found else (empty, empty, empty)  # type: ignore[return-value]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the table as .npz."""
        arrays: dict[str, Any] = {f"keys_{order}": one for order, one in enumerate(self.trie.keys, start=2)}
        arrays |= {name: getattr(self, name) for name in ARRAYS} | {"num_words": self.trie.num_words}
        with whole_file(path_of(path)) as file:
            np.savez(file, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "PhraseTable":
        """Reads what `save` wrote. Raises UserError for a file that is damaged."""
        try:
            with local_path_of(path).open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                orders = sorted(int(name.removeprefix("keys_")) for name in file if name.startswith("keys_"))
                trie = Trie(int(file["num_words"]), tuple(file[f"keys_{order}"] for order in orders))
                return cls(trie, *(file[name] for name in ARRAYS))
        except (ValueError, KeyError, EOFError, zipfile.BadZipFile):
            raise UserError(f"{path}: damaged phrase table; delete the file, and train again") from None


ARRAYS = ("first", "scores", "orientations", "word_start", "words")


def build(
    found: Occurrences,
    source: np.ndarray,
    target: np.ndarray,
    source_weights: np.ndarray,
    target_weights: np.ndarray,
    *,
    num_words: int,
    most: int,
) -> PhraseTable:
    """Returns the table of phrase pairs with the `most` translations of each source phrase of the highest p(e|f).

    p(e|f) and p(f|e) are relative frequencies. Of several lexical weights of a pair, by different alignments, the
    greatest is taken (Koehn et al., 2003, section 3.2).

    source, target: int[Q], the words of the text. source_weights, target_weights: float[Q], logarithms of their lexical
    weights. num_words: of the source language.
    """
    trie, phrase = numbered(source, found.source_start, found.source_length, num_words)
    other_trie, other = numbered(target, found.target_start, found.target_length, int(target.max(initial=0)) + 1)
    num_others = sum(other_trie.sizes)
    keys, sample, pair, counts = np.unique(
        phrase * num_others + other, return_index=True, return_inverse=True, return_counts=True
    )
    phrase, other = np.divmod(keys, num_others)
    weights = [
        _greatest(_sums(one, start, length), pair, len(keys))
        for one, start, length in (
            (source_weights, found.source_start, found.source_length),
            (target_weights, found.target_start, found.target_length),
        )
    ]
    forward = np.log(counts / np.bincount(phrase, counts)[phrase])
    backward = np.log(counts / np.bincount(other, counts)[other])
    scores = np.stack([backward, weights[0], forward, weights[1]], axis=1)
    orientation = reordering.log_probabilities(found.orientation, pair, len(keys)).reshape(-1, 6)
    order = np.lexsort((-weights[1], -forward, phrase))
    sizes = np.bincount(phrase, minlength=sum(trie.sizes))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    order = order[rank < most]
    first = np.concatenate([[0], np.cumsum(np.minimum(sizes, most))])
    lengths, starts = found.target_length[sample[order]], found.target_start[sample[order]]
    word_start = np.concatenate([[0], np.cumsum(lengths)])
    places = np.repeat(starts - word_start[:-1], lengths) + np.arange(word_start[-1])
    rows = scores[order].astype(np.float32), orientation[order].astype(np.float32)
    return PhraseTable(trie, first, *rows, word_start, target[places].astype(np.int32))


def numbered(words: np.ndarray, start: np.ndarray, length: np.ndarray, num_words: int) -> tuple[Trie, np.ndarray]:
    """Returns the trie of the phrases of a text, and the number of each phrase, counted over all lengths.

    words: int[Q]. start, length: int[P], the phrases; beginnings of phrases are in the trie, too.
    """
    needed = np.zeros(len(words), np.int64)  # length of the longest phrase that starts at each place
    np.maximum.at(needed, start, length)
    numbers, keys, phrase, offset = words.astype(np.int64), [], np.zeros(len(start), np.int64), num_words
    phrase[length == 1] = numbers[start[length == 1]]
    for size in range(2, int(length.max(initial=1)) + 1):
        places = np.flatnonzero(needed >= size)
        unique, inverse = np.unique(pack(numbers[places], words[places + size - 1]), return_inverse=True)
        numbers = np.full(len(words), NONE)
        numbers[places] = inverse
        keys.append(unique)
        phrase[length == size] = numbers[start[length == size]] + offset
        offset += len(unique)
    return Trie(num_words, tuple(keys)), phrase


def _sums(values: np.ndarray, start: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Returns the sums of values of phrases."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    return total[start + length] - total[start]


def _greatest(values: np.ndarray, group: np.ndarray, num_groups: int) -> np.ndarray:
    found = np.full(num_groups, -np.inf)
    np.maximum.at(found, group, values)
    return found
