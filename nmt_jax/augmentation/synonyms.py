"""Replacements of words by WordNet synonyms of the same part of speech, in the same form."""

import functools
from collections.abc import Mapping

from metrics_jax.surface.wordnet import WordNet
from nmt_jax.augmentation.inflection import forms, main_reading, readings
from nmt_jax.augmentation.known_forms import most_frequent
from nmt_jax.augmentation.words import is_content

MOST_SENSES = 5  # in tagged texts; words with more are too ambiguous, such as `hold` and `set`
CERTAIN = 2  # the part of speech of a word has so many times the tagged senses of any other


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
        part, base, ending = reading
        senses = [members for members in self._first_senses(part, base) if base in members]  # else it is a name
        bases = [other for members in senses for other in members if self._is_usual(part, other, members)]
        found = (most_frequent(forms(self._wordnet, part, other, ending), self._known) for other in bases)
        return tuple(form for form in dict.fromkeys(found) if form not in ("", word) and self._fits(part, ending, form))

    def _first_senses(self, part: str, base: str) -> tuple[tuple[str, ...], ...]:
        return self._wordnet.senses(part, base)[: self._senses]

    def _is_usual(self, part: str, base: str, members: tuple[str, ...]) -> bool:
        """Whether a synonym mostly has this meaning."""
        clear = self._wordnet.num_tagged(part, base) <= MOST_SENSES and members in self._first_senses(part, base)
        return clear and base == base.lower() and is_content(base)

    def _fits(self, part: str, ending: str, form: str) -> bool:
        """Whether no other reading of a form has more senses: `attending` is no noun, although WordNet has one."""
        senses = {
            (one.part, one.ending): self._wordnet.num_tagged(one.part, one.base)
            for one in readings(self._wordnet, form)
        }
        return is_content(form) and senses.get((part, ending), 0) >= max(senses.values(), default=0)
