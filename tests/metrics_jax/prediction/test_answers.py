import pytest

from metrics_jax.prediction.answers import exact_match, normalize_answer, word_f1


def test_normalisation_as_published():
    assert normalize_answer("The  Eiffel Tower, a (tall)\ttower.") == "eiffel tower tall tower"
    assert normalize_answer("an_anthem U.S.") == "ananthem us"  # punctuation is removed before articles
    assert normalize_answer("theatre") == "theatre"
    assert normalize_answer("„Köln”") == "„köln”"  # only ASCII punctuation


def test_the_best_reference_answer_counts():
    references = [["Denver Broncos", "The Broncos"], ["1 July 1999"]]
    answers = ["the Broncos.", "July 1999"]
    assert exact_match(answers, references) == 0.5
    # The second answer shares two words; it has two, its reference three.
    assert word_f1(answers, references) == pytest.approx((1 + 2 * 2 / 5) / 2)


def test_words_count_as_often_as_they_occur():
    assert word_f1(["to be to be"], [["to be or not to be"]]) == pytest.approx(2 * 4 / 10)
    assert word_f1(["to to to"], [["to be"]]) == pytest.approx(2 * 1 / 5)
    assert word_f1(["x"], [["y"]]) == word_f1([""], [["y"]]) == 0.0


def test_answers_of_articles_only():
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
