import numpy as np
import pytest

from metrics_jax import ChrF
from tests.fixtures import golden


def test_golden_values_of_sacrebleu(shared):
    checked = 0
    for case, hypotheses, references in golden.cases(shared, "chrf"):
        result = ChrF(**case["options"])(hypotheses, references)
        expected = case["expected"]
        if case["level"] == "corpus":
            np.testing.assert_allclose(result.score, expected["score"], rtol=1e-9, atol=1e-12, err_msg=case["id"])
        else:
            scores = [row["score"] for row in expected]
            np.testing.assert_allclose(result.segments, scores, rtol=1e-9, atol=1e-12, err_msg=case["id"])
        checked += 1
    assert checked > 200


def test_by_hand():
    # Characters abc and abd: 2 of 3 unigrams and 1 of 2 bigrams match; precision, recall and F are equal.
    result = ChrF(char_order=2)(["a bc"], ["ab d"])
    assert result.score == pytest.approx(100 * (2 / 3 + 1 / 2) / 2)
    assert result.parts["precision"] == pytest.approx((2 / 3 + 1 / 2) / 2)


def test_one_punctuation_mark_is_split_from_a_word():
    words = ChrF(char_order=0, word_order=1)
    parts = words(["(hi)"], ["( hi )"]).parts  # "(hi" and ")": only the final mark is split off
    assert (parts["precision"], parts["recall"]) == (1 / 2, 1 / 3)
    assert words(["(hi"], ["( hi"]).score == pytest.approx(100)


def test_the_best_reference_is_used():
    metric = ChrF()
    hypotheses, references = ["the cat", "a dog"], [["the dog", "the cat"], ["a dog"]]
    assert metric(hypotheses, references).score == pytest.approx(100)


def test_pairwise_equals_single_pairs():
    hypotheses, references = ["the cat sat", "a a a b", "", "mat!"], ["the cat", "a b a b", "", "mat", "x"]
    for metric in (ChrF(word_order=2), ChrF(eps_smoothing=True), ChrF(lowercase=True, whitespace=True)):
        expected = [[metric([h], [r]).score for r in references] for h in hypotheses]
        np.testing.assert_allclose(metric.pairwise(hypotheses, references), expected, rtol=1e-12)


def test_invalid_options():
    with pytest.raises(ValueError, match="at least one n-gram order"):
        ChrF(char_order=0)
    with pytest.raises(ValueError, match="beta=0: must be at least"):
        ChrF(beta=0)
