"""Phrases: pronouns, determiners, noun phrases and adverbials, each rendered in both languages."""

from dataclasses import dataclass
from typing import Protocol

from nmt_jax.data.grammar import inflection, lexicon
from nmt_jax.data.grammar.inflection import Adjective, Adverb, Agreement, Case, Name, Noun, Order, rows


class Nominal(Protocol):
    """A phrase that can be a subject, or an object: `objective` in English, of a case in German."""

    @property
    def agreement(self) -> Agreement:
        """Person and number."""

    def english(self, objective: bool = False) -> str: ...
    def german(self, case: Case) -> str: ...


class RelativeClause(Protocol):
    """A clause that describes a noun."""

    def english(self, order: Order) -> str: ...
    def german(self, order: Order) -> str: ...


class Adverbial(Protocol):
    """A phrase that expresses when, where or how."""

    def english(self) -> str: ...
    def german(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Pronoun:
    """A personal, relative or interrogative pronoun; `forms` are the German ones by case."""

    subjective: str
    objective: str
    forms: tuple[str, ...]
    agreement: Agreement

    def english(self, objective: bool = False) -> str:
        return self.objective if objective else self.subjective

    def german(self, case: Case) -> str:
        return self.forms[case]


@dataclass(frozen=True, slots=True)
class Determiner:
    """An article, or a word used instead of one.

    endings: "definite" (der), "strong" (dies-er), "ein" (ein, mein: no ending in three forms), "quantity" (viel-e) or
    "none" (zwei, Annas). A following adjective is weak after an ending of the first three kinds, otherwise strong.
    """

    singular: str
    plural: str
    stem: str
    endings: str
    indefinite: bool = False

    def german(self, case: Case, column: int) -> tuple[str, bool]:
        """The German form for a column of the declension tables, and whether a following adjective is weak."""
        if self.endings == "definite":
            return inflection.DEFINITE[case][column], True
        if self.endings == "none" or (self.endings == "ein" and (case, column) in _ENDINGLESS):
            return self.stem, False
        return self.stem + inflection.STRONG[case][column], self.endings != "quantity"


_ENDINGLESS = {(Case.NOMINATIVE, 0), (Case.NOMINATIVE, 2), (Case.ACCUSATIVE, 2)}
THE = Determiner("the", "the", "", "definite")
THIS = Determiner("this", "these", "dies", "strong")
WHICH = Determiner("which", "which", "welch", "strong")
EVERY = Determiner("every", "", "jed", "strong")
ALL = Determiner("", "all", "all", "strong")
A = Determiner("a", "", "ein", "ein", indefinite=True)
NO = Determiner("", "", "kein", "ein")  # German only: "not … a" is "kein"
BARE = Determiner("", "", "", "none", indefinite=True)
MANY = Determiner("", "many", "viel", "quantity", indefinite=True)
SOME = Determiner("", "some", "einig", "quantity", indefinite=True)
HOW_MANY = Determiner("", "how many", "wie viel", "quantity", indefinite=True)
MY, YOUR, HIS, HER, OUR, THEIR = POSSESSIVES = tuple(
    Determiner(english, english, german, "ein")
    for english, german in zip(*rows("my your his her our their / mein dein sein ihr unser ihr"), strict=True)
)


def number(value: int) -> Determiner:
    """A number from 2 to 99 as a determiner."""
    return Determiner("", *lexicon.number_words(value), "none", indefinite=True)


def possessor(name: Name) -> Determiner:
    """A name in the genitive as a determiner: Anna's house, Annas Haus."""
    return Determiner(f"{name.name}'s", f"{name.name}'s", f"{name.german_name}s", "none")


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """A noun with its determiner, adjective, owner (`the dog of …`) and relative clause."""

    noun: Noun
    determiner: Determiner = THE
    adjective: Adjective | None = None
    plural: bool = False
    owner: "NounPhrase | None" = None
    content: Noun | None = None  # a cup of tea
    relative: RelativeClause | None = None

    @property
    def agreement(self) -> Agreement:
        return Agreement.THEY if self.plural else Agreement.HE

    def english(self, objective: bool = False) -> str:
        """The English phrase; an owner replaces the determiner."""
        determiner = self.determiner.plural if self.plural else self.determiner.singular
        words = [f"{self.owner.english()}'s" if self.owner else determiner]
        words += [self.adjective.english] if self.adjective else []
        words += [self.noun.english_plural if self.plural else self.noun.english]
        if words[0] == "a" and words[1][0] in "aeiou":
            words[0] = "an"
        words += ["of", self.content.english] if self.content else []
        words += [self.relative.english(Order.SUBORDINATE)] if self.relative else []
        return " ".join(filter(None, words))

    def german(self, case: Case) -> str:
        """The German phrase; a relative clause ends with a comma."""
        column = inflection.PLURAL if self.plural else self.noun.gender
        determiner, weak = self.determiner.german(case, column)
        ending = (inflection.WEAK if weak else inflection.STRONG)[case][column]
        adjective = self.adjective.stem + ending if self.adjective else ""
        content = self.content.german if self.content else ""
        owner = self.owner.german(Case.GENITIVE) if self.owner else ""
        words = (determiner, adjective, self.noun.inflect(case, self.plural), content, owner)
        phrase = " ".join(filter(None, words))
        return f"{phrase}, {self.relative.german(Order.SUBORDINATE)}," if self.relative else phrase


@dataclass(frozen=True, slots=True)
class Couple:
    """Two nominals joined by `and`."""

    first: Nominal
    second: Nominal
    agreement = Agreement.THEY

    def english(self, objective: bool = False) -> str:
        return f"{self.first.english(objective)} and {self.second.english(objective)}"

    def german(self, case: Case) -> str:
        return f"{self.first.german(case)} und {self.second.german(case)}"


@dataclass(frozen=True, slots=True)
class Place:
    """A prepositional phrase: a location (dative), or a direction (accusative, or as the preposition requires)."""

    preposition: str
    german_preposition: str
    case: Case
    nominal: Nominal

    def english(self) -> str:
        return f"{self.preposition} {self.nominal.english(objective=True)}"

    def german(self) -> str:
        return prepositional(self.german_preposition, self.nominal, self.case)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparative predicate: older than the house."""

    adjective: Adjective
    standard: Nominal

    def english(self) -> str:
        return f"{self.adjective.comparative} than {self.standard.english()}"

    def german(self) -> str:
        return f"{self.adjective.german_comparative} als {self.standard.german(Case.NOMINATIVE)}"


def prepositional(preposition: str, nominal: Nominal, case: Case) -> str:
    """A German preposition and a nominal, contracted with its article if possible: im Garten, zur Schule."""
    phrase = f"{preposition} {nominal.german(case)}".lstrip()
    if isinstance(nominal, NounPhrase) and nominal.determiner is THE:
        start = " ".join(phrase.split(" ", 2)[:2])
        return lexicon.CONTRACTIONS.get(start, start) + phrase.removeprefix(start)
    return phrase


I, YOU, HE, SHE, WE, THEY, IT = PERSONS = tuple(  # noqa: E741 – the pronoun
    Pronoun(english, objective, tuple(german.split("/")), agreement)
    for english, objective, german, agreement in (
        ("I", "me", "ich/mich/mir", Agreement.I),
        ("you", "you", "du/dich/dir", Agreement.YOU),
        ("he", "him", "er/ihn/ihm", Agreement.HE),
        ("she", "her", "sie/sie/ihr", Agreement.HE),
        ("we", "us", "wir/uns/uns", Agreement.WE),
        ("they", "them", "sie/sie/ihnen", Agreement.THEY),
        ("it", "it", "es/es/ihm", Agreement.HE),
    )
)
WHO = Pronoun("who", "whom", ("wer", "wen", "wem"), Agreement.HE)
WHAT = Pronoun("what", "what", ("was", "was"), Agreement.HE)
THAT_IS = Pronoun("this", "", ("das",), Agreement.HE)
THESE_ARE = Pronoun("these", "", ("das",), Agreement.THEY)
THERE = Pronoun("there", "", ("es",), Agreement.HE)

HOME, AT_HOME = Adverb("home", "nach Hause"), Adverb("at home", "zu Hause")
WHERE, WHERE_TO, WHY = Adverb("where", "wo"), Adverb("where", "wohin"), Adverb("why", "warum")
WHEN_IS, HOW_OFTEN = Adverb("when", "wann"), Adverb("how often", "wie oft")


def relative_pronoun(noun: Noun, plural: bool) -> Pronoun:
    """The relative pronoun for `noun`: who, whom, that; der, den, dem, denen."""
    column = inflection.PLURAL if plural else noun.gender
    nominative, accusative, dative = (forms[column] for forms in inflection.DEFINITE[:3])
    forms = (nominative, accusative, "denen" if plural else dative)
    english = ("who", "whom") if noun.kind == "person" else ("that", "that")
    return Pronoun(*english, forms, Agreement.THEY if plural else Agreement.HE)
