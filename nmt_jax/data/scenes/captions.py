"""Captions of one to three objects in English and German; the objects and their places determine them."""

from collections.abc import Sequence

from nmt_jax.data.scenes.objects import Object

LANGUAGES = ("en", "de")
ARTICLES = {"m": ("ein", "einem"), "n": ("ein", "einem"), "f": ("eine", "einer")}  # nominative, dative
ENDINGS = {"m": ("er", "en"), "n": ("es", "en"), "f": ("e", "en")}  # of adjectives after them
PLACES = {  # of a single object
    "en": (
        ("at the top left", "at the top", "at the top right"),
        ("on the left", "in the middle", "on the right"),
        ("at the bottom left", "at the bottom", "at the bottom right"),
    ),
    "de": (
        ("oben links", "oben", "oben rechts"),
        ("links", "in der Mitte", "rechts"),
        ("unten links", "unten", "unten rechts"),
    ),
}
RELATIONS = {  # of the first of two objects to the second, by the direction of the second
    "en": {"right": "to the left of", "left": "to the right of", "down": "above", "up": "below"},
    "de": {"right": "links von", "left": "rechts von", "down": "über", "up": "unter"},
}
ORDERS = {  # of three objects, in a row or in a column
    "en": ("from left to right", "from top to bottom", "and"),
    "de": ("von links nach rechts", "von oben nach unten", "und"),
}


Words = list[tuple[str, int | None]]  # each with the number of the object that it describes


def caption(objects: Sequence[Object], language: str) -> str:
    """The caption of one object, or of two or three in one row or column, given in the order of reading.

    Of two objects, the larger one comes first, else that which is read first. language: "en" or "de".
    """
    return " ".join(word for word, _ in caption_words(objects, language))


def caption_words(objects: Sequence[Object], language: str) -> Words:
    """The words of a `caption`; those for size, colour and shape have the number of their object, others None."""
    if len(objects) == 1:
        (one,) = objects
        return [*_noun_phrase(objects, 0, language), *_plain(PLACES[language][one.row][one.column])]
    if len(objects) == 2:
        first, second = (0, 1) if objects[0].size >= objects[1].size else (1, 0)
        (direction,) = sides(objects[first], objects[second])
        relation = _plain(RELATIONS[language][direction])
        return [
            *_noun_phrase(objects, first, language),
            *relation,
            *_noun_phrase(objects, second, language, dative=True),
        ]
    across, down, conjunction = ORDERS[language]
    *phrases, last = (_noun_phrase(objects, number, language) for number in range(3))
    (noun, _), number = phrases[0][-1], 0
    phrases[0][-1] = f"{noun},", number
    order = across if objects[0].row == objects[1].row else down
    return [*_plain(order), *phrases[0], *phrases[1], (conjunction, None), *last]


def sides(one: Object, other: Object) -> list[str]:
    """The sides of the first object on which the second lies, keys of RELATIONS; one if they share a row or column."""
    across = ["right"] if other.column > one.column else ["left"] if other.column < one.column else []
    return across + (["down"] if other.row > one.row else ["up"] if other.row < one.row else [])


def _plain(text: str) -> Words:
    return [(word, None) for word in text.split()]


def _noun_phrase(objects: Sequence[Object], number: int, language: str, dative: bool = False) -> Words:
    """Article, size, colour and shape of an object: "a small red circle", "einem kleinen roten Kreis"."""
    one = objects[number]
    if language == "en":
        return [("a", None), *((word.english, number) for word in one.adjectives), (one.noun.english, number)]
    article, ending = ARTICLES[one.noun.gender][dative], ENDINGS[one.noun.gender][dative]
    return [
        (article, None),
        *((word.german + ending, number) for word in one.adjectives),
        (one.noun.german, number),
    ]
