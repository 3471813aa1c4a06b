"""English inflection: which forms a word can be, and the same form of another word, with the help of WordNet."""

import re
from typing import NamedTuple

from metrics_jax.surface.wordnet import WordNet

_SIBILANT = re.compile(r"(s|x|z|ch|sh)$")
_CONSONANT_Y = re.compile(r"[^aeiou]y$")
_DOUBLING = re.compile(r"[^aeiou][aeiou][^aeiouwxy]$")  # stop, stopped; visit, visited is such a word, too
_VOWEL_SOUND = re.compile(
    r"(?!uni(?!m|n|de)|ubi|uk|ur[aeio]|us[aeu]|ut[eio]|eu|one(?!r)|once)[aeiou]|hour|hono|honest|heir"
)
_IRREGULAR_PLURAL = re.compile(r"(men|people|children|feet|teeth|geese|mice|wives|knives|lives|leaves)$")
# The participle is the base form, which the list of exceptions does not say: ran, run; came, come.
_PARTICIPLE_IS_BASE = ("run", "come")


class Reading(NamedTuple):
    """One way to read a word: part of speech, base form, and regular ending ("" for the base form)."""

    part: str
    base: str
    ending: str


def readings(wordnet: WordNet, word: str) -> list[Reading]:
    """All readings of a lower-case word. Irregular forms have the ending of the regular ones: `ran` is `run`, `ed`."""
    found = (Reading(part, base, _ending(part, word, base)) for part, base in wordnet.bases(word))
    return [reading for reading in found if reading.part != "adv" or not reading.ending]


def main_reading(wordnet: WordNet, word: str, certain: float = 1) -> Reading | None:
    """The reading with the most senses in tagged texts, at least `certain` times as many as any other; None if none."""
    by_senses = sorted(
        ((wordnet.num_tagged(one.part, one.base), one) for one in readings(wordnet, word)), key=lambda item: -item[0]
    )
    if not by_senses:
        return None
    (most, best), *others = by_senses
    return best if most and all(certain * count <= most for count, _ in others) else None


def _ending(part: str, word: str, base: str) -> str:
    if word == base:
        return ""
    if part == "verb":
        return "ing" if word.endswith("ing") else "s" if word.endswith("s") else "ed"
    if part == "adj":
        return "est" if word.endswith("st") else "er"
    return "s"


def forms(wordnet: WordNet, part: str, base: str, ending: str) -> list[str]:
    """The possible forms of a base form with a regular ending; the spelling of some is to be looked up in a text.

    Past forms of verbs also stand for participles, so that verbs that distinguish them (wrote, written) have none.
    """
    if not ending:
        return [base]
    irregular = [form for form in wordnet.irregular_forms(part, base) if _ending(part, form, base) == ending]
    if part == "verb" and ending == "ed" and irregular:
        unsure = len(irregular) > 1 or irregular[0].endswith("n") or base.endswith(_PARTICIPLE_IS_BASE)
        return [] if unsure else irregular
    return list(dict.fromkeys([*irregular, *_regular(base, ending)]))


def _regular(base: str, ending: str) -> list[str]:
    if ending == "s":
        if base.endswith("man"):
            return [f"{base[:-3]}men", f"{base}s"]
        if _SIBILANT.search(base):
            return [f"{base}es"]
        return [f"{base[:-1]}ies"] if _CONSONANT_Y.search(base) else [f"{base}s", *([f"{base}es"] * (base[-1:] == "o"))]
    if ending == "ing":
        if base.endswith("ie"):
            return [f"{base[:-2]}ying"]
        stem = base[:-1] if re.search(r"[^eoy]e$", base) else base
    else:  # ed, er, est begin with e
        stem = base[:-1] if base.endswith("e") else f"{base[:-1]}i" if _CONSONANT_Y.search(base) else base
    return [f"{stem}{ending}", *([f"{base}{base[-1]}{ending}"] if _DOUBLING.search(base) else [])]


def suffix_class(word: str) -> str:
    """The inflectional or adverbial suffix that a word seems to have; "" if none. `men` and `children` have s."""
    if _IRREGULAR_PLURAL.search(word):
        return "s"
    match = re.search(r"..(ing|ed|est|er|ly|(?<![su])s)$", word)
    return match[1] if match else ""


def same_form(word: str, other: str, wordnet: WordNet | None = None) -> bool:
    """Whether two words seem to have the same suffix; with a WordNet, also the same part of speech and ending."""
    if suffix_class(word) != suffix_class(other):
        return False
    if wordnet is None:
        return True
    one, two = (main_reading(wordnet, form) for form in (word, other))
    return one is not None and two is not None and (one.part, one.ending) == (two.part, two.ending)


def fits_article(article: str, word: str, new: str) -> bool:
    """Whether `new` may replace `word` after the lower-case word `article`, if this is "a" or "an"."""
    return article not in ("a", "an") or bool(_VOWEL_SOUND.match(word)) == bool(_VOWEL_SOUND.match(new))
