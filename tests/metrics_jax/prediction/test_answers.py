import numpy as np
import pytest

from metrics_jax.prediction.answers import best_threshold, exact_match, normalize_answer, word_f1


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


def test_questions_without_an_answer():
    """As in the script of SQuAD 2.0: the reference is "", and only an answer without words is right."""
    references = [[""], [""], [""], ["Karl"], ["Karl"]]
    answers = ["", "The.", "Karl", "", "karl"]
    assert exact_match(answers, references) == word_f1(answers, references) == 3 / 5
    assert word_f1(["old Karl", "old Karl"], [["Karl"], [""]]) == pytest.approx((2 / 3 + 0) / 2)


def test_the_threshold_by_hand():
    """Withheld up to -1: the answers count 1, 1, 0, 1 and 0. Withheld up to 4: 1, 0, 1, 1 and 0, no better."""
    scores = [5.0, 2.0, 4.0, -1.0, 1.0]
    answers = ["Karl", "the Karl", "Bonn", "Rome", "Anna"]
    references = [["Karl"], ["Karl"], [""], [""], ["Karl"]]
    assert best_threshold(scores, answers, references) == (0.0, pytest.approx(3 / 5))
    answers[1] = "Karl Meier"  # counts 2/3
    assert best_threshold(scores, answers, references) == (4.5, pytest.approx(3 / 5))
    assert best_threshold([1.0, 2.0], ["x", "y"], [[""], [""]]) == (2.0, 1.0)  # never answer
    assert best_threshold([1.0, 2.0], ["x", "y"], [["x"], ["y"]]) == (0.0, 1.0)  # always answer
    assert best_threshold([1.0, 1.0], ["x", "y"], [[""], ["y"]]) == (0.0, 0.5)  # equal scores are not told apart


def test_the_threshold_is_the_best_of_all():
    """Every threshold tried, as the script of SQuAD 2.0 does, except that equal scores are treated alike."""
    random = np.random.default_rng(0)
    for size in (1, 2, 9, 40):
        scores = random.integers(-4, 5, size).astype(float)  # with ties
        answers = [f"a{n % 3}" for n in range(size)]
        references = [[""] if random.random() < 0.4 else [f"a{random.integers(3)}"] for _ in range(size)]

        def f1(threshold, scores=scores, answers=answers, references=references):
            given = [answer if score > threshold else "" for score, answer in zip(scores, answers, strict=True)]
            return word_f1(given, references)

        threshold, best = best_threshold(scores, answers, references)
        assert best == pytest.approx(f1(threshold))
        assert best == pytest.approx(max(f1(one) for one in (-9.0, *scores)))


def test_bad_input():
    with pytest.raises(ValueError, match="1 scores but 2 answers"):
        best_threshold([1.0], ["a", "b"], [["a"], ["b"]])
    with pytest.raises(ValueError, match="the scores contain NaN or infinity"):
        best_threshold([1.0, np.nan], ["a", "b"], [["a"], ["b"]])
    with pytest.raises(TypeError, match="sequence of sequences"):
        word_f1(["a"], ["a"])
    with pytest.raises(ValueError, match="1 hypotheses but 2 references"):
        exact_match(["a"], [["a"], ["b"]])
    with pytest.raises(ValueError, match="nothing to compare"):
        exact_match([], [])
    with pytest.raises(ValueError, match="nothing to compare"):
        exact_match(["a"], [[]])
