import numpy as np
import pytest

from metrics_jax.judging.agreement import agreement
from metrics_jax.judging.judgements import Judgements, far_from_median


def test_groups_tables_and_means():
    judged = Judgements(np.array([1.0, 2.0, 3.0, 5.0]), ["a", "b", "a", "c"], [7, 7, 8, 8])
    assert judged.system_names == ["a", "b", "c"]
    assert judged.labels("item").tolist() == [0, 0, 1, 1]
    assert judged.labels("none").tolist() == [0] * 4
    assert judged.groups("system").sizes.tolist() == [2, 1, 1]
    np.testing.assert_array_equal(judged.system_scores(), [2, 2, 5])
    np.testing.assert_array_equal(judged.table(judged.human), [[1, 3], [2, np.nan], [np.nan, 5]])
    given = Judgements(judged.human, judged.systems, judged.items, {"c": 0.0, "b": 1.0, "a": 2.0, "other": 9.0})
    np.testing.assert_array_equal(given.system_scores(), [2, 1, 0])
    np.testing.assert_array_equal(given.system_means(np.array([[0.0, 1.0, 1.0, 4.0]])), [[0.5, 1, 4]])


def test_outliers_are_far_from_the_median():
    scores = np.array([0.1, 0.2, 0.3, 0.4, 0.3 + 2.6 * 1.483 * 0.1, 0.3 - 2.4 * 1.483 * 0.1])
    # the median is 0.25; the absolute deviations are 0.15, 0.05, 0.05, 0.15, 0.44, 0.31
    assert far_from_median(scores).tolist() == [False] * 6
    scores[4] = 1.0
    assert far_from_median(scores).tolist() == [False, False, False, False, True, False]
    judged = Judgements(np.repeat(scores, 2), np.repeat(list("abcdef"), 2).tolist(), [0, 1] * 6)
    kept, texts = judged.without_outliers()
    assert kept.system_names == list("abcdf")
    assert np.flatnonzero(~texts).tolist() == [8, 9]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1.0],), "two or more texts"),
        (([1.0, np.nan],), "NaN"),
        (([1.0, 2.0], ["a"]), "2 human judgements but 1 systems"),
        (([1.0, 2.0], None, [1, 2, 3]), "3 items"),
        (([1.0, 2.0], ["a", "a"], [1, 1]), "system 'a' has two texts of item 1"),
        (([1.0, 2.0], ["a", "b"], [1, 1], {"a": 3.0}), "system 'b' has texts but no score"),
    ],
)
def test_bad_input(arguments, words):
    with pytest.raises(ValueError, match=words):
        Judgements(np.array(arguments[0]), *arguments[1:])


def test_unknown_groupings():
    judged = Judgements(np.arange(3.0))
    for grouping in ("item", "system"):
        with pytest.raises(ValueError, match=f"the {grouping}s of the texts are unknown"):
            judged.labels(grouping)
    with pytest.raises(ValueError, match="no grouping 'topic'"):
        judged.labels("topic")
    with pytest.raises(ValueError, match="systems of the texts are unknown"):
        judged.system_scores()


def test_judgements_of_any_numbers_become_floats():
    judged = Judgements([1, 2, 3], ["a", "b", "c"], [7, 7, 7])
    assert judged.human.dtype == np.float64
    human = np.array([10, 200, 100], np.uint8)
    assert agreement(Judgements(human), "acc").values(human[None].astype(float)).tolist() == [1.0]
