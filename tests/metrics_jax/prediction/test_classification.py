import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics_jax.prediction.classification import accuracy, confusion, matthews, precision_recall_f1

# Expected values here are those of scikit-learn 1.9.1, zero_division=0.
ANIMALS = ["cat", "dog", "dog", "bird", "cat", "bird", "bird", "dog", "cat", "cat", "dog", "bird"]
GUESSES = ["cat", "dog", "cat", "bird", "cat", "dog", "bird", "dog", "bird", "cat", "fish", "bird"]
TRUE = [1, 0, 1, 1, 0, 0, 1, 0, 1, 1]
FOUND = [1, 0, 0, 1, 0, 1, 1, 0, 1, 0]

pairs = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=30)


def as_tuple(result):
    return result.precision, result.recall, result.f1


def test_several_labels():
    assert accuracy(GUESSES, ANIMALS) == pytest.approx(2 / 3)
    expected = (0.5416666666666666, 0.5, 0.5178571428571428)  # "fish" is never a true label, but counts as one
    assert as_tuple(precision_recall_f1(GUESSES, ANIMALS, "macro")) == pytest.approx(expected)
    assert as_tuple(precision_recall_f1(GUESSES, ANIMALS, "micro")) == pytest.approx((2 / 3,) * 3)
    assert matthews(GUESSES, ANIMALS) == pytest.approx(0.5254938542453882)


def test_two_labels():
    assert accuracy(FOUND, TRUE) == pytest.approx(0.7)
    assert as_tuple(precision_recall_f1(FOUND, TRUE)) == pytest.approx((0.8, 2 / 3, 8 / 11))
    assert as_tuple(precision_recall_f1(FOUND, TRUE, "macro")) == pytest.approx((0.7, 17 / 24, 23 / 33))
    assert as_tuple(precision_recall_f1(FOUND, TRUE, positive=0)) == pytest.approx((0.6, 0.75, 2 / 3))
    assert matthews(FOUND, TRUE) == pytest.approx(0.408248290463863)


def test_arrays_of_labels():
    assert matthews(np.array(FOUND), np.array(TRUE)) == matthews(FOUND, TRUE)
    assert confusion(np.array(FOUND), TRUE)[0] == (1, 0)


def test_undefined_is_zero():
    assert as_tuple(precision_recall_f1([0, 0], [1, 1])) == (0.0, 0.0, 0.0)
    assert as_tuple(precision_recall_f1([0, 0], [0, 0])) == (0.0, 0.0, 0.0)  # no positive on either side
    assert as_tuple(precision_recall_f1([1, 1], [1, 1])) == (1.0, 1.0, 1.0)
    assert matthews([0, 0, 1], [1, 1, 1]) == 0.0
    assert matthews([1, 1, 1], [1, 1, 1]) == 0.0


def test_confusion_has_true_labels_in_rows():
    labels, counts = confusion(["x", "y", "y"], ["x", "x", "y"])
    assert labels == ("x", "y")
    np.testing.assert_array_equal(counts, [[1, 1], [0, 1]])


@given(pairs)
def test_matthews_of_two_labels_is_their_correlation(labels):
    found, true = ([one == "a" for one in side] for side in zip(*labels, strict=True))
    if len(set(found)) == len(set(true)) == 2:
        assert matthews(found, true) == pytest.approx(np.corrcoef(found, true)[0, 1])


@given(pairs)
def test_ranges_and_symmetries(labels):
    found, true = (list(side) for side in zip(*labels, strict=True))
    renamed = [["cab"["abc".index(one)] for one in side] for side in (found, true)]
    assert matthews(*renamed) == pytest.approx(matthews(found, true))
    assert -1 <= matthews(found, true) <= 1
    assert matthews(true, found) == pytest.approx(matthews(found, true))
    macro, swapped = precision_recall_f1(found, true, "macro"), precision_recall_f1(true, found, "macro")
    assert as_tuple(macro) == pytest.approx((swapped.recall, swapped.precision, swapped.f1))
    assert all(0 <= value <= 1 for value in as_tuple(macro))
    assert as_tuple(precision_recall_f1(found, true, "micro")) == pytest.approx((accuracy(found, true),) * 3)
    assert accuracy(true, true) == 1.0


def test_a_million_labels_do_not_overflow():
    true = np.arange(2_000_000) % 2
    assert matthews(true, true) == pytest.approx(1.0)
    assert math.isclose(matthews(1 - true, true), -1.0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1, 0], [1]), ValueError, "2 hypotheses but 1 references"),
        (([], []), ValueError, "no labels"),
        (([1, math.nan], [1, math.nan]), ValueError, "labels contain NaN"),
        ((np.array([1, np.nan]), np.ones(2)), ValueError, "labels contain NaN"),
        (("yes", ["y", "e", "s"]), TypeError, "hypotheses must be a sequence of labels"),
        (([1, 2, 3], [1, 2, 3]), ValueError, "3 labels are not binary"),
        ((["yes", "no"], ["yes", "no"]), ValueError, "positive=1 is neither of the labels 'yes' and 'no'"),
        (([1], [1], "weighted"), ValueError, "average='weighted': choose one of binary, macro, micro"),
    ],
)
def test_impossible_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        precision_recall_f1(*arguments)
