"""Syntax: clauses and sentences, rendered in both languages with the word order of each."""

from dataclasses import dataclass, replace

from nmt_jax.data.grammar import inflection
from nmt_jax.data.grammar.inflection import Adverb, Agreement, Case, Modal, Order, Tense
from nmt_jax.data.grammar.phrases import NO, Adverbial, Nominal, NounPhrase, Pronoun, prepositional
from nmt_jax.data.grammar.verbs import Frame


@dataclass(frozen=True, slots=True)
class Clause:
    """A verb with its arguments and adverbials; `front` names the slot before the verb, if not the subject."""

    subject: Nominal
    frame: Frame
    tense: Tense = Tense.PRESENT
    modal: Modal | None = None
    negated: bool = False
    object: Nominal | None = None
    recipient: Nominal | None = None
    predicate: Adverbial | None = None
    frequency: Adverb | None = None
    manner: Adverb | None = None
    place: Adverbial | None = None
    time: Adverbial | None = None
    front: str = ""

    def english(self, order: Order = Order.STATEMENT) -> str:
        """Subject, verbs, object, manner, place, time; with do-support and inversion in questions."""
        verb = self.frame.verb
        auxiliary, main = self._english_verbs(order)
        negation = "not" if self.negated else ""
        frequency = self.frequency.english() if self.frequency else ""
        subject = self.subject.english()
        if order is Order.COMMAND:
            head = ["do not" if self.negated else "", main]
        elif order is Order.INFINITIVE:
            head = ["to", main]
        elif order is Order.QUESTION and self.front != "subject":
            head = [auxiliary, subject, negation, frequency, main]
        else:
            head = [subject, auxiliary, negation, frequency, main]
        slots = {"tail": verb.tail, "particle": verb.particle}
        for name, nominal in (("recipient", self.recipient), ("object", self.object)):
            slots[name] = nominal.english(objective=True) if nominal else ""
        if isinstance(self.object, Pronoun) and self.front != "object":  # pick him up
            slots["particle"] = slots.pop("particle")
        if self.frame.recipient == "to":  # explain the rule to him
            slots["recipient"] = f"to {slots.pop('recipient')}"
        for name in ("predicate", "manner", "place", "time"):
            if adverbial := getattr(self, name):
                slots[name] = adverbial.english()
        front = slots.pop(self.front, "")
        return " ".join(filter(None, (front, *head, *slots.values())))

    def german(self, order: Order = Order.STATEMENT) -> str:
        """First slot, finite verb, middle field, other verbs; the finite verb is last in subordinate clauses."""
        slots = self._german_slots()
        finite, rest = self._german_verbs(order)
        if order in (Order.INFINITIVE, Order.COMMAND):
            del slots["subject"]
        front = slots.pop(self.front or ("subject" if order is Order.STATEMENT else ""), "")
        inverted = "subject" in slots and order in (Order.STATEMENT, Order.QUESTION)
        if inverted and self.frame.verb.reflexive and not isinstance(self.subject, Pronoun):
            slots = {"reflexive": slots["reflexive"], **slots}  # Heute erinnert sich der Mann …
        middle = slots.values()
        if order in (Order.SUBORDINATE, Order.INFINITIVE):
            return " ".join(filter(None, (front, *middle, rest, finite)))
        return " ".join(filter(None, (front, finite, *middle, rest)))

    def _english_verbs(self, order: Order) -> tuple[str, str]:
        """The auxiliary, which is inverted and negated, and the other verbs."""
        base, past = self.frame.verb.english, self.frame.verb.past
        if self.modal and self.modal.auxiliary:
            auxiliary = self.modal.past if self.tense is Tense.PAST else self.modal.english
            return auxiliary, f"{self.modal.tail} {base}".lstrip()
        rest = ""
        if self.modal:
            base, past, rest = self.modal.english, self.modal.past, f" {self.modal.tail} {base}"
        if order in (Order.INFINITIVE, Order.COMMAND):
            return "", base + rest
        if self.tense is Tense.FUTURE:
            return "will", base + rest
        agreement = self.subject.agreement
        if base == "be":
            return inflection.BE[self.tense][agreement], ""
        if self.negated or (order is Order.QUESTION and self.front != "subject"):
            does = "does" if agreement is Agreement.HE else "do"
            return "did" if self.tense is Tense.PAST else does, base + rest
        if self.tense is Tense.PAST:
            return "", past + rest
        return "", (inflection.english_s(base) if agreement is Agreement.HE else base) + rest

    def _german_verbs(self, order: Order) -> tuple[str, str]:
        """The finite verb and the other verbs, including the separable prefix of a fronted finite verb."""
        verb, agreement = self.frame.verb, self.subject.agreement
        infinitive = verb.prefix + verb.infinitive
        if order is Order.COMMAND:
            return verb.imperative, verb.prefix.strip()
        if order is Order.INFINITIVE:
            attached = verb.prefix and not verb.prefix.endswith(" ")  # anzurufen, but: Fußball zu spielen
            return f"{verb.prefix}zu{'' if attached else ' '}{verb.infinitive}", ""
        if self.modal:
            forms = inflection.PRETERITE_FORMS if self.tense is Tense.PAST else inflection.PRESENT_FORMS
            return forms[self.modal.german][agreement], infinitive
        if self.tense is Tense.FUTURE:
            return inflection.PRESENT_FORMS["werden"][agreement], infinitive
        if self.tense is Tense.PAST:
            if verb.infinitive in inflection.PRETERITE_FORMS:
                return inflection.PRETERITE_FORMS[verb.infinitive][agreement], ""
            return inflection.PRESENT_FORMS[verb.auxiliary][agreement], verb.participle
        if order is Order.SUBORDINATE:
            return verb.prefix + verb.conjugate(agreement), ""
        return verb.conjugate(agreement), verb.prefix.strip()

    def _german_slots(self) -> dict[str, str]:
        """All constituents except the verbs, in the order of the middle field."""
        target, negation = self.object, "nicht" if self.negated else ""
        indefinite = isinstance(target, NounPhrase) and target.determiner.indefinite
        late = bool(self.frame.preposition) or self.frame.case is Case.NOMINATIVE
        if negation and isinstance(target, NounPhrase) and indefinite and not self.frame.preposition:
            target, negation = replace(target, determiner=NO), ""
        phrase = prepositional(self.frame.preposition, target, self.frame.case) if target else ""
        field = "late" if late else "pronoun" if isinstance(target, Pronoun) else "new" if indefinite else "known"
        recipient = self.recipient.german(Case.DATIVE) if self.recipient else ""
        first = isinstance(self.recipient, Pronoun)
        slots = (
            ("subject", self.subject.german(Case.NOMINATIVE)),
            ("reflexive", inflection.REFLEXIVE[self.subject.agreement] if self.frame.verb.reflexive else ""),
            ("recipient", recipient if first else ""),
            ("object", phrase if field == "pronoun" else ""),
            ("time", self.time.german() if self.time else ""),
            ("recipient", recipient if not first else ""),
            ("object", phrase if field == "known" else ""),
            ("adverb", self.frequency.german() if self.frequency else negation),
            ("object", phrase if field == "new" else ""),
            ("manner", self.manner.german() if self.manner else ""),
            ("place", self.place.german() if self.place else ""),
            ("object", phrase if field == "late" else ""),
            ("predicate", self.predicate.german() if self.predicate else ""),
        )
        return {name: text for name, text in slots if text}


@dataclass(frozen=True, slots=True)
class Link:
    """A conjunction and the order of its clause; empty for infinitive clauses, which include `to` and `zu`."""

    english: str
    german: str
    order: Order = Order.SUBORDINATE


@dataclass(frozen=True, slots=True)
class Sentence:
    """A main clause, with an optional second clause after it, or before it if `reversed`."""

    main: Clause
    order: Order = Order.STATEMENT
    link: Link | None = None
    second: Clause | None = None
    reversed: bool = False
    polite: bool = False

    def english(self) -> str:
        """The English sentence, capitalized and punctuated."""
        text = "please " * self.polite + self.main.english(self.order)
        if self.link and self.second:
            second = f"{self.link.english} {self.second.english(self.link.order)}".lstrip()
            comma = "," * (self.reversed or self.link.english == "but")
            text = f"{second}{comma} {text}" if self.reversed else f"{text}{comma} {second}"
        return _finish(text, self.order)

    def german(self) -> str:
        """The German sentence; after an initial subordinate clause, the main clause begins with its verb."""
        order = Order.QUESTION if self.reversed else self.order
        text = "bitte " * self.polite + self.main.german(order)
        if self.link and self.second:
            second = f"{self.link.german} {self.second.german(self.link.order)}".lstrip()
            comma = "" if self.link.german == "und" else ","
            text = f"{second}, {text}" if self.reversed else f"{text}{comma} {second}"
        return _finish(text.replace(",,", ","), self.order)


def _finish(text: str, order: Order) -> str:
    end = {Order.QUESTION: "?", Order.COMMAND: "!"}.get(order, ".")
    text = text.rstrip(",")
    return text[0].upper() + text[1:] + end


AND, BUT = Link("and", "und", Order.STATEMENT), Link("but", "aber", Order.STATEMENT)
BECAUSE, ALTHOUGH, IF = Link("because", "weil"), Link("although", "obwohl"), Link("if", "wenn")
WHEN, WHILE = Link("when", "als"), Link("while", "während")  # "when" only with the past
THAT, WHETHER, TO = Link("that", "dass"), Link("whether", "ob"), Link("", "", Order.INFINITIVE)
