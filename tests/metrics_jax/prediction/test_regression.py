import numpy as np
import pytest
import scipy.stats

from metrics_jax.prediction.regression import pearson, spearman


def test_equal_to_scipy_with_ties():
    random = np.random.default_rng(0)
    for _ in range(20):
        one, other = random.integers(0, 6, (2, 30)).astype(float)
        assert pearson(one, other) == pytest.approx(scipy.stats.pearsonr(one, other).statistic)
        assert spearman(one, other) == pytest.approx(scipy.stats.spearmanr(one, other).statistic)


def test_ranks_know_no_distances():
    assert spearman([1, 2, 3], [1, 10, 1000]) == pytest.approx(1.0)
    assert pearson([1, 2, 3], [1, 10, 1000]) < 0.95
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1.0)


def test_a_constant_side_correlates_with_nothing():
    assert pearson([1, 1, 1], [1, 2, 3]) == spearman([1, 2, 3], [0, 0, 0]) == 0.0


def test_bad_input():
    for numbers, words in (([1.0], "fewer|two or more"), ([1.0, np.nan], "not finite")):
        with pytest.raises(ValueError, match=words):
            spearman(numbers, numbers)
    with pytest.raises(ValueError, match="1 hypotheses but 2 references"):
        pearson([1.0], [1.0, 2.0])
