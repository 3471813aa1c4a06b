"""Draws random noun phrases and adverbials that make sense together."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from nmt_jax.data.grammar import lexicon, phrases, verbs
from nmt_jax.data.grammar.inflection import Adverb, Agreement, Case, Name, Noun, Tense, rows
from nmt_jax.data.grammar.phrases import ALL, BARE, EVERY, HE, SHE, THE, THIS, A, Determiner, Nominal, NounPhrase
from nmt_jax.data.grammar.verbs import Frame

T = TypeVar("T")

_BY_OBJECTS = {
    frame.objects: [noun for kind in sorted(frame.objects) for noun in lexicon.NOUNS.get(kind, ())]
    + [town for town in lexicon.TOWNS if town.kind in frame.objects]
    for frame in verbs.FRAMES.values()
}

OWNABLE, _RELATIVES = map(
    frozenset,
    rows("""animal text thing toy container clothes vehicle device furniture building room /
        friend brother sister mother father son daughter uncle aunt grandmother neighbor"""),
)
_UNIQUE = _RELATIVES - {"friend", "neighbor"} | {"king", "queen"}
_DRINKS = {noun.english: noun for noun in lexicon.NOUNS["drink"]}
_MEASURES = {"bottle": ["water", "milk", "juice", "wine", "beer"], "cup": ["coffee", "tea", "milk"]}


class PhraseAuthor:
    """Draws random phrases that make sense; equal seeds give equal phrases on every machine."""

    def __init__(self, seed: int) -> None:
        # Seeding with text is independent of the platform, and `random()` is the only method whose results Python
        # guarantees to preserve.
        self._random = random.Random(f"nmt-jax grammar {seed}").random

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self._random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, uniformly."""
        return options[int(self._random() * len(options))]

    def somebody(self) -> Nominal:
        """A person."""
        draw = self._random()
        if draw < 0.3:
            return self.pick(phrases.PERSONS[:6])
        if draw < 0.55:
            return self.pick(lexicon.PEOPLE)
        if draw < 0.6:
            first, second = self.pick(lexicon.PEOPLE), self.pick(lexicon.PEOPLE)
            return phrases.Couple(first, second) if first is not second else first
        return self.phrase(self.pick(lexicon.NOUNS["person"]), definite=self.chance(0.8))

    def object(self, frame: Frame, subject: Nominal) -> Nominal:
        """An object that suits the verb, other than the subject."""
        if "person" in frame.objects and self.chance(0.35):
            return self.receiver(subject)
        noun = self.pick(_BY_OBJECTS[frame.objects])
        while isinstance(subject, NounPhrase) and noun is subject.noun:
            noun = self.pick(_BY_OBJECTS[frame.objects])
        if isinstance(noun, Name):
            return noun
        phrase = self.phrase(noun)
        measured = noun.english in _MEASURES and frame.verb.english in ("buy", "bring", "carry", "sell", "need")
        if measured and self.chance(0.4):
            return replace(phrase, owner=None, adjective=None, content=_DRINKS[self.pick(_MEASURES[noun.english])])
        return phrase

    def receiver(self, subject: Nominal) -> Nominal:
        """A definite person other than the subject."""
        draw = self._random()
        if draw < 0.4:
            if subject.agreement in (Agreement.I, Agreement.WE):
                return self.pick((phrases.YOU, HE, SHE, phrases.THEY))
            persons = phrases.PERSONS[:6]
            return self.pick([one for one in persons if one.agreement is not subject.agreement or one in (HE, SHE)])
        if draw < 0.6:
            name = self.pick(lexicon.PEOPLE)
            while name is subject or (isinstance(subject, phrases.Couple) and name in (subject.first, subject.second)):
                name = self.pick(lexicon.PEOPLE)
            return name
        noun = self.pick(lexicon.NOUNS["person"])
        while isinstance(subject, NounPhrase) and noun is subject.noun:
            noun = self.pick(lexicon.NOUNS["person"])
        return self.phrase(noun, definite=True)

    def resume(self, nominal: Nominal) -> Nominal | None:
        """The pronoun that refers back to a person; None for other nominals."""
        if isinstance(nominal, phrases.Pronoun):
            return nominal
        if isinstance(nominal, NounPhrase) and nominal.noun.kind != "person":
            return None
        if nominal.agreement is Agreement.THEY:
            return phrases.THEY
        if isinstance(nominal, Name):
            return SHE if nominal.kind == "woman" else HE
        assert isinstance(nominal, NounPhrase)
        return SHE if nominal.noun.gender == 1 or nominal.noun.english == "girl" else HE

    def question_phrase(self, nominal: Nominal, kind: str) -> Nominal:
        """The phrase that asks for a nominal: who, what, which book, how many books."""
        if isinstance(nominal, NounPhrase) and nominal.noun.german_plural and self.chance(0.4):
            determiner = phrases.HOW_MANY if nominal.plural and self.chance(0.5) else phrases.WHICH
            return replace(nominal, determiner=determiner, owner=None, content=None)
        return phrases.WHO if kind == "person" else phrases.WHAT

    def phrase(
        self, noun: Noun, *, definite: bool = False, determiner: Determiner | None = None, plural: bool | None = None
    ) -> NounPhrase:
        """A noun with a suitable determiner, and sometimes an adjective and an owner."""
        countable = bool(noun.german_plural)
        if plural is None:
            plural = countable and determiner is None and self.chance(0.25)
        adjective = self.pick(lexicon.QUALITIES[noun.kind]) if self.chance(0.28) else None
        owner = None
        if determiner is None:
            draw = self._random()
            ownable = noun.kind in OWNABLE or noun.english in _RELATIVES
            if ownable and draw < 0.3:
                named = draw >= 0.2
                determiner = phrases.possessor(self.pick(lexicon.PEOPLE)) if named else self.pick(phrases.POSSESSIVES)
                if draw > 0.27:
                    owner = self.phrase(self.pick(lexicon.NOUNS["person"]), determiner=THE)
                    determiner, owner = THE, replace(owner, adjective=None)
            elif definite or draw < 0.6:
                determiner = THE if not countable or self.chance(0.75) else THIS
                if definite and draw > 0.95 and noun.english not in _UNIQUE and countable:
                    determiner = ALL if plural else EVERY
            elif not countable:
                determiner = BARE
            elif plural:
                quantity = phrases.number(2 + int(self._random() ** 2 * 11))
                determiner = self.pick((BARE, BARE, phrases.MANY, phrases.SOME, quantity))
            else:
                determiner = A
        return NounPhrase(noun, determiner, adjective, plural, owner)

    def time(self, tense: Tense) -> Adverb:
        """An adverbial of time."""
        if self.chance(0.12):
            english, german = lexicon.number_words(2 + int(self._random() * 11))
            return Adverb(f"at {english} o'clock", f"um {german} Uhr")
        if tense is not Tense.PRESENT and self.chance(0.12):
            english, german = lexicon.number_words(2 + int(self._random() * 11))
            if tense is Tense.PAST:
                return Adverb(f"{english} days ago", f"vor {german} Tagen")
            return Adverb(f"in {english} days", f"in {german} Tagen")
        return self.pick(lexicon.TIMES[tense])

    def place(self, kind: str) -> phrases.Adverbial:
        """A location or a direction."""
        if kind == "onto":
            return self.surface(Case.ACCUSATIVE)
        if kind == "water":
            return phrases.Place("in", "in", Case.DATIVE, NounPhrase(self.pick(lexicon.NOUNS["spot"][2:5:2])))
        if kind in ("where", "to") and self.chance(0.12):
            return phrases.AT_HOME if kind == "where" else phrases.HOME
        nominal: Nominal
        if kind in ("town", "far") or (kind == "there" and self.chance(0.4)):
            town = self.pick(lexicon.TOWNS)
            noun_kind, nominal = town.kind, town
        else:
            kinds = ("building", "area", "room", "spot", *(["event"] if kind in ("to", "there") else []))
            noun = self.pick(lexicon.NOUNS[self.pick(kinds)])
            noun_kind = noun.kind
            nominal = replace(self.phrase(noun, definite=True, plural=False), owner=None)
            if nominal.determiner is not THIS and self.chance(0.7):
                nominal = NounPhrase(noun)
            if nominal.determiner is EVERY:
                nominal = replace(nominal, determiner=THE)
        at, german_at, german_to = lexicon.PLACES[noun_kind]
        if kind not in ("to", "far"):
            return phrases.Place(at, german_at, Case.DATIVE, nominal)
        return phrases.Place("to", german_to, Case.ACCUSATIVE if german_to == "in" else Case.DATIVE, nominal)

    def surface(self, case: Case) -> phrases.Place:
        """A location relative to a piece of furniture: on, under, behind …"""
        english, german = self.pick(tuple(lexicon.SURFACES.items()))
        return phrases.Place(english, german, case, NounPhrase(self.pick(lexicon.NOUNS["furniture"])))
