"""Answers found by rules: names, dates, numbers and noun phrases, at their places."""

import pytest

from nmt_jax.augmentation.answer_spans import KINDS, find_spans, lower_case_words, sentences

LOWER_CASE = {"the", "old", "packet"}


def found(sentence, *kinds):
    return [(span.kind, sentence[span.start : span.end]) for span in find_spans(sentence, LOWER_CASE, kinds or KINDS)]


@pytest.mark.parametrize(
    ("sentence", "spans"),
    [
        ("On 3 May 1921, Karl Meier left Bonn.", [("date", "3 May 1921"), ("name", "Karl Meier"), ("name", "Bonn")]),
        ("It opened in the 1990s and on July 4 , 1776 .", [("date", "1990s"), ("date", "July 4 , 1776")]),
        ("They paid $3.5 million for 1,490 cows.", [("number", "$3.5 million"), ("number", "1,490")]),
        ("Twenty-four of them, or 12%, are 7 years old.", [("number", t) for t in ("Twenty-four", "12%", "7")]),
        ("The University of Bonn is in Germany.", [("name", "University of Bonn"), ("name", "Germany")]),
        ("Karl's house is John F. Kennedy's.", [("name", "Karl"), ("name", "John F. Kennedy")]),
        ("Packet switching was new.", []),  # `packet` is no name
        ("He sees the wooden bridge of Anna.", [("phrase", "wooden bridge"), ("name", "Anna")]),
        ("By means of steam power, she won.", [("phrase", "means"), ("phrase", "steam power")]),
        ("The barely moving of it", []),  # ends as an adverb or a verb does
        ("In May he may.", []),
        ("", []),
    ],
)
def test_spans_of_a_sentence(sentence, spans):
    assert found(sentence) == spans


def test_only_the_kinds_that_are_asked_for():
    sentence = "In May 1921, Karl sold two cows by the river."
    assert [kind for kind, _ in found(sentence)] == ["date", "name", "number", "phrase"]
    assert found(sentence, "number", "name") == [("name", "Karl"), ("number", "two")]  # and May is no name


def test_sentences_end_at_full_stops_but_not_after_abbreviations():
    text = '  Dr. A. Meier came. "He saw it!" She left at 3 p.m. with us . The end '
    assert [text[start:end] for start, end in sentences(text)] == [
        "Dr. A. Meier came.",
        '"He saw it!"',
        "She left at 3 p.m. with us .",
        "The end",
    ]
    assert sentences(" ") == []


def test_words_in_lower_case():
    assert lower_case_words(["A big Dog", "it's"]) == {"big", "it", "s"}


def test_words_that_end_as_numbers_do():
    assert found("A canteen in velveteen sold fourteen pies.", "number") == [("number", "fourteen")]
