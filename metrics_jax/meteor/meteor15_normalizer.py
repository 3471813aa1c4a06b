"""METEOR 1.5's normaliser (option -norm): Moses' tokeniser for six languages, with abbreviations undotted."""

import dataclasses
import re

LANGUAGES = ("en", "cz", "de", "es", "fr", "ru")
# What METEOR takes for a letter: Latin, Cyrillic and phonetic extensions, not "ǎ", Greek or any other script. Whatever
# else is no digit, white space, period, apostrophe, comma or hyphen becomes a word of its own.
_LETTERS = "A-Za-zÀ-ÖØ-öø-žЀ-ԧᴀ-ᵿꙀ-ꙮ꙾-ꚗ"
_SYMBOL = re.compile(rf"[^{_LETTERS}0-9 \v.',-]")
_PUNCTUATION = re.compile(rf"[^{_LETTERS}0-9]")
_PERIODS = re.compile(r"\.\.+")
# Patterns that take in both neighbours do not see a mark right after the one they changed: "a-b-c" -> "a b-c".
_COMMAS = tuple(map(re.compile, ("([^0-9]),([^0-9])", "([0-9]),([^0-9])", "([^0-9]),([0-9])")))
_HYPHEN = re.compile(rf"([{_LETTERS}0-9.])-([{_LETTERS}0-9])")
_LETTER = re.compile(f"[{_LETTERS}]")
_APOSTROPHES = {  # language: patterns and what they become
    "en": (
        (re.compile(rf"([^{_LETTERS}])'([^{_LETTERS}])"), r"\1 ' \2"),
        (re.compile(rf"([^{_LETTERS}0-9])'([{_LETTERS}])"), r"\1 ' \2"),
        (re.compile(rf"([{_LETTERS}])'([^{_LETTERS}])"), r"\1 ' \2"),
        (re.compile(rf"([{_LETTERS}])'([{_LETTERS}])"), r"\1 '\2"),  # it's -> it 's
        (re.compile("([0-9])'s"), r"\1 's"),
    ),
    "fr": (
        (re.compile(rf"([^{_LETTERS}])'([^{_LETTERS}])"), r"\1 ' \2"),
        (re.compile(rf"([^{_LETTERS}])'([{_LETTERS}])"), r"\1 ' \2"),
        (re.compile(rf"([{_LETTERS}])'([^{_LETTERS}])"), r"\1 ' \2"),
        (re.compile(rf"([{_LETTERS}])'([{_LETTERS}])"), r"\1' \2"),  # l'eau -> l' eau
    ),
}
_OTHER_APOSTROPHES = ((re.compile("'"), " ' "),)
_UNIFORM = str.maketrans({**dict.fromkeys("\t\n\r\f", " "), **dict.fromkeys("`‘’", "'"), **dict.fromkeys("“”", '"')})
_WIDE_SPACES = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
_ENDS = "".join(map(chr, range(33)))  # what Java's trim() takes off


@dataclasses.dataclass(frozen=True)
class Normalizer:
    """Text -> normalised words in lower case.

    language: one of `LANGUAGES`. A final period is split off its word unless the next word begins in a-z, the word is
    one of `prefixes`, or one of `numeric` and a digit follows. no_punct: leave out whatever is no letter or digit.
    """

    language: str
    prefixes: frozenset[str]
    numeric: frozenset[str]
    no_punct: bool = False

    def words(self, text: str) -> list[str]:
        """The words of a text; none of an empty one."""
        text = f" {text.translate(_UNIFORM)} ".replace("''", '"').replace("–", " - ")
        text = _SYMBOL.sub(r" \g<0> ", text)
        if ".." in text:
            text = _PERIODS.sub(r" \g<0> ", text)
        if "," in text:
            for comma in _COMMAS:
                text = comma.sub(r"\1 , \2", text)
        text = text.replace("--", "-")
        if "'" in text:
            for apostrophe, split in _APOSTROPHES.get(self.language, _OTHER_APOSTROPHES):
                text = apostrophe.sub(split, text)
        if "-" in text:
            text = _HYPHEN.sub(r"\1 \2", text)
        if "." in text:
            text = self._split_periods(text)
        if self.no_punct:
            text = _PUNCTUATION.sub(" ", text)
        if not text.isascii():
            text = _WIDE_SPACES.sub(" ", text)
        return [word for word in text.strip(_ENDS).lower().split(" ") if word]

    def _split_periods(self, text: str) -> str:
        """Take the periods out of abbreviations (U.S. -> US), and split the period at a sentence's end off its word."""
        words = [word for word in text.split(" ") if word]
        for place, word in enumerate(words):
            if word[-1] == "." and len(word) > 1 and word[-2] != ".":
                stem, following = word[:-1], words[place + 1][0] if place + 1 < len(words) else ""
                if "." in stem and _LETTER.search(stem):
                    words[place] = word.replace(".", "")
                elif not (
                    stem in self.prefixes
                    or "a" <= following <= "z"
                    or (stem in self.numeric and "0" <= following <= "9")
                ):
                    words[place] = f"{stem} ."
        return " ".join(words)
