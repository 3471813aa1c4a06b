"""METEOR 1.5's stemmers: Snowball of 2011, whose English and German rules differ from today's libraries.

Snowball has since added exceptions ("evening", "international", "-ologist", German "-niss"). English and German are
therefore implemented here, following Porter's definitions of that time; for other languages, the library that agrees
best with METEOR's own classes is used. Of 110,000 words, most of them in another language, none differs in es, nl, no,
ro, ru, se and tr, 1 in it, 3 in hu, 9 in fr, 14 in pt, 129 in da, 3,822 in fi.
"""

import functools
import re
from collections.abc import Callable, Iterable

from metrics_jax.surface.stemmers import snowball

NLTK = {
    "da": "danish", "fi": "finnish", "fr": "french", "hu": "hungarian", "it": "italian", "nl": "dutch",
    "no": "norwegian", "ro": "romanian", "se": "swedish",
}  # fmt: skip
SNOWBALL = {"es": "spanish", "pt": "portuguese", "ru": "russian", "tr": "turkish"}
UNKNOWN_LETTERS = {"ru": "ё", "tr": "'"}  # characters that the algorithms of 2011 did not handle
STEMMED = ("en", "de", *NLTK, *SNOWBALL)

_WHOLE_WORDS = {
    "skis": "ski", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "idly": "idl", "gently": "gentl",
    "ugly": "ugli", "early": "earli", "only": "onli", "singly": "singl",
    **{word: word for word in ("sky", "news", "howe", "atlas", "cosmos", "bias", "andes")},
}  # fmt: skip
_AFTER_PLURAL = {"inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed"}
_STEP_2 = {
    "tional": "tion", "enci": "ence", "anci": "ance", "abli": "able", "entli": "ent", "izer": "ize", "ization": "ize",
    "ational": "ate", "ation": "ate", "ator": "ate", "alism": "al", "aliti": "al", "alli": "al", "fulness": "ful",
    "ousli": "ous", "ousness": "ous", "iveness": "ive", "iviti": "ive", "biliti": "ble", "bli": "ble", "ogi": "og",
    "fulli": "ful", "lessli": "less", "li": "",
}  # fmt: skip
_STEP_3 = {
    "tional": "tion", "ational": "ate", "alize": "al", "icate": "ic", "iciti": "ic", "ical": "ic", "ful": "",
    "ness": "", "ative": "",
}  # fmt: skip
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ism", "ate", "iti", "ous", "ive",
    "ize", "ion",
)  # fmt: skip
_BETWEEN_VOWELS = re.compile("([aeiouyäöü])([uy])(?=[aeiouyäöü])")
_SHORT_SYLLABLE = re.compile(r"[^aeiouy][aeiouy][^aeiouywxY]\Z|\A[aeiouy][^aeiouy]\Z")


@functools.cache
def stemmer(language: str) -> Callable[[str], str]:
    """METEOR 1.5's stemmer of a language in `STEMMED`, as a function from word to stem."""
    if language in ("en", "de"):
        return functools.lru_cache(2**18)(english if language == "en" else german)
    if language in NLTK:
        from nltk.stem.snowball import SnowballStemmer

        snowball_stemmer = SnowballStemmer(NLTK[language])
        return functools.lru_cache(2**18)(lambda word: str(snowball_stemmer.stem(_Cased(word))))
    stem = snowball(SNOWBALL[language])
    unknown = UNKNOWN_LETTERS.get(language, "\0")
    return lambda word: stem(word.replace(unknown, "\0")).replace("\0", unknown)


class _Cased(str):
    """A word that nltk cannot lower-case, since METEOR's stemmers do not."""

    def lower(self) -> str:
        """Return the word unchanged."""
        return self


def english(word: str) -> str:
    """Porter's second English stemmer ("porter2", 2011), for a lower-case word."""
    if word in _WHOLE_WORDS:
        return _WHOLE_WORDS[word]
    if len(word) <= 2:
        return word
    word, consonants = re.subn("(^|[aeiouy])y", r"\1Y", word.removeprefix("'"))  # Y marks a consonant
    one, two = _regions(word, "aeiouy", re.match("gener|commun|arsen", word))

    word, _ = _split(word, ("'", "'s", "'s'"))  # step 0
    _, suffix = _split(word, ("sses", "ied", "ies", "s", "us", "ss"))  # step 1a
    if suffix == "sses" or (suffix == "s" and re.search("[aeiouy]", word[:-2])):
        word = word[: -2 if suffix == "sses" else -1]
    elif suffix in ("ied", "ies"):
        word = word[:-2] if len(word) > 4 else word[:-1]
    if word not in _AFTER_PLURAL:
        word = _steps_1b_to_5(word, one, two)
    return word.replace("Y", "y") if consonants else word


def _steps_1b_to_5(word: str, one: int, two: int) -> str:
    """Steps 1b to 5 of the English stemmer; one and two are the beginnings of the regions R1 and R2."""
    stem, suffix = _split(word, ("eed", "eedly", "ed", "edly", "ing", "ingly"))
    if suffix.startswith("ee"):
        word = stem + "ee" if len(stem) >= one else word
    elif suffix and re.search("[aeiouy]", stem):
        if stem.endswith(("at", "bl", "iz")):
            word = stem + "e"
        elif re.search(r"([bdfgmnprt])\1\Z", stem):
            word = stem[:-1]
        else:
            word = stem + "e" if len(stem) == one and _SHORT_SYLLABLE.search(stem) else stem
    if word.endswith(("y", "Y")) and len(word) > 2 and word[-2] not in "aeiouy":  # step 1c
        word = word[:-1] + "i"

    stem, suffix = _split(word, _STEP_2)
    before = {"ogi": ("l",), "li": tuple("cdeghkmnrt")}.get(suffix, ("",))
    if suffix and len(stem) >= one and stem.endswith(before):
        word = stem + _STEP_2[suffix]
    stem, suffix = _split(word, _STEP_3)
    if suffix and len(stem) >= (two if suffix == "ative" else one):
        word = stem + _STEP_3[suffix]
    stem, suffix = _split(word, _STEP_4)
    if suffix and len(stem) >= two and (suffix != "ion" or stem.endswith(("s", "t"))):
        word = stem
    stem = word[:-1]  # step 5
    if word.endswith("e") and (len(stem) >= two or (len(stem) >= one and not _SHORT_SYLLABLE.search(stem))):
        return stem
    return stem if word.endswith("ll") and len(stem) >= two else word


def german(word: str) -> str:
    """The German Snowball stemmer of 2011, for a lower-case word; the stem has no umlauts."""
    word = _BETWEEN_VOWELS.sub(lambda match: match[1] + match[2].upper(), word.replace("ß", "ss"))
    one, two = _regions(word, "aeiouyäöü") if len(word) > 2 else (len(word), len(word))
    one = max(one, 3)

    stem, suffix = _split(word, ("em", "ern", "er", "e", "en", "es", "s"))
    if len(stem) >= one and (suffix != "s" or stem.endswith(tuple("bdfghklmnrt"))):
        word = stem
    stem, suffix = _split(word, ("en", "er", "est", "st"))
    if len(stem) >= one and (suffix != "st" or (len(stem) >= 4 and stem.endswith(tuple("bdfghklmnt")))):
        word = stem
    stem, suffix = _split(word, ("end", "ung", "ig", "ik", "isch", "lich", "heit", "keit"))
    if len(stem) >= two and not (suffix in ("ig", "ik", "isch") and stem.endswith("e")):
        word = stem
        more = {"end": ("ig",), "ung": ("ig",), "lich": ("er", "en"), "heit": ("er", "en"), "keit": ("lich", "ig")}
        stem, _ = _split(stem, more.get(suffix, ()))
        follows_e = suffix in ("end", "ung") and stem.endswith("e")
        if len(stem) >= (one if suffix in ("lich", "heit") else two) and not follows_e:
            word = stem
    return word.translate(str.maketrans("YUäöü", "yuaou"))


def _split(word: str, suffixes: Iterable[str]) -> tuple[str, str]:
    """Split off the longest of the suffixes that the word ends with; "" if there is none."""
    suffix = max((suffix for suffix in suffixes if word.endswith(suffix)), key=len, default="")
    return word.removesuffix(suffix), suffix


def _regions(word: str, vowels: str, prefix: re.Match[str] | None = None) -> tuple[int, int]:
    """The beginnings of R1 and R2: after the first consonant behind a vowel (or after a prefix), and once more."""
    step = re.compile(f"[^{vowels}]*[{vowels}]+[^{vowels}]")
    first = prefix or step.match(word)
    one = first.end() if first else len(word)
    second = step.match(word, one)
    return one, second.end() if second else len(word)
