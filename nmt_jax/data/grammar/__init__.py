"""The embedded corpus: an English–German synchronous grammar that writes as many distinct sentence pairs as one needs.

A sentence is a small tree of phrases, and every phrase says itself twice: `english()` and `german(case)` render the
same tree with each language's own order and agreement (verb second, verb last, four cases, three genders). The
English side determines the German one. An `Author` draws random trees that make sense; `pairs` deals them out.

    inflection      cases, tenses and their tables; Noun, Adjective, Verb and how they bend
    lexicon, verbs  the words, and what each verb goes with
    phrases         who, what, where: pronouns, determiners, noun phrases, places
    syntax          clauses and sentences: where the words stand
    phrase_author   draws phrases at random
    author          draws clauses and sentences of them
"""

import zlib
from collections.abc import Iterator

from nmt_jax.data.grammar.author import Author
from nmt_jax.errors import UserError

__all__ = ["pairs"]

SPLITS = ("train", "dev", "test")


def pairs(split: str, count: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """The first `count` distinct (English, German) pairs of a split: "train", "dev" or "test".

    The same arguments give the same pairs anywhere, fewer give a prefix of more. A checksum of the English sentence
    decides its split (1/16 dev, 1/16 test), so that no two splits share one, whatever their seeds.
    Raises `UserError` for an unknown split, or a count below 1.
    """
    if split not in SPLITS:
        raise UserError(f"grammar: no split {split!r}: choose one of {', '.join(SPLITS)}")
    if count < 1:
        raise UserError(f"grammar: cannot make {count} pairs: ask for 1 or more")
    return _deal(split, count, seed)


def _deal(split: str, count: int, seed: int) -> Iterator[tuple[str, str]]:
    author = Author(seed)
    seen: set[int] = set()  # checksums: one integer a pair, not its text
    while len(seen) < count:
        sentence = author.sentence()
        english = sentence.english()
        checksum = zlib.crc32(english.encode())
        share = ("dev", "test", "train")[min(checksum % 16, 2)]
        if share == split and checksum not in seen:
            seen.add(checksum)
            yield english, sentence.german()
