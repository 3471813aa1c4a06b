"""Nearest words and analogies."""

import numpy as np
import pytest

from metrics_jax.embedding.nearest import Neighbours, UnknownWordError, parse, solved
from metrics_jax.embedding.vectors import Vectors

WORDS = ("man", "woman", "king", "queen", "-", "nothing", "well-read")
MATRIX = np.array([[1, 0, 0.1], [0, 1, 0.1], [3, 0, 3], [0, 2, 2], [1, 1, 1], [0, 0, 0], [-1, -1, 0.5]])
NEIGHBOURS = Neighbours(Vectors(WORDS, MATRIX))


def test_nearest_words_are_independent_of_vector_length():
    found = NEIGHBOURS("king", 3)
    assert [word for word, _ in found] == ["-", "man", "queen"]
    king = MATRIX[2] / np.linalg.norm(MATRIX[2])
    for word, cosine in found:
        row = MATRIX[WORDS.index(word)]
        assert cosine == pytest.approx(king @ row / np.linalg.norm(row), rel=1e-6)


def test_an_analogy_is_a_sum_of_unit_vectors():
    assert NEIGHBOURS("king - man + woman", 1)[0][0] == "queen"
    units = MATRIX / np.linalg.norm(MATRIX, axis=1, keepdims=True).clip(1e-9)
    target = units[2] - units[0] + units[1]
    cosine = target @ units[3] / np.linalg.norm(target)
    assert NEIGHBOURS("king - man + woman", 1)[0][1] == pytest.approx(cosine, rel=1e-6)
    assert solved(NEIGHBOURS, [("man", "king", "woman", "queen"), ("man", "king", "woman", "-")]) == 0.5
    with pytest.raises(ValueError, match="no questions"):
        solved(NEIGHBOURS, [])


def test_query_words_are_excluded_from_the_answers():
    found = [word for word, _ in NEIGHBOURS("king - man + woman", 100)]
    assert sorted(found) == sorted({*WORDS} - {"king", "man", "woman"})
    assert [cosine for _, cosine in NEIGHBOURS("nothing", 2)] == [0.0, 0.0]


def test_signs_need_spaces_on_both_sides():
    assert parse("well-read") == [(1, "well-read")]
    assert parse("-") == [(1, "-")]
    assert parse(" a  - b + - ") == [(1, "a"), (-1, "b"), (1, "-")]


@pytest.mark.parametrize("query", ["", "king -", "king man", "king - man woman", "king man woman"])
def test_invalid_queries_raise_errors(query):
    with pytest.raises(ValueError, match="is neither a word nor a sum of words"):
        NEIGHBOURS(query)


def test_unknown_words_are_composed_or_raise_an_error():
    with pytest.raises(UnknownWordError, match="'prince' has no vector; it is not among the 7 known words"):
        NEIGHBOURS("prince")
    composed = Neighbours(NEIGHBOURS.vectors, lambda word: np.array([2.0, 0.0, 2.0]) if word == "prince" else None)
    assert composed("prince", 1) == [("king", pytest.approx(1.0))]
    assert [word for word, _ in composed("prince - man + woman", 1)] == ["queen"]
    with pytest.raises(UnknownWordError, match="'duke'"):
        composed("duke")
