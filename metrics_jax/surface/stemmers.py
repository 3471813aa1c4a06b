"""Stemmers: Porter and Snowball from nltk and snowballstemmer, and the one of ROUGE-1.5.5.

ROUGE-1.5.5 looks up irregular forms of WordNet 2.0, then applies a variant of Porter's stemmer (1980). The forms are
read from the `*.exc` files of a WordNet database in $WNSEARCHDIR, or /usr/share/wordnet. Versions 2.0 and 3.0 give the
same stems, since forms added in 3.0 are removed.
"""

import functools
import hashlib
import re
from collections.abc import Callable

from metrics_jax.surface.wordnet import default_directory, read_file

# The script's database has one entry per word, from the file read last, which is adj.exc: better -> good.
_FILES = ("noun", "adv", "verb", "adj")
_SINCE_WORDNET_2 = frozenset(["ashes", "cognosenti", "gps", "halfpence", "lisente", "morses", "staretsy"])
_SHA256 = "0193e22022be7fe4364fd135b9a616373dffb9e500e010a83365c17c66c7b784"

_C, _V = "[^aeiou][^aeiouy]*", "[aeiouy][aeiou]*"  # runs of consonants and of vowels; a word is [C](VC)^m[V]
_above_0 = re.compile(f"({_C})?{_V}{_C}").match  # m > 0
_above_1 = re.compile(f"({_C})?{_V}{_C}{_V}{_C}").match  # m > 1
_is_1 = re.compile(f"({_C})?{_V}{_C}({_V})?").fullmatch  # m = 1
_has_vowel = re.compile(f"({_C})?[aeiouy]").match
_is_short = re.compile(f"{_C}[aeiouy][^aeiouwxy]").fullmatch  # such as hop and fil, which get a final e
_is_double = re.compile(r".*([^aeiouylsz])\1").fullmatch
_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble", "logi": "log",
}  # fmt: skip
_STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement"),
    *("ou", "ism", "ate", "iti", "ous", "ive", "ize"),
)


@functools.cache
def porter(mode: str) -> Callable[[str], str]:
    """Porter's stemmer (1980) in one of nltk's modes, as a function from word to stem.

    mode: "NLTK_EXTENSIONS" (used by rouge-score and nltk's METEOR), "MARTIN_EXTENSIONS" or "ORIGINAL_ALGORITHM".
    """
    from nltk.stem.porter import PorterStemmer

    return functools.lru_cache(2**18)(PorterStemmer(mode).stem)


@functools.cache
def snowball(language: str) -> Callable[[str], str]:
    """The Snowball stemmer of a language ("english"), from word to stem. Raises ValueError if there is none."""
    import snowballstemmer

    if language not in snowballstemmer.algorithms():
        known = ", ".join(snowballstemmer.algorithms())
        raise ValueError(f"no Snowball stemmer for {language!r}; choose one of {known}")
    return functools.lru_cache(2**18)(snowballstemmer.stemmer(language).stemWord)


@functools.lru_cache(2**18)
def rouge_stem(word: str) -> str:
    """The stem of a lower-case word of ASCII letters and digits. Raises ValueError without a WordNet database."""
    return irregular_forms().get(word) or rouge_porter(word)


def irregular_forms() -> dict[str, str]:
    """Irregular forms and their base forms (`ran`: `run`). Raises ValueError without WordNet 2.0 or 3.0."""
    return _read_exceptions(default_directory())


@functools.cache
def _read_exceptions(folder: str) -> dict[str, str]:
    forms: dict[str, str] = {}
    for name in _FILES:
        try:
            text = read_file(folder, f"{name}.exc").decode("ascii")
        except ValueError as error:
            message = f"the stemmer of ROUGE-1.5.5 needs WordNet 3.0: set $WNSEARCHDIR to its folder ({error})"
            raise ValueError(message) from error
        forms.update((form, base) for form, base, *_ in map(str.split, text.splitlines()))
    forms = {form: base for form, base in forms.items() if form.isalnum() and form not in _SINCE_WORDNET_2}
    content = "\n".join(f"{form} {forms[form]}" for form in sorted(forms))
    if hashlib.sha256(content.encode()).hexdigest() != _SHA256:
        raise ValueError(f"the stemmer of ROUGE-1.5.5 needs WordNet 2.0 or 3.0, but {folder} has another version")
    return forms


def rouge_porter(word: str) -> str:
    """Porter's stemmer as in ROUGE-1.5.5: step 4 removes -ment, and then -ent or -ion, after other suffixes."""
    if len(word) < 3:
        return word
    if word.startswith("y"):
        return rouge_porter("Y" + word[1:]).lower()  # an initial y is a consonant
    if word.endswith(("sses", "ies")):  # step 1
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word.endswith("eed"):
        word = word[:-1] if _above_0(word[:-3]) else word
    elif word.endswith(("ed", "ing")):
        rest = word[: -2 if word.endswith("ed") else -3]
        if _has_vowel(rest):
            if rest.endswith(("at", "bl", "iz")) or _is_short(rest):
                word = rest + "e"
            else:
                word = rest[:-1] if _is_double(rest) else rest
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replace_suffix(word, _STEP_2)
    word = _replace_suffix(word, _STEP_3)
    word = _strip_suffix(word, *_STEP_4)
    word = _strip_suffix(word, "ment")
    if word.endswith("ent"):
        word = _strip_suffix(word, "ent")
    elif word.endswith(("sion", "tion")):
        word = _strip_suffix(word, "ion")
    if word.endswith("e"):  # step 5
        rest = word[:-1]
        word = rest if _above_1(rest) or (_is_1(rest) and not _is_short(rest)) else word
    return word[:-1] if word.endswith("ll") and _above_1(word) else word


def _replace_suffix(word: str, endings: dict[str, str]) -> str:
    """Replace the longest matching suffix if m > 0 before it."""
    for size in range(min(7, len(word)), 1, -1):
        if word[-size:] in endings:
            rest = word[:-size]
            return rest + endings[word[-size:]] if _above_0(rest) else word
    return word


def _strip_suffix(word: str, *suffixes: str) -> str:
    """Remove the longest matching suffix if m > 1 before it."""
    fitting = max((suffix for suffix in suffixes if word.endswith(suffix)), key=len, default="")
    rest = word.removesuffix(fitting)
    return rest if fitting and _above_1(rest) else word
