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


def caption(objects: Sequence[Object], language: str) -> str:
    """The caption of one object, or of two or three in one row or column, given in the order of reading.

    Of two objects, the larger one comes first, else that which is read first. language: "en" or "de".
    """
    if len(objects) == 1:
        (one,) = objects
        return f"{_noun_phrase(one, language)} {PLACES[language][one.row][one.column]}"
    in_a_row = objects[0].row == objects[1].row
    if len(objects) == 2:
        first, second = objects if objects[0].size >= objects[1].size else objects[::-1]
        if in_a_row:
            direction = "right" if second.column > first.column else "left"
        else:
            direction = "down" if second.row > first.row else "up"
        relation = RELATIONS[language][direction]
        return f"{_noun_phrase(first, language)} {relation} {_noun_phrase(second, language, dative=True)}"
    across, down, conjunction = ORDERS[language]
    phrases = [_noun_phrase(one, language) for one in objects]
    return f"{across if in_a_row else down} {phrases[0]}, {phrases[1]} {conjunction} {phrases[2]}"


def _noun_phrase(one: Object, language: str, dative: bool = False) -> str:
    """Article, size, colour and shape: "a small red circle", "einem kleinen roten Kreis"."""
    if language == "en":
        return " ".join(["a", *(word.english for word in one.adjectives), one.noun.english])
    article, ending = ARTICLES[one.noun.gender][dative], ENDINGS[one.noun.gender][dative]
    return " ".join([article, *(word.german + ending for word in one.adjectives), one.noun.german])
