"""Ratings by several raters: standardization, scores of texts and systems, agreement; weights of errors."""

import numpy as np
import pytest

from metrics_jax.judging.error_weights import WEIGHTS, error_weight, key_parts
from metrics_jax.judging.raters import cohen_kappa, fleiss_kappa, krippendorff_alpha
from metrics_jax.judging.ratings import AGREEMENT, Ratings

# Two systems, two items, three raters; the third gives one score to all texts.
ROWS = [
    *(("a", "1", "r2", 5), ("a", "1", "r1", 10), ("a", "2", "r1", 20), ("b", "1", "r1", 60)),
    *(("b", "1", "r2", 7), ("b", "2", "r2", 3)),
    *(("a", "2", "r3", 4), ("b", "1", "r3", 4)),
]


def make(rows):
    systems, items, raters, scores = zip(*rows, strict=True)
    return Ratings(np.array(scores, float), raters, systems, items)


def test_means_over_raters_then_over_texts():
    ratings = make(ROWS)
    assert dict(zip(ratings.texts, ratings.text_scores().tolist(), strict=True)) == pytest.approx(
        {("a", "1"): 7.5, ("a", "2"): 12, ("b", "1"): 71 / 3, ("b", "2"): 3}
    )
    assert list(ratings.system_scores().items()) == [("b", pytest.approx(80 / 6)), ("a", pytest.approx(9.75))]


def test_z_scores_have_mean_0_and_deviation_1_for_every_rater():
    ratings = make(ROWS)
    assert ratings.constant_raters == ["r3"]
    found = ratings.standardized()
    # r1: mean 30, deviation sqrt((20^2 + 10^2 + 30^2) / 2); r2: mean 5, deviation 2.
    expected = [0, *(np.array([-20, -10, 30]) / np.sqrt(700)), 1, -1, 0, 0]
    np.testing.assert_allclose(found.scores, expected, atol=1e-12)
    scale = {"r1": (3, 100), "r2": (0.1, -7), "r3": (2, 0)}
    changed = [(s, i, r, scale[r][0] * score + scale[r][1]) for s, i, r, score in ROWS]
    np.testing.assert_allclose(make(changed).standardized().scores, found.scores, atol=1e-12)


def test_agreement_finds_the_texts_of_several_raters():
    ratings = make([(s, i, r, float(score % 4 > 1)) for s, i, r, score in ROWS])
    table = np.array([[1, 0, np.nan], [0, np.nan, 0], [0, 1, 0], [np.nan, 1, np.nan]]).T
    for level in ("nominal", "interval"):
        assert AGREEMENT[f"alpha_{level}"](ratings) == pytest.approx(krippendorff_alpha(table, level), abs=1e-12)
    # Common texts: of r1 and r2 a 1 and b 1, with -1; of r2 and r3 b 1, with 0; r1 and r3 agree on one label, with NaN.
    assert (cohen_kappa([1, 0], [0, 1]), cohen_kappa([1], [0])) == (-1, 0)
    assert AGREEMENT["kappa"](ratings) == pytest.approx(-0.5)
    with pytest.raises(ValueError, match="the same number of ratings"):
        AGREEMENT["fleiss"](ratings)
    full = make([(text, "1", rater, int(score)) for text, rater, score in ("ax1", "ay1", "bx2", "by2", "cx1", "cz2")])
    assert AGREEMENT["fleiss"](full) == pytest.approx(fleiss_kappa(np.array([[1, 2, 1], [1, 2, 2]])))
    assert AGREEMENT["kappa_quadratic"](full) == pytest.approx(np.mean([1, 0]))
    assert np.isnan(AGREEMENT["kappa"](make([("a", "1", "x", 1), ("a", "1", "y", 1)])))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: [*rows, ("a", "1", "r1", 3)], "rater 'r1' rated the text of system 'a' for item '1' 2 times"),
        (lambda rows: [*rows, ("a", "3", "r1", np.nan)], "NaN"),
    ],
)
def test_invalid_ratings(change, words):
    with pytest.raises(ValueError, match=words):
        make(change(ROWS))
    with pytest.raises(ValueError, match="one each"):
        Ratings(np.ones(2), ["r"], ["a"], ["1"])
    single = make(ROWS[1:4])
    for name in AGREEMENT:
        with pytest.raises(ValueError, match="two"):
            AGREEMENT[name](single)


@pytest.mark.parametrize(
    ("severity", "category", "weight"),
    [
        ("Minor", "Accuracy/Omission", 1),
        ("minor", "Fluency/Punctuation", 0.1),
        ("Major", "Fluency/Punctuation", 5),
        ("Major", "Non-translation!", 25),
        ("Neutral", "Style/Awkward", 0),
        ("Minor", "Fluency/Punctuation marks", 1),
        ("minor", "", 1),
    ],
)
def test_weights_of_wmt(severity, category, weight):
    assert error_weight(severity, category) == weight


def test_more_exact_weights_come_first():
    weights = {**WEIGHTS, "minor/fluency": 0.5, "critical": 10}
    assert error_weight("Minor", "Fluency/Grammar", weights) == 0.5
    assert error_weight("Minor", "Fluency/Punctuation", weights) == 0.1
    assert error_weight("Critical", "Other", weights) == 10
    with pytest.raises(
        ValueError, match="severity 'Critical' has no weight; those with a weight are neutral, minor, m"
    ):
        error_weight("Critical", "Other")


def test_parts_of_a_key():
    assert key_parts("Major / Non-translation!") == ["major", "non-translation"]
