import numpy as np
import pytest

from metrics_jax import BLEU
from tests.fixtures import golden


def close(value, expected):
    return np.allclose(value, expected, rtol=1e-9, atol=1e-12)


def test_golden_values_of_sacrebleu(shared):
    checked = 0
    for case, hypotheses, references in golden.cases(shared, "bleu"):
        metric = BLEU(**case["options"])
        result = metric(hypotheses, references)
        expected = case["expected"]
        if case["level"] == "corpus":
            assert close(result.score, expected["score"]), case["id"]
            assert all(close(result.parts[key], expected[key]) for key in expected if key != "score"), case["id"]
        else:
            assert close(result.segments, [row["score"] for row in expected]), case["id"]
            for row, statistics in zip(expected, metric.statistics(hypotheses, references), strict=True):
                parts = metric.parts(statistics)
                assert all(close(parts[key], row[key]) for key in row if key != "score"), case["id"]
        checked += 1
    assert checked > 500


MAT = ["The cat is on the mat", "There is a cat on the mat"]
GUIDE = [
    "it is a guide to action that ensures that the military will forever heed party commands",
    "it is the guiding principle which guarantees the military forces always being under the command of the party",
    "it is the practical guide for the army always to heed the directions of the party",
]


@pytest.mark.parametrize(
    ("hypothesis", "references", "counts", "totals"),
    [  # Papineni et al. (2002), section 2
        ("the the the the the the the", MAT, [2], [7]),
        ("the cat the cat on the mat", MAT, [5, 4], [7, 6]),
        (
            "it is a guide to action which ensures that the military always obeys the commands of the party",
            GUIDE,
            [17],
            [18],
        ),
    ],
)
def test_clipped_precisions_of_the_paper(hypothesis, references, counts, totals):
    parts = BLEU(lowercase=True, max_ngram_order=len(counts))([hypothesis], [references]).parts
    assert parts["counts"].tolist() == counts
    assert parts["totals"].tolist() == totals


def test_brevity_ratio():
    reference = "Israeli officials are responsible for airport security"
    metric = BLEU(brevity="ratio", smooth_method="none")
    a = metric(["Israeli officials responsibility of airport safety"], [reference])
    assert a.score == 0
    assert (a.parts["counts"] / a.parts["totals"]).tolist() == [3 / 6, 1 / 5, 0, 0]
    b = metric(["airport security Israeli officials are responsible"], [reference])
    np.testing.assert_allclose(b.parts["precisions"] / 100, [6 / 6, 4 / 5, 2 / 4, 1 / 3])
    assert b.parts["bp"] == pytest.approx(6 / 7)
    assert round(b.score) == 52


def test_bleu_of_bigrams():
    result = BLEU(max_ngram_order=2)(["the Taro visited the Hanako"], ["Taro visited Hanako"])
    assert result.score / 100 == pytest.approx(0.387, abs=5e-4)


def test_equal_to_mteval(shared):
    hypotheses, references = golden.mteval(shared)
    result = BLEU(max_ngram_order=9, smooth_method="none")(hypotheses, references)
    printed = [0.5415, 0.2972, 0.1752, 0.1025, 0.0626, 0.0354, 0.0193, 0.0085, 0.0017]
    np.testing.assert_allclose(result.parts["precisions"] / 100, printed, atol=5.1e-5)
    assert round(BLEU()(hypotheses, references).score / 100, 4) == 0.2318


def test_effective_order_scores_a_short_segment():
    assert BLEU()(["a b"], ["a b"]).score == 0
    assert BLEU(effective_order=True)(["a b"], ["a b"]).score == pytest.approx(100)


def test_pairwise_equals_single_pairs():
    hypotheses = ["the cat sat on the mat", "a a a b", "", "the the mat"]
    references = ["the cat on the mat", "a b a b", "", "the mat the mat sat", "x"]
    metric = BLEU(effective_order=True)
    pairs = metric.pairwise(hypotheses, references)
    expected = [[metric([h], [r]).score for r in references] for h in hypotheses]
    np.testing.assert_allclose(pairs, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"tokenize": "13b"}, "tokenize='13b': choose one of 13a"),
        ({"smooth_method": "add"}, "smooth_method='add': choose one of exp"),
        ({"brevity": "none"}, "brevity='none': choose one of exponential"),
        ({"max_ngram_order": 0}, "at least 1"),
    ],
)
def test_invalid_options(options, line):
    with pytest.raises(ValueError, match=line):
        BLEU(**options)
