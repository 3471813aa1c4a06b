import numpy as np
import pytest

from metrics_jax.prediction.retrieval import median_rank, ranks, recall_at

SIMILARITIES = [
    [0.9, 0.1, 0.5],  # right: 1
    [0.8, 0.2, 0.3],  # right, but last: 3
    [0.1, 0.7, 0.4],  # second: 2
]


def test_ranks_by_hand():
    assert ranks(SIMILARITIES).tolist() == [1, 3, 2]
    assert ranks(np.transpose(SIMILARITIES)).tolist() == [1, 2, 2]


def test_ties_count_against_the_system():
    assert ranks(np.ones((4, 4))).tolist() == [4, 4, 4, 4]  # vectors that are all equal find nothing
    assert ranks([[0.5, 0.5], [0.0, 0.5]]).tolist() == [2, 1]


def test_the_best_of_several_right_candidates_counts():
    relevant = [[True, False, True, False], [False, True, True, True]]
    assert ranks([[0.1, 0.8, 0.7, 0.2], [0.9, 0.3, 0.2, 0.1]], relevant).tolist() == [2, 2]
    # Right candidates do not compete with each other, not even with equal similarities.
    assert ranks([[0.5, 0.5, 0.4, 0.5]], [[True, True, False, True]]).tolist() == [1]


def test_recall_and_median():
    found = [1, 3, 2, 11, 6]
    assert [recall_at(found, k) for k in (1, 2, 5, 10, 11)] == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert median_rank(found) == 3
    assert median_rank([1, 2, 10, 4]) == 3


def test_no_change_of_scale_matters():
    random = np.random.default_rng(0)
    table = random.normal(size=(20, 20))
    np.testing.assert_array_equal(ranks(table), ranks(np.exp(3 * table)))
    order = random.permutation(20)
    np.testing.assert_array_equal(ranks(table)[order], ranks(table[order][:, order]))


@pytest.mark.parametrize(
    ("similarities", "relevant", "message"),
    [
        ([0.1, 0.2], None, "table of queries"),
        ([[0.1, 0.2]], None, "one for each query"),
        ([[0.1, 0.2]], [[True]], "shapes must be equal"),
        ([[0.1, float("nan")]], [[True, False]], "NaN"),
        ([[0.1, 0.2], [0.1, 0.2]], [[True, False], [False, False]], "query 1 has no right"),
    ],
)
def test_bad_tables(similarities, relevant, message):
    with pytest.raises(ValueError, match=message):
        ranks(similarities, relevant)


def test_bad_ranks():
    with pytest.raises(ValueError, match="at least one rank"):
        recall_at([], 1)
    with pytest.raises(ValueError, match="at least one rank"):
        median_rank([])
    with pytest.raises(ValueError, match="k=0"):
        recall_at([1], 0)
