"""Words of a line as they are augmented: without attached punctuation, and which of them may be replaced."""

import re
from typing import NamedTuple

import regex

from metrics_jax.surface import stop_words

_MARK = r"[^\p{L}\p{N}\p{M}_]\p{M}*"  # punctuation or another symbol, with its combining marks
_AFFIXES = regex.compile(rf"((?:{_MARK})*)(.*?)((?:{_MARK})*)", regex.DOTALL)
_NUMBERS = re.compile(
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(thir|four|fif|six|seven|eigh|nine)teen|"
    "(twen|thir|for|fif|six|seven|eigh|nine)ty|hundreds?|thousands?|[mb]illions?|dozens?|half|third|fourth|fifth|"
    "sixth|seventh|eighth|ninth|tenth"
)
_FUNCTION_WORDS = re.compile(  # that the SMART list leaves out; "front" is part of "in front of"
    "am|amid|amidst|atop|aboard|alongside|beneath|front|inside|outside|underneath|within|whilst|whichever|whoever|"
    "(ai|are|did|does|do|had|has|have|is|must|need|sha|should|was|were|wo|would)n|ll|ve"
)


class Token(NamedTuple):
    """A word between the punctuation that is attached to it; `word` is empty if there is only punctuation."""

    before: str
    word: str
    after: str


def split(token: str) -> Token:
    """Splits off punctuation at both ends of a text without blanks."""
    match = _AFFIXES.fullmatch(token)
    assert match is not None
    return Token(*match.groups())


def is_content(word: str) -> bool:
    """Whether a lower-case word may be replaced: letters only, no English function word, no number."""
    closed = word in stop_words.smart() or _NUMBERS.fullmatch(word) or _FUNCTION_WORDS.fullmatch(word)
    return len(word) > 1 and word.isalpha() and not closed


def lowered(word: str, first: bool) -> str:
    """The word in lower case, or "" if it may be a name; first: whether it begins a line, where others have capitals.

    What is in lower case is no name, and `Dogs` at the beginning is a candidate, but `NASA` and `McCoy` are not.
    """
    if word == word.lower():
        return word
    return word.lower() if first and word == word.capitalize() else ""


def capitalized_as(word: str, model: str) -> str:
    """The word, with a capital if `model` begins with one."""
    return word[:1].upper() + word[1:] if model[:1].isupper() else word
