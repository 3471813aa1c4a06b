"""The best scores equal those of a full sort, ties included."""

import numpy as np
import pytest

from nmt_jax.retrieval.ranking import best


@pytest.mark.parametrize("count", [0, 1, 3, 9, 30, 99])
def test_the_best_are_those_of_a_stable_sort(count):
    random = np.random.default_rng(count)
    for scores in (random.normal(size=30), random.integers(0, 4, 30).astype(float), np.zeros(30), np.zeros(0)):
        assert best(scores, count) == np.argsort(-scores, kind="stable")[:count].tolist()
