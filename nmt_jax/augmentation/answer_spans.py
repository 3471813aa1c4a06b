"""Spans of English sentences that may answer a question, found by rules: names, dates, numbers and noun phrases."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from metrics_jax.surface import stop_words
from nmt_jax.augmentation.words import is_content

KINDS = ("name", "date", "number", "phrase")

_MONTH = (
    "(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Jan|Feb|Aug|Sept|Oct|Nov|Dec)\.)"
)
_YEAR = r"(?:1\d|20)\d\d"
_DATE = rf"{_MONTH} \d{{1,2}}(?: ?, ?{_YEAR})?|\d{{1,2}} {_MONTH}(?: {_YEAR})?|{_MONTH} {_YEAR}|{_YEAR}s?"
_TENS = "(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:-[a-z]+)?"
_NUMBER_WORD = (
    f"two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|{_TENS}"
)
_NUMBER = (
    rf"(?:[$£€] ?)?(?:\d+(?:[.,]\d+)*|(?i:{_NUMBER_WORD}))(?: (?:hundred|thousand|million|billion|trillion))*"
    r"(?: ?%| per ?cent)?"
)
_CAPITALIZED = r"[^\W\d_a-z]\w*(?:[-'’.]\w+)*"
_NAME = rf"{_CAPITALIZED}(?:(?:\.? | of (?:the )?| de | la | van | von | der ){_CAPITALIZED})*"
_NOUNS = r"(?:[a-z]+(?:-[a-z]+)* ){0,2}[a-z]+(?:-[a-z]+)*"
_AFTER_NOUNS = (
    r"(?= ?[.,;:?!)]| (?:of|in|on|at|by|for|from|with|to|and|or|that|which|who|is|was|are|were|has|had|have|as|than"
    r"|when|where|while|because|if|but|into|between|during|through|after|before|under|over)\b|$)"
)
_DETERMINER, _PREPOSITION = "(?:the|an?|its|their|his|her)", "(?:of|in|by|for|with|from|as)"
_PATTERNS = {
    "date": re.compile(rf"(?<![\w.,$£€-])(?:{_DATE})(?![\w%-]|[.,]\d)"),
    "number": re.compile(rf"(?<![\w.,-]){_NUMBER}(?![\w-]|[.,]\d)"),
    "name": re.compile(rf"(?<![\w.'’-]){_NAME}"),
    "phrase": re.compile(rf"\b(?i:{_PREPOSITION} {_DETERMINER}|{_DETERMINER}|{_PREPOSITION}) ({_NOUNS}){_AFTER_NOUNS}"),
}
_NO_NOUN = re.compile(r"\w+(?:ed|ing|ly)|\w{1,2}")  # the last word of a phrase that is probably no noun
_SENTENCE_END = re.compile(r"(?<=[.!?…])([\"'”’)\]]*)\s+(?=[\"'“‘`(\[]*[^\W\d_a-z])")
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:Mr|Mrs|Ms|Dr|St|Prof|Gen|Col|Sen|Rep|Gov|Rev|vs|No|[A-Z])\.$")


class Span(NamedTuple):
    """A range of characters, and its kind, one of `KINDS`."""

    kind: str
    start: int
    end: int


def sentences(text: str) -> list[tuple[int, int]]:
    """Returns the ranges of characters of the sentences of a text, without white space around them."""
    cuts = [match for match in _SENTENCE_END.finditer(text) if not _ABBREVIATION.search(text[: match.start()])]
    edges = zip([0, *(cut.end() for cut in cuts)], [*(cut.end(1) for cut in cuts), len(text)], strict=True)
    found = []
    for start, end in edges:
        part = text[start:end]
        if part.strip():
            found.append((start + len(part) - len(part.lstrip()), start + len(part.rstrip())))
    return found


def lower_case_words(texts: Collection[str]) -> set[str]:
    """Returns the words that occur in lower case: such a word with a capital is no name where a sentence begins."""
    return {word for text in texts for word in re.findall(r"\b[a-z]\w*", text)}


def find_spans(sentence: str, lower_case: Collection[str], kinds: Sequence[str] = KINDS) -> list[Span]:
    """Returns the spans of these kinds in a sentence, in text order, none of which overlaps another.

    lower_case: as `lower_case_words` returns them. Of overlapping spans, dates come before numbers, names and phrases.
    """
    found: list[Span] = []
    for kind, pattern in _PATTERNS.items():  # all kinds, so that a month is never taken for a name
        for match in pattern.finditer(sentence):
            for span in _checked(sentence, kind, match, lower_case):
                if all(span.end <= other.start or other.end <= span.start for other in found):
                    found.append(span)
    return sorted((span for span in found if span.kind in kinds), key=lambda span: span.start)


def _checked(sentence: str, kind: str, match: re.Match[str], lower_case: Collection[str]) -> Iterator[Span]:
    """Yields the span of a match if it is one."""
    start, end = match.span(match.lastindex or 0)
    if kind == "name":
        start, end = _name(sentence, start, end, lower_case)
    elif kind == "phrase":
        nouns = re.split("[ -]", sentence[start:end])
        if not all(map(is_content, nouns)) or _NO_NOUN.fullmatch(nouns[-1]):
            return
    if start < end:
        yield Span(kind, start, end)


def _name(sentence: str, start: int, end: int, lower_case: Collection[str]) -> tuple[int, int]:
    """The range of a name without function words before it and without a final 's; empty if nothing is left."""
    first = re.search(r"\w", sentence)
    begins = first is not None and first.start() == start
    possessive = re.search(r"['’]s?$", sentence[start:end])
    end -= len(possessive[0]) if possessive else 0
    while (parts := sentence[start:end].split(" ", 1))[0].lower() in stop_words.smart():
        if len(parts) == 1:
            return start, start
        start += len(parts[0]) + 1
        begins = False
    alone = " " not in sentence[start:end]
    if (begins and alone and sentence[start:end].lower() in lower_case) or end - start < 2:
        return start, start
    return start, end
