"""Questions about the embedded scenes: another reading of their text finds the same answer, and only that one."""

import collections
import hashlib
import re

import pytest

from nmt_jax.data import scenes
from nmt_jax.data.scenes.objects import COLOURS, SHAPES, SIZES
from nmt_jax.data.scenes.questions import ANSWERS, LESSONS
from nmt_jax.data.scenes.scene import combinations

COUNT = 600
SIDES = {  # of one object from another
    "to the left of": lambda one, other: one.column < other.column,
    "to the right of": lambda one, other: one.column > other.column,
    "above": lambda one, other: one.row < other.row,
    "below": lambda one, other: one.row > other.row,
}
SIDE = "|".join(SIDES)
PLACES = {  # all places that a reader may mean
    "at the top left": lambda one: (one.row, one.column) == (0, 0),
    "at the top right": lambda one: (one.row, one.column) == (0, 2),
    "at the bottom left": lambda one: (one.row, one.column) == (2, 0),
    "at the bottom right": lambda one: (one.row, one.column) == (2, 2),
    "in the middle": lambda one: (one.row, one.column) == (1, 1),
    "at the top": lambda one: one.row == 0,
    "at the bottom": lambda one: one.row == 2,
    "on the left": lambda one: one.column == 0,
    "on the right": lambda one: one.column == 2,
}


@pytest.fixture(scope="module")
def drawn():
    """Scenes of each split. Every second one of training has a lesson."""
    counts = {"train": 2 * COUNT, "dev": COUNT, "test": COUNT}
    return {split: [scenes.scene(split, number, "questions") for number in range(counts[split])] for split in counts}


@pytest.fixture(scope="module")
def asked(drawn):
    """Scenes with questions that one word answers."""
    return {split: [one for one in part if one.question.kind not in LESSONS] for split, part in drawn.items()}


def words(one):
    return {"size": SIZES[one.size][0].english, "colour": COLOURS[one.colour][0].english, "shape": one.noun.english}


def described(objects, phrase):
    """The objects that a noun phrase without an article may mean."""
    wanted = [word for word in phrase.split() if word not in ("object", "objects")]
    return [
        one
        for one in objects
        if all(word in {*words(one).values(), f"{one.noun.english}s", f"{one.noun.english}es"} for word in wanted)
    ]


def answer(objects, text):
    """The answer to a question; fails if a phrase of it does not mean one object."""
    if found := re.fullmatch(r"how many (.*) are there \?", text):
        return str(len(described(objects, found[1])))
    if found := re.fullmatch(r"is there a (.*) \?", text):
        return "yes" if described(objects, found[1]) else "no"
    if found := re.fullmatch(rf"is the (.*) ({SIDE}) the (.*) \?", text):
        (one,), (other,) = described(objects, found[1]), described(objects, found[3])
        assert one.row == other.row or one.column == other.column
        return "yes" if SIDES[found[2]](one, other) else "no"
    if found := re.fullmatch(rf"what is ({SIDE}) the (.*) \?", text):
        (other,) = described(objects, found[2])
        (one,) = (one for one in objects if SIDES[found[1]](one, other))
        assert one.row == other.row or one.column == other.column
        return words(one)["shape"]
    found = re.fullmatch(rf"what (\w+) is the (.*?)( {'| '.join(PLACES)})? \?", text)
    place = PLACES[found[3].strip()] if found[3] else lambda one: True
    (one,) = (one for one in described(objects, found[2]) if place(one))
    return words(one)[found[1]]


def test_the_objects_determine_the_answer(asked):
    for scene in (scene for part in asked.values() for scene in part):
        assert answer(scene.objects, scene.question.text) == scene.question.answer, scene


def lesson(objects, text):
    """The answer to a lesson, in the same way."""
    if found := re.fullmatch(r"where is the (.*) relative to the (.*) \?", text):
        (one,), (other,) = described(objects, found[1]), described(objects, found[2])
        assert one.row == other.row or one.column == other.column
        return next(f"{side} it" for side, is_there in SIDES.items() if is_there(one, other))
    if found := re.fullmatch(r"where is the (.*) \?", text):
        (one,) = described(objects, found[1])
        return next(place for place, is_at in PLACES.items() if is_at(one))  # corners and the middle come first
    found = re.fullmatch(r"what is in the picture \?|which (.*) are there \?", text)
    return " and ".join(" ".join(words(one).values()) for one in described(objects, found[1] or "")) or "none"


def test_every_second_training_scene_has_a_lesson(drawn):
    lessons = [one for one in drawn["train"] if one.question.kind in LESSONS]
    assert lessons == drawn["train"][1::2]
    for scene in lessons:
        assert lesson(scene.objects, scene.question.text) == scene.question.answer, scene
        places = [(one.row, one.column) for one in scene.objects]
        assert places == sorted(places)
    kinds = collections.Counter(scene.question.kind for scene in lessons)
    assert kinds.keys() == set(LESSONS)
    assert all(abs(count - COUNT / 4) < 4 * (COUNT / 4) ** 0.5 for count in kinds.values())
    lists = [scene.question.answer for scene in lessons if scene.question.kind == "which"]
    assert 0.2 < lists.count("none") / len(lists) < 0.6
    assert all(one.question.kind not in LESSONS for split in ("dev", "test") for one in drawn[split])


def test_kinds_and_their_answers_are_equally_frequent(asked):
    for part in asked.values():
        kinds = collections.Counter(scene.question.kind for scene in part)
        assert kinds.keys() == ANSWERS.keys()
        for kind, count in kinds.items():
            expected = COUNT / len(ANSWERS)
            assert abs(count - expected) < 4 * expected**0.5
            answers = collections.Counter(scene.question.answer for scene in part if scene.question.kind == kind)
            assert answers.keys() == set(ANSWERS[kind])
            for number in answers.values():
                expected = count / len(ANSWERS[kind])
                assert abs(number - expected) < 4 * expected**0.5


def test_no_training_question_shows_or_names_a_held_out_combination(drawn):
    colours, shapes = ([word.english for word, _ in table] for table in (COLOURS, SHAPES))
    for split, part in drawn.items():
        shown = {(one.shape, one.colour) for scene in part for one in scene.objects}
        assert shown == set(combinations(split))
        for scene in part:
            text = f"{scene.question.text} {scene.question.answer}"
            named = re.findall(rf"({'|'.join(colours)}) ({'|'.join(shapes)})", text)
            assert {(shapes.index(shape), colours.index(colour)) for colour, shape in named} <= {
                *combinations("train"),
                *combinations(split),
            }


def test_questions_are_the_same_everywhere(drawn):
    whole = hashlib.sha256()
    for part in drawn.values():
        for scene in part[:100]:
            whole.update(scene.draw(48).tobytes() + "\t".join(scene.question).encode())
    # A change of questions needs another version, or prepared corpora of the old ones are used.
    assert (scenes.VERSION, whole.hexdigest()[:16]) == (3, "2502e801c7ad86cb")


def test_most_questions_differ(asked):
    for part in asked.values():
        assert len({(scene.objects, scene.question.text) for scene in part}) == COUNT
        assert len({scene.question.text for scene in part}) > COUNT / 4
