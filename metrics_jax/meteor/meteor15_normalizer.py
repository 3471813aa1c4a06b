"""METEOR 1.5's normaliser (option -norm): Moses' tokeniser for six languages, with undotted abbreviations."""

import dataclasses
import re

LANGUAGES = ("en", "cz", "de", "es", "fr", "ru")
# METEOR's letters: Latin, Cyrillic and phonetic extensions, but not "ǎ", Greek or any other script. Other characters
# except digits, white space, periods, apostrophes, commas and hyphens become separate words.
_LETTERS = "A-Za-zÀ-ÖØ-öø-žЀ-ԧᴀ-ᵿꙀ-ꙮ꙾-ꚗ"
_SYMBOL = re.compile(rf"[^{_LETTERS}0-9 \v.',-]")
_PUNCTUATION = re.compile(rf"[^{_LETTERS}0-9]")
_PERIODS = re.compile(r"\.\.+")
# Patterns that consume both neighbours miss a mark right after the one they changed: "a-b-c" -> "a b-c".
_COMMAS = tuple(map(re.compile, ("([^0-9]),([^0-9])", "([0-9]),([^0-9])", "([^0-9]),([0-9])")))
_HYPHEN = re.compile(rf"([{_LETTERS}0-9.])-([{_LETTERS}0-9])")
_LETTER = re.compile(f"[{_LETTERS}]")
_APOSTROPHES = {  # language: patterns and replacements
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
_ENDS = "".join(map(chr, range(33)))  # characters removed by Java's trim()


@dataclasses.dataclass(frozen=True)
class Normalizer:
    """Normalises a text into lower-case words.

    language: one of `LANGUAGES`. A final period is separated from its word unless the next word begins with a-z, the
    word is in `prefixes`, or the word is in `numeric` and a digit follows. no_punct: keep only letters and digits.
    """

    language: str
    prefixes: frozenset[str]
    numeric: frozenset[str]
    no_punct: bool = False

    def words(self, text: str) -> list[str]:
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
        """Remove the periods of abbreviations (U.S. -> US), and separate the period at the end of a sentence."""
        words = [word for word in text.split(" ") if word]
        for index, word in enumerate(words):
            if word[-1] == "." and len(word) > 1 and word[-2] != ".":
                stem, following = word[:-1], words[index + 1][0] if index + 1 < len(words) else ""
                before_number = stem in self.numeric and "0" <= following <= "9"
                keeps_period = stem in self.prefixes or "a" <= following <= "z" or before_number
                if "." in stem and _LETTER.search(stem):
                    words[index] = word.replace(".", "")
                elif not keeps_period:
                    words[index] = f"{stem} ."
        return " ".join(words)
