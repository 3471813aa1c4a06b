import pytest

from metrics_jax.prediction.answers import exact_match, normalized, word_f1


def test_normalisation_as_published():
    assert normalized("The  Eiffel Tower, a (tall)\ttower.") == "eiffel tower tall tower"
    assert normalized("an_anthem U.S.") == "ananthem us"  # punctuation goes before articles are looked for
    assert normalized("theatre") == "theatre"
    assert normalized("„Köln”") == "„köln”"  # only ASCII punctuation


def test_the_best_of_the_given_answers_counts():
    given = [["Denver Broncos", "The Broncos"], ["1 July 1999"]]
    answers = ["the Broncos.", "July 1999"]
    assert exact_match(answers, given) == 0.5
    # The second: two words shared, of two and three.
    assert word_f1(answers, given) == pytest.approx((1 + 2 * 2 / 5) / 2)


def test_words_count_as_often_as_they_occur():
    assert word_f1(["to be to be"], [["to be or not to be"]]) == pytest.approx(2 * 4 / 10)
    assert word_f1(["to to to"], [["to be"]]) == pytest.approx(2 * 1 / 5)
    assert word_f1(["x"], [["y"]]) == word_f1([""], [["y"]]) == 0.0


def test_articles_alone_are_nothing():
    assert exact_match(["the"], [["a"]]) == 1.0
    assert word_f1(["the"], [["a"]]) == 0.0  # as in the published script


def test_bad_input():
    with pytest.raises(TypeError, match="sequence of sequences"):
        word_f1(["a"], ["a"])
    with pytest.raises(ValueError, match="1 hypotheses but 2 references"):
        exact_match(["a"], [["a"], ["b"]])
    with pytest.raises(ValueError, match="nothing to compare"):
        exact_match([], [])
    with pytest.raises(ValueError, match="nothing to compare"):
        exact_match(["a"], [[]])
