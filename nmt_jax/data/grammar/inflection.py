"""Inflection: grammatical categories, declension and conjugation tables, and the word classes that use them.

Only irregular forms are listed; the words themselves are in `lexicon` and `verbs`.
"""

import re
from dataclasses import dataclass
from enum import Enum, IntEnum, auto


class Case(IntEnum):
    """German cases, in the order of the rows of every declension table."""

    NOMINATIVE = 0
    ACCUSATIVE = 1
    DATIVE = 2
    GENITIVE = 3


class Tense(IntEnum):
    """Past is the German perfect, or the preterite of sein, haben, mögen, wissen and modals; future uses werden."""

    PAST = 0
    PRESENT = 1
    FUTURE = 2


class Agreement(IntEnum):
    """Person and number of a subject, in the order of the forms in every conjugation table (ich du er wir sie)."""

    I = 0  # noqa: E741 – the pronoun
    YOU = 1
    HE = 2
    WE = 3
    THEY = 4


class Order(Enum):
    """Kinds of clauses; the position of the verb depends on them."""

    STATEMENT = auto()  # Heute liest er.    Verb second.
    QUESTION = auto()  # Liest er heute?    Verb first, after a question word if there is one.
    SUBORDINATE = auto()  # …, dass er heute liest.    Verb last.
    INFINITIVE = auto()  # …, heute zu lesen.
    COMMAND = auto()  # Lies heute!


def rows(text: str) -> tuple[list[str], ...]:
    """The words of a table whose rows are separated by slashes."""
    return tuple(row.split() for row in text.split("/"))


PLURAL = 3  # column of declension tables, after the genders der, die, das
DEFINITE = rows("der die das die / den die das die / dem der dem den / des der des der")
STRONG = rows("er e es e / en e es e / em er em en / es er es er")
WEAK = rows("e e e en / en e e en / en en en en / en en en en")
(REFLEXIVE,) = rows("mich dich sich uns sich")
BE = rows("was were was were were / am are is are are")  # by tense
PRESENT_FORMS, PRETERITE_FORMS = (
    {infinitive: forms for infinitive, *forms in rows(table)}
    for table in (
        """sein bin bist ist sind sind / haben habe hast hat haben haben / werden werde wirst wird werden werden /
        wissen weiß weißt weiß wissen wissen / mögen mag magst mag mögen mögen / können kann kannst kann können können /
        dürfen darf darfst darf dürfen dürfen / wollen will willst will wollen wollen /
        müssen muss musst muss müssen müssen / sollten sollte solltest sollte sollten sollten /
        möchten möchte möchtest möchte möchten möchten""",
        """sein war warst war waren waren / haben hatte hattest hatte hatten hatten /
        wissen wusste wusstest wusste wussten wussten / mögen mochte mochtest mochte mochten mochten /
        können konnte konntest konnte konnten konnten / wollen wollte wolltest wollte wollten wollten /
        müssen musste musstest musste mussten mussten""",
    )
)


def english_s(word: str) -> str:
    """The word with the ending of plurals and of the third person: dog-s, box-es, countr-ies."""
    if word == "have":
        return "has"
    if re.search(r"(s|x|z|sh|ch|o)$", word):
        return word + "es"
    return word[:-1] + "ies" if re.search(r"[^aeiou]y$", word) else word + "s"


def english_ed(word: str) -> str:
    """The regular past tense: open-ed, clos-ed, carri-ed."""
    return word + "d" if word.endswith("e") else re.sub(r"(?<=[^aeiou])y$", "i", word) + "ed"


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun; gender: 0 der, 1 die, 2 das. Weak nouns use their plural form in all cases but the nominative."""

    kind: str
    english: str
    english_plural: str
    german: str
    german_plural: str
    gender: int
    weak: bool = False

    def inflect(self, case: Case, plural: bool) -> str:
        """The German form."""
        if plural:
            needs_n = case is Case.DATIVE and self.german_plural[-1] not in "ns"
            return self.german_plural + "n" * needs_n
        if self.weak and case is not Case.NOMINATIVE:
            return self.german_plural
        if case is Case.GENITIVE and self.gender != 1:
            short = len(re.findall(r"[aeiouyäöü]+", self.german.lower())) == 1
            return self.german + ("es" if short or self.german[-1] in "sßxz" else "s")
        return self.german


@dataclass(frozen=True, slots=True)
class Name:
    """A proper noun without article; kind: "man", "woman", "city" or "country"."""

    kind: str
    name: str
    german_name: str
    agreement = Agreement.HE

    def english(self, objective: bool = False) -> str:
        return self.name

    def german(self, case: Case) -> str:
        """The German name, the same in all cases."""
        return self.german_name


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective; `comparative` is empty if it has none."""

    english: str
    german: str
    comparative: str = ""
    german_comparative: str = ""

    @property
    def stem(self) -> str:
        """The stem to which endings are added: müd-, teur-, dunkl-."""
        return re.sub(r"e(?=l$)|e$|(?<=u)e(?=r$)", "", self.german)


@dataclass(frozen=True, slots=True)
class Adverb:
    """An invariable phrase."""

    words: str
    german_words: str

    def english(self) -> str:
        return self.words

    def german(self) -> str:
        return self.german_words


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb in both languages.

    `tail` directly follows the English verb (`look for`); a pronoun precedes `particle` (`pick him up`). `prefix` is
    separable in German: `an` + `rufen`; it ends with a space if it is a word: `Fußball ` + `spielen`.
    """

    english: str
    past: str
    tail: str
    particle: str
    infinitive: str
    third: str
    participle: str
    auxiliary: str
    prefix: str = ""
    reflexive: bool = False

    @property
    def tenses(self) -> tuple[Tense, ...]:
        """The tenses to use; `read` and `put` have no past here, because it is spelled like the present."""
        return (Tense.PRESENT, Tense.FUTURE) if self.past == self.english else tuple(Tense)

    @property
    def _stem(self) -> str:
        return self.infinitive.removesuffix("n").removesuffix("e")

    def conjugate(self, agreement: Agreement) -> str:
        """The German present tense, without prefix."""
        if self.infinitive in PRESENT_FORMS:
            return PRESENT_FORMS[self.infinitive][agreement]
        if agreement is Agreement.I:
            return re.sub(r"e(?=ln$)", "", self.infinitive).removesuffix("n").removesuffix("e") + "e"
        if agreement is Agreement.YOU:
            return self.third[:-1] + ("t" if self.third[-2] in "sßxz" else "st")
        return self.third if agreement is Agreement.HE else self.infinitive

    @property
    def imperative(self) -> str:
        """The informal singular imperative: `lies`, `fahr`, `warte`, `lächle`."""
        changed = self.third[:-1]
        if changed != regular_third(self._stem)[:-1] and not (set(changed) - set(self._stem)) & set("äöü"):
            return changed
        if re.search(r"(el|er|iere|[dnt]e|[^s][sß]e)n$", self.infinitive) or self.third.endswith("et"):
            return self.conjugate(Agreement.I)
        return self._stem


def regular_third(stem: str) -> str:
    """The third person singular of a regular stem: kauf-t, wart-et, öffn-et."""
    return stem + ("et" if re.search(r"[dt]$|(ch|[^aeiouäöürlhmn])[mn]$", stem) else "t")


@dataclass(frozen=True, slots=True)
class Modal:
    """A modal verb; without `auxiliary`, the English verb uses do-support."""

    english: str
    past: str
    tail: str
    auxiliary: bool
    german: str
