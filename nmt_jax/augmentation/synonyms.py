"""Replacements of words by WordNet synonyms of the same part of speech, in the same form."""

import functools
from collections.abc import Mapping

from metrics_jax.surface.wordnet import PARTS, WordNet
from nmt_jax.augmentation.inflection import forms, main_reading
from nmt_jax.augmentation.known_forms import most_frequent
from nmt_jax.augmentation.words import is_content

MOST_SENSES = 5  # in tagged texts; words with more are too ambiguous, such as `hold` and `set`
CERTAIN = 4  # how many times as many tagged senses the part of speech of a word has as its other ones


class Synonyms:
    """The synonyms of lower-case words; known: the forms that replacements may have, with their counts.

    senses: number of senses of a word that are used, the most frequent first. A synset must be among these senses of
    both words, so that `car` does not become `machine`, which rarely means a car.
    """

    def __init__(self, wordnet: WordNet, known: Mapping[str, int], senses: int):
        self._wordnet, self._known, self._senses = wordnet, known, senses
        self._cached = functools.lru_cache(1 << 17)(self._find)

    def __call__(self, word: str) -> tuple[str, ...]:
        """Returns the replacements of a word, those of its most frequent sense first; none if its form is unclear."""
        return self._cached(word)

    def _find(self, word: str) -> tuple[str, ...]:
        reading = main_reading(self._wordnet, word, CERTAIN) if is_content(word) else None
        if reading is None or self._wordnet.num_tagged(reading.part, reading.base) > MOST_SENSES:
            return ()
        found = []
        for members in self._first_senses(reading.part, reading.base):
            if reading.base in members:  # else it is a name, spelled with a capital
                bases = [
                    base for base in members if base != reading.base and self._is_usual(reading.part, base, members)
                ]
                found += [
                    most_frequent(forms(self._wordnet, reading.part, base, reading.ending), self._known)
                    for base in bases
                ]
        return tuple(form for form in dict.fromkeys(found) if is_content(form) and form != word)

    def _first_senses(self, part: str, base: str) -> tuple[tuple[str, ...], ...]:
        return self._wordnet.senses(part, base)[: self._senses]

    def _is_usual(self, part: str, base: str, members: tuple[str, ...]) -> bool:
        """Whether a synonym mostly has this part of speech and this meaning."""
        if base != base.lower() or not is_content(base):
            return False
        counts = {other: self._wordnet.num_tagged(other, base) for other in PARTS}
        return counts[part] == max(counts.values()) <= MOST_SENSES and members in self._first_senses(part, base)
