"""Draws random clauses and sentences that make sense."""

from collections.abc import Sequence
from dataclasses import replace

from nmt_jax.data.grammar import lexicon, phrases, syntax, verbs
from nmt_jax.data.grammar.inflection import Adverb, Case, Order, Tense
from nmt_jax.data.grammar.phrase_author import OWNABLE, PhraseAuthor
from nmt_jax.data.grammar.phrases import ALL, EVERY, THE, THIS, YOU, A, Nominal, NounPhrase, Place
from nmt_jax.data.grammar.syntax import Clause, Sentence
from nmt_jax.data.grammar.verbs import Frame

_ACTIONS = tuple(verbs.FRAMES.values())
_DEEDS = tuple(frame for frame in _ACTIONS if frame.action)
_RELATIVE_FRAMES = {
    kind: [
        frame
        for frame in _ACTIONS
        if kind in frame.objects and "person" in frame.subjects and not frame.recipient and frame.place != "onto"
    ]
    for kind in lexicon.NOUNS
}
_COMPARABLE = {kind: [word for word in words if word.comparative] for kind, words in lexicon.QUALITIES.items()}


class Author(PhraseAuthor):
    """Draws random sentences that make sense; equal seeds give equal sentences on every machine."""

    def sentence(self) -> Sentence:
        """A sentence of a random kind."""
        draw = self._random()
        for share, make in self._KINDS:
            draw -= share
            if draw < 0:
                return make(self)
        return self.statement()

    def statement(self) -> Sentence:
        """One main clause, sometimes with a time or a place at its beginning."""
        clause = self.clause(rich=True)
        slots = ["time"] if clause.time else []
        slots += ["place"] if clause.place and clause.frame.place in ("where", "there") else []
        return Sentence(replace(clause, front=self.pick(slots)) if slots and self.chance(0.5) else clause)

    def subordinate(self) -> Sentence:
        """Two clauses joined by because, although, if, when or while, often with the same subject."""
        link = self.pick((syntax.BECAUSE, syntax.BECAUSE, syntax.ALTHOUGH, syntax.IF, syntax.WHEN, syntax.WHILE))
        tense = {syntax.WHEN: Tense.PAST, syntax.IF: self.pick((Tense.PRESENT, Tense.FUTURE))}.get(link)
        tense = self.pick((Tense.PAST, Tense.PRESENT)) if tense is None else tense
        main = self.clause(tense=tense, bare=True)
        subject = self.resume(main.subject) if self.chance(0.6) else None
        state = self.chance(0.5) and link is not syntax.WHILE
        second_tense = Tense.PRESENT if link is syntax.IF else tense
        second = (self.state if state else self.clause)(subject=subject, tense=second_tense, bare=True)
        return Sentence(main, link=link, second=second, reversed=self.chance(0.3))

    def report(self) -> Sentence:
        """Indirect speech: somebody says that …, or asks whether …"""
        say = (tuple(verbs.SAY.values()), syntax.THAT)
        frames, link = self.pick((say, say, ((verbs.WONDER,), syntax.WHETHER)))
        frame = self.pick(frames)
        negated = frame is verbs.SAY["know"] and self.chance(0.5)
        main = Clause(self.somebody(), frame, self.pick((Tense.PAST, Tense.PRESENT, Tense.PRESENT)), negated=negated)
        tense = self.pick((Tense.PAST, Tense.PRESENT, Tense.FUTURE)) if main.tense is Tense.PRESENT else Tense.PAST
        make = self.state if self.chance(0.3) else self.clause
        second = make(tense=tense, bare=self.chance(0.5))
        return Sentence(main, link=syntax.WHETHER if negated else link, second=second)

    def intention(self) -> Sentence:
        """Somebody tries or promises to do something."""
        main = Clause(self.somebody(), self.pick(tuple(verbs.INTEND.values())), self.pick(tuple(Tense)))
        second = self.clause(subject=main.subject, tense=Tense.PRESENT, frames=_DEEDS, plain=True)
        return Sentence(main, link=syntax.TO, second=second)

    def coordination(self) -> Sentence:
        """Two main clauses."""
        tense = self.pick((Tense.PAST, Tense.PRESENT))
        main = self.clause(tense=tense, bare=True)
        link = self.pick((syntax.AND, syntax.BUT))
        return Sentence(main, link=link, second=self.clause(tense=tense, bare=True))

    def polar_question(self) -> Sentence:
        """A yes-no question."""
        clause = (self.state if self.chance(0.2) else self.clause)(bare=self.chance(0.4))
        return Sentence(replace(clause, subject=YOU) if clause.subject is phrases.I else clause, Order.QUESTION)

    def open_question(self) -> Sentence:
        """A question with who, what, which, where, when or why."""
        clause = self.clause(plain=True)
        frame = clause.frame
        options = ["subject", "time", "reason"]
        if isinstance(clause.object, NounPhrase) and (not frame.preposition or frame.objects == {"person"}):
            options += ["object"] * 3
        if clause.place and frame.place != "onto":
            options += ["place"] * 2
        choice = self.pick(options)
        if choice == "subject":
            clause = replace(clause, subject=self.question_phrase(clause.subject, "person"))
        elif choice == "object" and isinstance(clause.object, NounPhrase):
            clause = replace(clause, object=self.question_phrase(clause.object, clause.object.noun.kind))
        elif choice == "place":
            clause = replace(clause, place=phrases.WHERE_TO if frame.place in ("to", "far") else phrases.WHERE)
        else:
            word = phrases.WHY if choice == "reason" else self.pick((phrases.WHEN_IS, phrases.HOW_OFTEN))
            clause, choice = replace(clause, time=word), "time"
        return Sentence(replace(clause, front=choice), Order.QUESTION)

    def command(self) -> Sentence:
        """An informal command."""
        clause = self.clause(subject=YOU, tense=Tense.PRESENT, frames=_DEEDS, plain=True)
        return Sentence(replace(clause, negated=self.chance(0.2)), Order.COMMAND, polite=self.chance(0.4))

    def comparison(self) -> Sentence:
        """Something is older than something else."""
        kinds = [kind for kind, words in _COMPARABLE.items() if words and kind not in ("dish", "food", "drink")]
        kind = self.pick(kinds)
        first = second = self.phrase(self.pick(lexicon.NOUNS[kind]), definite=True)
        while second.noun is first.noun:
            second = self.phrase(self.pick(lexicon.NOUNS[kind]), definite=True)
        first, second = (
            replace(phrase, adjective=None, determiner=THE if phrase.determiner in (ALL, EVERY) else phrase.determiner)
            for phrase in (first, second)
        )
        comparison = phrases.Comparison(self.pick(_COMPARABLE[kind]), second)
        tense = self.pick((Tense.PAST, Tense.PRESENT, Tense.PRESENT))
        clause = Clause(first, verbs.BE_FRAME, tense, predicate=comparison, negated=self.chance(0.15))
        return Sentence(clause, self.pick((Order.STATEMENT, Order.STATEMENT, Order.QUESTION)))

    def amount(self) -> Sentence:
        """An age or a price."""
        english, german = lexicon.number_words(2 + int(self._random() * 98))
        if self.chance(0.5):
            age = Adverb(f"{english} years old", f"{german} Jahre alt")
            return Sentence(Clause(self.somebody(), verbs.BE_FRAME, predicate=age))
        kinds = ("thing", "container", "clothes", "text", "device", "furniture", "fruit", "pastry")
        goods = self.phrase(self.pick(lexicon.NOUNS[self.pick(kinds)]), definite=True, plural=False)
        return Sentence(Clause(goods, verbs.COST, predicate=Adverb(f"{english} euros", f"{german} Euro")))

    def introduction(self) -> Sentence:
        """This is …, or there is …"""
        if self.chance(0.4):
            what = self.phrase(self.pick(lexicon.NOUNS["building"]), determiner=A)
            area = NounPhrase(self.pick(lexicon.NOUNS["area"]), self.pick((THE, THIS)))
            place = self.place("town") if self.chance(0.5) else Place("in", "in", Case.DATIVE, area)
            clause = Clause(phrases.THERE, verbs.THERE_IS, object=what, place=place)
            return Sentence(clause, self.pick((Order.STATEMENT, Order.QUESTION)))
        noun = self.pick([noun for kind in sorted(OWNABLE | {"person"}) for noun in lexicon.NOUNS[kind]])
        what = self.phrase(noun)
        if what.determiner in (ALL, EVERY, THIS):
            what = replace(what, determiner=THE)
        negated = self.chance(0.2) and what.determiner not in (phrases.MANY, phrases.SOME)
        this = phrases.THESE_ARE if what.plural else phrases.THAT_IS
        clause = Clause(this, verbs.BE_FRAME, object=what, negated=negated)
        return Sentence(clause, self.pick((Order.STATEMENT, Order.STATEMENT, Order.QUESTION)))

    def location(self) -> Sentence:
        """The location of something: on, under, behind …"""
        kinds = ("thing", "toy", "container", "clothes", "text", "animal", "pastry")
        thing = self.phrase(self.pick(lexicon.NOUNS[self.pick(kinds)]), definite=True)
        tense = self.pick((Tense.PAST, Tense.PRESENT, Tense.PRESENT))
        clause = Clause(thing, verbs.BE_FRAME, tense, place=self.surface(Case.DATIVE), negated=self.chance(0.15))
        return Sentence(clause, self.pick((Order.STATEMENT, Order.STATEMENT, Order.QUESTION)))

    def weather(self) -> Sentence:
        """It rains somewhere."""
        tense = self.pick(tuple(Tense))
        clause = Clause(phrases.IT, self.pick(verbs.WEATHER), tense, time=self.time(tense), place=self.place("town"))
        if tense is Tense.PRESENT and self.chance(0.5):
            clause = replace(clause, time=None, frequency=self.pick(lexicon.FREQUENCIES))
        return Sentence(replace(clause, front="time" if clause.time and self.chance(0.5) else ""))

    _KINDS = (
        (0.32, statement),
        (0.13, subordinate),
        (0.07, report),
        (0.05, intention),
        (0.03, coordination),
        (0.07, polar_question),
        (0.08, open_question),
        (0.06, command),
        (0.04, lambda self: Sentence(self.state())),
        (0.03, comparison),
        (0.05, amount),
        (0.03, introduction),
        (0.03, location),
        (0.01, weather),
    )

    def clause(
        self,
        *,
        subject: Nominal | None = None,
        tense: Tense | None = None,
        frames: Sequence[Frame] = _ACTIONS,
        bare: bool = False,
        plain: bool = False,
        rich: bool = False,
    ) -> Clause:
        """An action. bare: no time and place. plain: also no modal, negation, adverbs. rich: relative clauses."""
        frame = self.pick(frames)
        while (subject and "person" not in frame.subjects) or (tense is not None and tense not in frame.verb.tenses):
            frame = self.pick(frames)
        if subject is None:
            subject = self.subject(frame, rich and self.chance(0.15))
        if tense is None:
            tense = self.pick(frame.verb.tenses)
        target = self.object(frame, subject) if frame.objects else None
        recipient = self.receiver(subject) if frame.recipient else None
        modal = frequency = manner = place = time = None
        negated = False
        if not plain:
            if frame.action and tense is not Tense.FUTURE and self.chance(0.2):
                modal = self.pick([modal for modal in verbs.MODALS.values() if modal.past or tense is Tense.PRESENT])
            negated = self.chance(0.16) and not _quantified(target) and not _quantified(subject)
            if not negated and not modal and not _quantified(target) and self.chance(0.17):
                frequency = self.pick(lexicon.FREQUENCIES)
            elif not bare and (frame.action or tense is not Tense.PRESENT) and self.chance(0.45):
                time = self.time(tense)
                negated = negated and not time.words.startswith("every")
        suitable = [adverb for adverb, suited in lexicon.MANNERS.items() if frame.verb.english in suited]
        if suitable and not frame.verb.tail and not negated and self.chance(0.3):
            manner = self.pick(suitable)
        if frame.place and (frame.place not in ("where", "there", "water") or (not bare and self.chance(0.3))):
            place = self.place(frame.place) if not (negated and frame.preposition) else None
        clause = Clause(subject, frame, tense, modal, negated, target, recipient, None, frequency, manner, place, time)
        if rich and not time and not place and not manner and isinstance(target, NounPhrase) and self.chance(0.3):
            simple = tense is Tense.PRESENT and not modal and not frame.verb.prefix and not negated and not frequency
            if simple and not target.content and not frame.recipient and not target.determiner.indefinite:
                return replace(clause, object=self.with_relative(replace(target, owner=None)))
        return clause

    def state(self, *, subject: Nominal | None = None, tense: Tense | None = None, bare: bool = False) -> Clause:
        """A state with be or become: somebody is tired, something is very old."""
        if subject is None:
            subject = self.somebody()
            if self.chance(0.5):
                noun = self.pick(lexicon.NOUNS[self.pick(tuple(lexicon.QUALITIES))])
                subject = replace(self.phrase(noun, definite=True), adjective=None)
        kind = subject.noun.kind if isinstance(subject, NounPhrase) else "person"
        tense = self.pick((Tense.PAST, Tense.PRESENT, Tense.PRESENT, Tense.FUTURE)) if tense is None else tense
        frame = verbs.BECOME if kind == "person" and self.chance(0.2) else verbs.BE_FRAME
        adjective = self.pick(lexicon.BECOMING if frame is verbs.BECOME else lexicon.QUALITIES[kind])
        english, german = "", ""
        if adjective.comparative and self.chance(0.4):
            english, german = self.pick((("very ", "sehr "), ("very ", "sehr "), ("too ", "zu "), ("so ", "so ")))
        negated = self.chance(0.15) and not _quantified(subject)
        frequency = None
        if adjective in lexicon.BECOMING and frame is verbs.BE_FRAME and not negated and self.chance(0.15):
            frequency = self.pick(lexicon.FREQUENCIES)
        predicate = Adverb(english + adjective.english, german + adjective.german)
        return Clause(subject, frame, tense, negated=negated, predicate=predicate, frequency=frequency)

    def subject(self, frame: Frame, relative: bool) -> Nominal:
        """A subject that suits the verb."""
        kinds = sorted(frame.subjects)
        kind = "person" if "person" in kinds and self.chance(0.8) else self.pick(kinds)
        if kind == "person" and not relative:
            return self.somebody()
        phrase = self.phrase(self.pick(lexicon.NOUNS[kind]), definite=relative or self.chance(0.8))
        return self.with_relative(replace(phrase, owner=None)) if relative else phrase

    def with_relative(self, phrase: NounPhrase) -> NounPhrase:
        """The phrase with a relative clause of which it is the subject or the object."""
        noun = phrase.noun
        gap = phrases.relative_pronoun(noun, phrase.plural)
        phrase = replace(phrase, determiner=THE)
        if noun.kind == "person" and self.chance(0.5):
            return replace(phrase, relative=replace(self.clause(subject=gap, bare=True), modal=None))
        frames = _RELATIVE_FRAMES[noun.kind]
        if not frames:
            return phrase
        frame = self.pick(frames)
        clause = Clause(self.somebody(), frame, self.pick(frame.verb.tenses), object=gap, front="object")
        return replace(phrase, relative=clause)


def _quantified(nominal: Nominal | None) -> bool:
    """Whether its determiner (many, some, all, every, three) would be ambiguous in a negated clause."""
    if not isinstance(nominal, NounPhrase):
        return False
    determiner = nominal.determiner
    return determiner in (ALL, EVERY) or (determiner.indefinite and determiner not in (A, phrases.BARE))
