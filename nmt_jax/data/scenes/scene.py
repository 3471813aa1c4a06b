"""Random scenes and their pixels. Scene n of a split is a pure function of the split and n."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from nmt_jax.data.scenes.captions import Words, caption, caption_words
from nmt_jax.data.scenes.objects import AMBIGUOUS, COLOURS, GRID, SHAPES, SIZES, Object
from nmt_jax.data.scenes.questions import KINDS, LESSONS, Question, ask
from nmt_jax.errors import UserError

VERSION = 3  # increase it whenever a scene, its pixels, its caption or its question change
SPLITS = ("train", "dev", "test")
QUESTIONS = "questions"  # the family of scenes with a question
FAMILIES: dict[str, tuple[int, ...]] = {  # with what they add to the keys of the random numbers
    "": (),
    "ambiguous": (2,),
    QUESTIONS: (3,),
}
AMBIGUOUS_SHARE = 0.6  # of the scenes of that family, that have an ambiguous object
GREY = (95, 160)  # range of the background, between black and white objects
TINT = 15  # largest difference of the red, green and blue of an object from those of its colour
HELD_OUT = {0: "test", 4: "dev"}  # splits, by the number of the colour minus that of the shape


@dataclasses.dataclass(frozen=True)
class Scene:
    """Objects in the order of reading, on a grey background; noise: standard deviation of the brightness of pixels.

    key: of the random numbers of the noise. question: only of the family "questions".
    """

    objects: tuple[Object, ...]
    grey: int
    noise: float
    key: tuple[int, ...]
    question: Question | None = None

    def text(self, name: str) -> str:
        """The caption in "en" or "de", or the "question" or its "answer" if the scene has one."""
        if self.question:
            return {"question": self.question.text, "answer": self.question.answer}[name]
        return self.caption(name)

    def caption(self, language: str) -> str:
        """The caption in "en" or "de"; not of scenes with a question."""
        return caption(self.objects, language)

    def words(self, language: str) -> Words:
        """The words of the caption, see `caption_words`."""
        return caption_words(self.objects, language)

    def boxes(self, size: int) -> np.ndarray:
        """The box of each object in an image of `size` pixels, int32[N, 4]: left, top, right, bottom, see `Object`."""
        return np.array([one.box(size) for one in self.objects], np.int32)

    def draw(self, size: int) -> np.ndarray:
        """The image, uint8[size, size, 3]."""
        pixels = np.full((size, size, 3), self.grey, np.float64)
        for one in self.objects:
            pixels[one.mask(size)] = one.rgb
        noise = np.random.default_rng(self.key).normal(0, self.noise, (size, size, 1))
        return np.clip(np.rint(pixels + noise), 0, 255).astype(np.uint8)


def scene(split: str, number: int, family: str = "") -> Scene:
    """Scene `number`, from 0 on, of a split, "train", "dev" or "test", and of a family; equal on every machine.

    Of the family "ambiguous", most scenes show one object whose English name has two German translations; of the family
    "questions", each has a question. Raises UserError for another split or family, or a number below 0.
    """
    if family not in FAMILIES:
        families = ", ".join(filter(None, FAMILIES))
        raise UserError(f"scenes:{family}:{split}:{number}: no such scene; its family is one of {families}, or none")
    if split not in SPLITS or number < 0:
        raise UserError(
            f"scenes:{split}:{number}: no such scene; use one of {', '.join(SPLITS)} and a number from 0 on"
        )
    key = (SPLITS.index(split), number, *FAMILIES[family])
    random = np.random.default_rng(key)
    question = None
    if family == QUESTIONS:
        known = combinations(split)
        # Every second training scene teaches more about its objects than the answer of one word does.
        kinds = LESSONS if split == "train" and number % 2 else KINDS
        nameable = {*known, *combinations("train")}
        found, question = ask(random, lambda: _assortment(random, known), nameable, kinds)
        objects = [_varied(random, one) for one in found]
    else:
        objects = _line(random, split, AMBIGUOUS_SHARE if family else 0.0)
    noise = float(random.uniform(4, 16)) if random.random() < 0.5 else 0.0
    return Scene(tuple(objects), int(random.integers(GREY[0], GREY[1] + 1)), noise, (*key, 1), question)


@functools.cache
def combinations(split: str) -> list[tuple[int, int]]:
    """The combinations of shape and colour in a split, as numbers; 48 in "train", 8 each in "dev" and "test"."""
    return _combinations(split, [(shape, shape) for shape in range(len(SHAPES))])


def ambiguous_combinations(split: str) -> list[tuple[int, int]]:
    """The same of ambiguous shapes. Both meanings of a name share their colours, so that none tells the meaning."""
    return _combinations(split, [(len(SHAPES) + number, number // 2) for number in range(len(AMBIGUOUS))])


def _combinations(split: str, shapes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The combinations of shapes, each with the number that decides which colours are held out."""
    pairs = [(shape, colour, turn) for shape, turn in shapes for colour in range(len(COLOURS))]
    return [(shape, colour) for shape, colour, turn in pairs if HELD_OUT.get((colour - turn) % 8, "train") == split]


def _line(random: np.random.Generator, split: str, ambiguous_share: float) -> list[Object]:
    """One object, or two or three in one row or column; one of them is ambiguous in a share of the scenes."""
    places = _places(random, int(random.integers(1, 4)))
    which = int(random.integers(len(places))) if ambiguous_share and random.random() < ambiguous_share else -1
    known, ambiguous = combinations(split), ambiguous_combinations(split)
    pools = [ambiguous if number == which else known for number in range(len(places))]
    return [_varied(random, _object(random, pool, *place)) for pool, place in zip(pools, places, strict=True)]


def _assortment(random: np.random.Generator, known: list[tuple[int, int]]) -> list[Object]:
    """One to four objects anywhere, of at most three of the known combinations, so that many are alike."""
    few = [known[number] for number in random.integers(len(known), size=random.integers(1, 4))]
    places = sorted(random.permutation(GRID**2)[: random.integers(1, 5)].tolist())
    return [_object(random, few, place // GRID, place % GRID) for place in places]


def _places(random: np.random.Generator, count: int) -> list[tuple[int, int]]:
    """Places (row, column) of one object, or of several in one row or in one column, in the order of reading."""
    line = int(random.integers(GRID))
    others = sorted(random.choice(GRID, count, replace=False).tolist())
    in_a_row = random.random() < 0.5
    return [(line, other) if in_a_row else (other, line) for other in others]


def _object(random: np.random.Generator, known: list[tuple[int, int]], row: int, column: int) -> Object:
    """An object of one of the known combinations, exactly in the middle of its place."""
    shape, colour = known[random.integers(len(known))]
    return Object(shape, colour, int(random.integers(len(SIZES))), row, column)


def _varied(random: np.random.Generator, one: Object) -> Object:
    """An object with a random shift, so that it stays within its place, and a random tint."""
    room = 0.5 - SIZES[one.size][1]
    right, down = random.uniform(-room, room, 2)
    red, green, blue = random.integers(-TINT, TINT + 1, 3).tolist()
    return dataclasses.replace(one, shift=(float(right), float(down)), tint=(red, green, blue))
