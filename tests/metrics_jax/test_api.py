import numpy as np
import pytest

from metrics_jax.api import best, flatten, pair, starts

TEXTS, OWNER = flatten(["a", "b"], [["r", "s", "t"], "u"])


def test_flatten_and_pair():
    assert TEXTS == ["a", "b", "r", "s", "t", "u"]
    assert OWNER.tolist() == [0, 0, 0, 1]
    assert starts(OWNER).tolist() == [0, 3]
    assert pair(TEXTS, OWNER) == (["a", "a", "a", "b"], ["r", "s", "t", "u"])
    with pytest.raises(ValueError, match="1 hypotheses but 2 references"):
        flatten(["a"], ["r", "s"])


def test_best_reference_and_ties():
    scores = np.array([0.5, 0.9, 0.9, -1.0])
    assert best(scores, OWNER).tolist() == [1, 3]
    assert best(scores, OWNER, np.array([0, 5, 4, 9])).tolist() == [2, 3]
    assert best(scores, OWNER, np.array([0, 4, 4, 9]), np.array([1, 2, 1, 1])).tolist() == [2, 3]
    assert best(scores, OWNER, np.array([0, 4, 5, 9]), np.array([1, 2, 1, 1])).tolist() == [1, 3]
    assert best(scores, OWNER, np.array([0, 4, 4, 9]), np.array([1, 2, 2, 1])).tolist() == [1, 3]  # the first
