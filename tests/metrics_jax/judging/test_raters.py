"""Agreement of raters: golden values of other packages, published examples, and invalid tables."""

import json

import numpy as np
import pytest

from metrics_jax.judging.raters import LEVELS, WEIGHTS, cohen_kappa, fleiss_kappa, krippendorff_alpha
from tests.conftest import ROOT

GOLDEN = json.loads((ROOT / "tests" / "fixtures" / "rater_golden.json").read_text())
NO = np.nan
# Krippendorff (2011), example C: four observers, twelve units, missing data.
KRIPPENDORFF = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NO, NO, NO],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NO, 3],
    [NO, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NO],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NO],
]
# Fleiss (1971), table 1: how many of six psychiatrists gave each of five diagnoses to thirty patients.
FLEISS = """00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031
00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006"""


def table(rows):
    return np.array([[NO if value is None else value for value in row] for row in rows])


@pytest.mark.parametrize("case", GOLDEN["krippendorff"])
def test_alpha_equals_the_package_krippendorff(case):
    assert {level: krippendorff_alpha(table(case["ratings"]), level) for level in LEVELS} == pytest.approx(
        case["expected"], abs=1e-9
    )


@pytest.mark.parametrize("case", GOLDEN["cohen"])
def test_cohen_kappa_equals_scikit_learn(case):
    found = {weights: cohen_kappa(*case["ratings"], weights) for weights in WEIGHTS}
    assert found == pytest.approx(case["expected"], abs=1e-9)
    letters = [["abcdefg"[value] for value in row] for row in case["ratings"]]
    assert cohen_kappa(*letters) == pytest.approx(found["none"], abs=1e-12)


@pytest.mark.parametrize("case", GOLDEN["fleiss"])
def test_fleiss_kappa_equals_statsmodels(case):
    assert fleiss_kappa(np.array(case["ratings"])) == pytest.approx(case["expected"], abs=1e-9)


def test_published_examples():
    found = [krippendorff_alpha(np.array(KRIPPENDORFF), level) for level in LEVELS]
    assert found == pytest.approx([0.743, 0.815, 0.849, 0.797], abs=5e-4)
    counts = np.array([[int(count) for count in row] for row in FLEISS.split()])
    assert (counts.sum(axis=1) == 6).all()
    ratings = np.stack([np.repeat(np.arange(5), row) for row in counts], axis=1)
    assert fleiss_kappa(ratings) == pytest.approx(0.430, abs=5e-4)
    # Cohen (1960), table 1: 200 decisions of two judges in three categories.
    judges = np.repeat(np.indices((3, 3)).reshape(2, 9), [88, 14, 18, 10, 40, 10, 2, 6, 12], axis=1)
    assert cohen_kappa(*judges) == pytest.approx(0.492, abs=5e-4)


def test_order_scale_and_single_ratings_do_not_matter():
    ratings = np.array(KRIPPENDORFF)
    random = np.random.default_rng(0)
    shuffled = random.permuted(ratings, axis=0)  # who gave a rating does not matter
    for level in LEVELS:
        assert krippendorff_alpha(shuffled, level) == pytest.approx(krippendorff_alpha(ratings, level), abs=1e-12)
    more = np.concatenate([ratings, [[9], [NO], [NO], [NO]], np.full((4, 1), NO)], axis=1)
    assert krippendorff_alpha(more) == pytest.approx(krippendorff_alpha(ratings), abs=1e-12)
    assert krippendorff_alpha(1e6 - ratings) == pytest.approx(krippendorff_alpha(ratings), abs=1e-9)
    assert krippendorff_alpha(ratings**3, "ordinal") == pytest.approx(krippendorff_alpha(ratings, "ordinal"), abs=1e-12)


def test_perfect_and_undefined_agreement():
    same = np.array([[0.1, 0.2, 0.7]] * 3)
    assert [krippendorff_alpha(same, level) for level in LEVELS] == [1] * 4
    assert fleiss_kappa(same) == cohen_kappa(same[0], same[1]) == 1
    constant = np.full((3, 7), 0.1)
    found = [krippendorff_alpha(constant, level) for level in LEVELS]
    found += [fleiss_kappa(constant), cohen_kappa(constant[0], constant[1], "linear")]
    assert np.isnan(found).all()
    assert krippendorff_alpha(np.array([[0, 0, 1], [0, 0, 1]]), "ratio") == 1  # zero and zero do not differ


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: krippendorff_alpha(np.array([[1.0, NO], [NO, 2.0]])), "no text has two ratings"),
        (lambda: krippendorff_alpha(np.ones((1, 4))), "no text has two ratings"),
        (lambda: krippendorff_alpha(np.ones(4)), "a table of raters"),
        (lambda: krippendorff_alpha(np.array([[1, np.inf], [1, 2]])), "infinity"),
        (lambda: krippendorff_alpha(np.array([[1, -1], [1, 2]]), "ratio"), "not negative"),
        (lambda: krippendorff_alpha(np.ones((2, 4)), "interwal"), "one of nominal, ordinal, interval, ratio"),
        (lambda: fleiss_kappa(np.array([[1.0, NO], [1, 2.0]])), "the same number of ratings"),
        (lambda: cohen_kappa([1, 2], [1]), "2 and 1 labels"),
        (lambda: cohen_kappa([], []), "0 and 0 labels"),
        (lambda: cohen_kappa([1], [1], "cubic"), "one of none, linear, quadratic"),
        (lambda: cohen_kappa([1, NO], [1, NO]), "labels contain NaN"),
        (lambda: cohen_kappa(["1", "2"], [1, 2]), "all strings or all numbers"),
    ],
)
def test_invalid_ratings(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_labels_are_a_sequence():
    with pytest.raises(TypeError, match="must be a sequence, not a single string"):
        cohen_kappa("aab", ["a", "a", "b"])
    assert cohen_kappa(["a", "b"], np.array(["a", "b"])) == cohen_kappa([1, 2], np.array([1.0, 2.0])) == 1
