"""Questions made from text: answers are at their places, and no question contains its answer."""

import itertools
import re

import pytest

from nmt_jax.augmentation.cloze_questions import ClozeQuestions, contains
from nmt_jax.retrieval.bm25 import words

TEXT = [
    "Karl Meier opened a bakery in Bonn in 1921, when bread was cheap. He sold 300 loaves a day to the workers of the "
    "old steel mill. By 1930, his bakery had four ovens.",
    "The steel mill closed on 3 March 1958. Anna Meier, who ran the bakery in Bonn then, lost half of her customers.",
    "",
    "In the town of Bonn, Karl Meier is remembered for his bakery and for cheap bread.",
    "Nothing.",
    "The river is wide. A ferry crosses the wide river in 1921, 1922 and 1923, and it carries twelve cows.",
]

QUESTION_WORDS = re.compile(r"^(In what (year|place)|On what date|How (many|much)|What percentage|Wh\w+) ")


@pytest.fixture(params=[False, True], ids=["own", "other"])
def made(request):
    maker = ClozeQuestions(TEXT, other=request.param, rate=0.05, seed=3)
    return [(number, question) for number in range(len(TEXT)) for question in maker.of(number, 50)]


def test_answers_are_at_their_places_and_apart(made):
    assert {number for number, _ in made} == {0, 1, 3, 5}
    for number in range(len(TEXT)):
        spans = sorted((one.start, one.start + len(one.answer)) for n, one in made if n == number)
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    for number, one in made:
        assert one.answer
        assert TEXT[number][one.start :].startswith(one.answer)


def test_no_question_contains_its_answer(made):
    for _, one in made:
        assert QUESTION_WORDS.match(one.question)
        assert re.search(r"\w\?$", one.question)
        assert not contains(one.question, one.answer)
        assert len(one.question.split()) <= 34
    twice = ClozeQuestions(["In Bonn, Karl sold the bakery of Karl to Anna."], rate=1e-9).of(0, 50)
    assert {one.answer for one in twice} == {"Bonn", "Anna", "bakery"}
    assert contains("He saw Karl Meier's dog", "karl meier")
    assert not contains("in 1921", "92")


def test_questions_of_a_sentence_by_hand():
    """`Wh + B + A`: what follows the answer, then what precedes it, without the preposition or article before it."""
    text = ["Anna Meier bought the bakery of Karl in 1958 from a friend."]
    found = {one.answer: one.question for one in ClozeQuestions(text, rate=1e-9).of(0, 50)}
    assert found["Anna Meier"] in [
        f"{w} bought the bakery of Karl in 1958 from a friend?" for w in ("Who", "What", "Which")
    ]
    assert found["1958"] in [
        f"{w} from a friend Anna Meier bought the bakery of Karl?" for w in ("When", "In what year")
    ]
    assert found["bakery"] in [f"{w} of Karl in 1958 from a friend Anna Meier bought?" for w in ("What", "Which")]
    assert "in 1958 from a friend Anna Meier bought the bakery of?" in found["Karl"]


def test_question_words_suit_the_answer(made):
    for answers, beginnings in (
        (("1921", "1930", "3 March 1958"), ("When", "In what year", "On what date")),
        (("300", "four", "twelve"), ("How many",)),
    ):
        questions = [one.question for _, one in made if one.answer in answers]
        assert questions
        assert all(question.startswith(beginnings) for question in questions)


def test_another_sentence_asks_for_the_same_answer():
    own, other = (ClozeQuestions(TEXT, rate=1e-9, other=other, seed=3) for other in (False, True))
    assert not any(one.other for number in range(len(TEXT)) for one in own.of(number, 50))
    made = [(number, one) for number in range(len(TEXT)) for one in other.of(number, 50)]
    others = [(number, one) for number, one in made if one.other]
    assert {one.answer for _, one in others} >= {"Bonn", "Karl Meier"}
    assert len(others) < len(made)  # most answers occur once
    for number, one in others:
        asked = set(words(QUESTION_WORDS.sub("", one.question)))
        assert not asked <= set(words(TEXT[number]))
        assert any(contains(text, one.answer) and asked <= set(words(text)) for text in TEXT)


def test_questions_depend_on_the_text_the_seed_and_the_paragraph():
    maker = ClozeQuestions(TEXT, seed=3)
    assert maker.of(1, 9) == ClozeQuestions(TEXT, seed=3).of(1, 9)
    assert maker.of(0, 50) != ClozeQuestions(TEXT, seed=4).of(0, 50)
    assert len(maker.of(0, 2)) == 2
    assert len({re.fullmatch(r"\d+", one.answer) is None for one in maker.of(0, 3)}) == 2  # several kinds
    assert all(one.answer in ("1921", "1922", "1923") for one in ClozeQuestions(TEXT, kinds=["date"]).of(5, 9))


def test_another_paragraph_lacks_the_answer():
    maker = ClozeQuestions(TEXT, seed=3)
    questions = maker.of(0, 50)
    found = maker.elsewhere(0, questions, 1)
    assert found
    for other, one in found:
        assert other != 0
        assert not contains(TEXT[other], one.answer)
    some = maker.elsewhere(0, questions, 0.5)
    assert set(some) < set(found)
    assert some == maker.elsewhere(0, questions, 0.5)
    assert maker.elsewhere(0, questions, 0) == ClozeQuestions(TEXT[:1]).elsewhere(0, questions, 1) == []
