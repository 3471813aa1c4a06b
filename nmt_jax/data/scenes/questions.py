"""Questions about scenes in English; the objects determine the answer, which is one word but for lessons."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nmt_jax.data.scenes.captions import PLACES, RELATIONS, sides
from nmt_jax.data.scenes.objects import COLOURS, SHAPES, SIZES, Object

WORDS = {  # of the attributes of objects, in the order of a noun phrase
    "size": tuple(word.english for word, _ in SIZES),
    "colour": tuple(word.english for word, _ in COLOURS),
    "shape": tuple(noun.english for noun, _ in SHAPES),
}
JUDGED = {  # kinds of questions whose answers are not equally frequent in random scenes
    "count": ("0", "1", "2", "3"),
    "existence": ("yes", "no"),
    "position": ("yes", "no"),
}
ANSWERS = {**WORDS, **JUDGED}  # of each kind of question
KINDS = tuple(ANSWERS)
LESSONS = ("everything", "which", "place", "side")  # longer answers teach what the other kinds need
NOTHING = "none"

Nameable = Collection[tuple[int, int]]  # combinations of shape and colour that a question may name
Form = Callable[[Sequence[Object], Nameable], Iterator[tuple[str, str]]]  # all its questions, with their answers


class Question(NamedTuple):
    """A question with its answer; kind: one of KINDS or LESSONS."""

    kind: str
    text: str
    answer: str


def ask(
    random: np.random.Generator,
    draw: Callable[[], Sequence[Object]],
    nameable: Nameable,
    kinds: tuple[str, ...] = KINDS,
) -> tuple[Sequence[Object], Question]:
    """A random question of one of the kinds about the first objects from `draw` that allow it.

    All kinds are equally frequent. So are all answers to a form of KINDS, so that the text does not tell the answer.
    """
    kind = kinds[random.integers(len(kinds))]
    form = FORMS[kind][random.integers(len(FORMS[kind]))]
    wanted = ANSWERS.get(kind)  # None for lessons: any answer
    if wanted and kind in JUDGED:
        wanted = (wanted[random.integers(len(wanted))],)
    while True:
        objects = draw()
        if found := [pair for pair in form(objects, nameable) if wanted is None or pair[1] in wanted]:
            return objects, Question(kind, *found[random.integers(len(found))])


def _attribute(asked: str, *named: str) -> Form:
    """What colour is the small circle? Of objects that are the only ones with their values of the attributes named."""

    def questions(objects: Sequence[Object], nameable: Nameable) -> Iterator[tuple[str, str]]:
        for phrase, one in _identified(objects, named):
            yield f"what {asked} is the {phrase} ?", WORDS[asked][getattr(one, asked)]

    return questions


def _attribute_at_place(asked: str) -> Form:
    """What colour is the object at the top left? Other objects must not lie on the same side, such as at the top."""

    def questions(objects: Sequence[Object], nameable: Nameable) -> Iterator[tuple[str, str]]:
        for one in objects:
            others = [other for other in objects if other is not one]
            same_row, same_column = (any(getattr(o, a) == getattr(one, a) for o in others) for a in ("row", "column"))
            if (one.column == 1 != one.row and same_row) or (one.row == 1 != one.column and same_column):
                continue
            yield f"what {asked} is the object {PLACES['en'][one.row][one.column]} ?", WORDS[asked][getattr(one, asked)]

    return questions


def _neighbour(*named: str) -> Form:
    """What is to the left of the red square? If one object is on that side, in the same row or column."""

    def questions(objects: Sequence[Object], nameable: Nameable) -> Iterator[tuple[str, str]]:
        for phrase, one in _identified(objects, named):
            for side, relation in RELATIONS["en"].items():
                found = [other for other in objects if side in sides(other, one)]
                if len(found) == 1 and sides(found[0], one) == [side]:
                    yield f"what is {relation} the {phrase} ?", WORDS["shape"][found[0].shape]

    return questions


def _count(*named: str) -> Form:
    """How many red circles are there?"""

    def questions(objects: Sequence[Object], nameable: Nameable) -> Iterator[tuple[str, str]]:
        for values in _descriptions(objects, named, nameable):
            yield f"how many {_phrase(values, plural=True)} are there ?", str(len(_matching(objects, values)))

    return questions


def _existence(*named: str) -> Form:
    """Is there a red circle?"""

    def questions(objects: Sequence[Object], nameable: Nameable) -> Iterator[tuple[str, str]]:
        for values in _descriptions(objects, named, nameable):
            yield f"is there a {_phrase(values)} ?", "yes" if _matching(objects, values) else "no"

    return questions


def _position(*named: str) -> Form:
    """Is the circle above the square? Of two objects in one row or column."""

    def questions(objects: Sequence[Object], nameable: Nameable) -> Iterator[tuple[str, str]]:
        for first, second, found in _related(objects, named):
            for side, relation in RELATIONS["en"].items():
                yield f"is the {first} {relation} the {second} ?", "yes" if found == side else "no"

    return questions


def _everything(objects: Sequence[Object], nameable: Nameable) -> Iterator[tuple[str, str]]:
    """What is in the picture? A list of noun phrases in the order of reading."""
    yield "what is in the picture ?", _list(objects)


def _which(*named: str, some: bool = True) -> Form:
    """Which red circles are there? The same list of those, where there are `some`, or else none."""

    def questions(objects: Sequence[Object], nameable: Nameable) -> Iterator[tuple[str, str]]:
        for values in _descriptions(objects, named, nameable):
            if bool(found := _matching(objects, values)) is some:
                yield f"which {_phrase(values, plural=True)} are there ?", _list(found)

    return questions


def _place(*named: str) -> Form:
    """Where is the red circle?"""

    def questions(objects: Sequence[Object], nameable: Nameable) -> Iterator[tuple[str, str]]:
        for phrase, one in _identified(objects, named):
            yield f"where is the {phrase} ?", PLACES["en"][one.row][one.column]

    return questions


def _side(*named: str) -> Form:
    """Where is the circle relative to the square? Of two objects in one row or column."""

    def questions(objects: Sequence[Object], nameable: Nameable) -> Iterator[tuple[str, str]]:
        for first, second, found in _related(objects, named):
            yield f"where is the {first} relative to the {second} ?", f"{RELATIONS['en'][found]} it"

    return questions


FORMS: dict[str, tuple[Form, ...]] = {
    "size": (
        _attribute("size", "shape"),
        _attribute("size", "colour"),
        _attribute("size", "colour", "shape"),
        _attribute_at_place("size"),
    ),
    "colour": (_attribute("colour", "shape"), _attribute("colour", "size", "shape"), _attribute_at_place("colour")),
    "shape": (
        _attribute("shape", "colour"),
        _attribute("shape", "size", "colour"),
        _attribute_at_place("shape"),
        _neighbour("colour", "shape"),
    ),
    "count": (_count("shape"), _count("colour"), _count("size"), _count("colour", "shape")),
    "existence": (
        _existence("shape"),
        _existence("colour"),
        _existence("colour", "shape"),
        _existence("size", "shape"),
    ),
    "position": (_position("shape"), _position("colour"), _position("colour", "shape")),
    "everything": (_everything,),
    "which": (
        _which("shape"),
        _which("colour"),
        _which("size"),
        _which("colour", "shape"),
        _which("size", "shape"),
        _which("shape", some=False),
        _which("colour", some=False),
        _which("colour", "shape", some=False),
    ),
    "place": (_place("shape"), _place("colour"), _place("colour", "shape")),
    "side": (_side("shape"), _side("colour"), _side("colour", "shape")),
}


def _identified(objects: Sequence[Object], named: Sequence[str]) -> list[tuple[str, Object]]:
    """The objects that are the only ones with their values of the attributes `named`, with noun phrases."""
    described = [({attribute: getattr(one, attribute) for attribute in named}, one) for one in objects]
    return [(_phrase(values), one) for values, one in described if len(_matching(objects, values)) == 1]


def _related(objects: Sequence[Object], named: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Noun phrases of two identified objects in one row or column, and the side of the first on which the second is."""
    for (first, one), (second, other) in itertools.permutations(_identified(objects, named), 2):
        if len(found := sides(one, other)) == 1:
            yield first, second, found[0]


def _descriptions(objects: Sequence[Object], named: Sequence[str], nameable: Nameable) -> Iterator[dict[str, int]]:
    """All values of one attribute; of several ones, combinations of values that occur, perhaps of different objects."""
    if len(named) == 1:
        choices = [list(range(len(WORDS[named[0]])))]
    else:
        choices = [sorted({getattr(one, attribute) for one in objects}) for attribute in named]
    for numbers in itertools.product(*choices):
        values = dict(zip(named, numbers, strict=True))
        if not {"shape", "colour"} <= values.keys() or (values["shape"], values["colour"]) in nameable:
            yield values


def _matching(objects: Sequence[Object], values: dict[str, int]) -> list[Object]:
    """The objects with these values of attributes."""
    return [one for one in objects if all(getattr(one, name) == number for name, number in values.items())]


def _list(objects: Sequence[Object]) -> str:
    """The noun phrases of the objects with all their attributes, or NOTHING."""
    return " and ".join(_phrase({name: getattr(one, name) for name in WORDS}) for one in objects) or NOTHING


def _phrase(values: dict[str, int], plural: bool = False) -> str:
    """A noun phrase without an article: "small red circle", "red objects"."""
    *adjectives, noun = (WORDS[name][values[name]] if name in values else "" for name in WORDS)
    noun = noun or "object"
    ending = ("es" if noun.endswith("s") else "s") if plural else ""
    return " ".join([*filter(None, adjectives), noun + ending])
