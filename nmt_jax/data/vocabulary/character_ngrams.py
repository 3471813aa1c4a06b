"""Character n-grams of words, from which vectors of unseen words are computed."""

from collections.abc import Sequence

import numpy as np


def ngrams(word: str, min_n: int, max_n: int) -> list[str]:
    """The n-grams of "<" + word + ">" with min_n <= n <= max_n characters, in order of their position.

    "<" and ">" distinguish prefixes and suffixes from other n-grams (Bojanowski et al., 2017, section 3.2). They are
    not n-grams on their own.
    """
    marked = f"<{word}>"
    return [
        marked[start : start + n]
        for start in range(len(marked))
        for n in range(min_n, min(max_n, len(marked) - start) + 1)
        if n > 1 or 0 < start < len(marked) - 1
    ]


def bucket(ngram: str, num_buckets: int) -> int:
    """The bucket of an n-gram: the 32-bit FNV-1a hash of its UTF-8 bytes, modulo `num_buckets`.

    Bojanowski et al. (2017), section 3.2. As in the authors' program, bytes are signed.
    """
    value = 2166136261
    for byte in ngram.encode("utf-8"):
        value = ((value ^ (byte | 0xFFFFFF00 if byte > 127 else byte)) * 16777619) & 0xFFFFFFFF
    return value % num_buckets


def buckets(words: Sequence[str], *, min_n: int, max_n: int, num_buckets: int) -> tuple[np.ndarray, np.ndarray]:
    """Buckets of all n-grams of the words: the index of the word and the bucket, int32[P] each, in order of words."""
    known: dict[str, int] = {}
    indices: list[int] = []
    numbers: list[int] = []
    for index, word in enumerate(words):
        for ngram in ngrams(word, min_n, max_n):
            if (number := known.get(ngram)) is None:
                number = known[ngram] = bucket(ngram, num_buckets)
            indices.append(index)
            numbers.append(number)
    return np.array(indices, np.int32), np.array(numbers, np.int32)
