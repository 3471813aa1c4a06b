"""The words of a text: a replacement must be one of them, so that no form is invented."""

import collections
from collections.abc import Iterable, Iterator, Mapping

from nmt_jax.augmentation.words import split


def count_forms(lines: Iterable[str]) -> dict[str, int]:
    """Counts the words of lower-case letters, without attached punctuation."""
    words = (split(token).word for line in lines for token in line.split())
    return collections.Counter(word for word in words if word.isalpha() and word == word.lower())


def frequent(counts: Mapping[str, int], smallest: int) -> dict[str, int]:
    """The words that occur at least `smallest` times."""
    return {word: count for word, count in counts.items() if count >= smallest}


def most_frequent(forms: Iterable[str], counts: Mapping[str, int]) -> str:
    """The form that occurs most often, the first of them if several do; "" if none occurs."""
    known: Iterator[str] = (form for form in forms if form in counts)
    return max(known, key=lambda form: counts[form], default="")
