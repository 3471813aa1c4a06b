"""The embedded corpus: an English-German synchronous grammar that generates any number of distinct sentence pairs.

A sentence is a small tree of phrases. The methods `english()` and `german(case)` render the same tree with the word
order and agreement of each language (verb second, verb last, four cases, three genders). The English side determines
the German one. An `Author` draws random trees that make sense.

    inflection      grammatical categories, inflection tables, word classes
    lexicon, verbs  the words, and the arguments of each verb
    phrases         pronouns, determiners, noun phrases, adverbials
    syntax          clauses, sentences and their word order
    phrase_author   draws random phrases
    author          draws random clauses and sentences
"""

import zlib
from collections.abc import Iterator

from nmt_jax.errors import UserError

__all__ = ["SPLITS", "pairs", "split_of"]

SPLITS = ("train", "dev", "test")


def pairs(split: str, count: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """The first `count` distinct (English, German) pairs of a split: "train", "dev" or "test".

    Equal arguments give equal pairs on every machine, and a smaller count gives a prefix. A checksum of the English
    sentence determines its split (1/16 dev, 1/16 test), so splits never share a sentence, whatever their seeds. Raises
    UserError for an unknown split or a count below 1.
    """
    if split not in SPLITS:
        raise UserError(f"grammar: unknown split {split!r}: choose one of {', '.join(SPLITS)}")
    if count < 1:
        raise UserError(f"grammar: the number of pairs is {count}, but must be at least 1")
    return _generate(split, count, seed)


def split_of(text: str) -> str:
    """The split that a text belongs to, by its checksum: 1/16 of all texts to "dev", 1/16 to "test"."""
    return ("dev", "test", "train")[min(zlib.crc32(text.encode()) % 16, 2)]


def _generate(split: str, count: int, seed: int) -> Iterator[tuple[str, str]]:
    from nmt_jax.data.grammar.author import Author  # imported here, since its tables take time that few commands need

    author = Author(seed)
    seen: set[int] = set()  # checksums instead of texts, to save memory
    while len(seen) < count:
        sentence = author.sentence()
        english = sentence.english()
        checksum = zlib.crc32(english.encode())
        if split_of(english) == split and checksum not in seen:
            seen.add(checksum)
            yield english, sentence.german()
