import itertools

import numpy as np
import pytest
import scipy.stats

from metrics_jax.prediction.correlation import kendall, pearson, spearman
from tests.fixtures import golden


def test_golden_values(shared):
    file = golden.read(shared, "correlation")
    count = 0
    for case in file["cases"]:
        if case["level"] != "vector":
            continue
        x, y = (np.array(file["inputs"][case["input"]][side]) for side in "xy")
        values = {
            "pearson": pearson(x, y),
            "spearman": spearman(x, y),
            "kendall_tau_a": kendall(x, y, "a"),
            "kendall_tau_b": kendall(x, y),
            "kendall_tau_c": kendall(x, y, "c"),
        }
        for name, value in values.items():
            expected = case["expected"][name]
            statistic = expected["statistic"] if isinstance(expected, dict) else expected
            assert value == pytest.approx(float(statistic), abs=1e-9, nan_ok=True), name
            count += 1
    assert count == 45


def test_equal_to_scipy_with_ties_and_with_an_offset():
    x, y = np.random.default_rng(0).integers(0, 6, (2, 20, 30)).astype(float)
    for function, reference in ((pearson, scipy.stats.pearsonr), (spearman, scipy.stats.spearmanr)):
        expected = [reference(a, b).statistic for a, b in zip(x, y, strict=True)]
        np.testing.assert_allclose(function(x, y), expected, atol=1e-12)
        np.testing.assert_allclose(function(3 * x + 1e6, y), expected, atol=1e-8)
        np.testing.assert_allclose([function(a, b) for a, b in zip(x, y, strict=True)], expected, atol=1e-12)


def test_spearman_depends_only_on_the_order():
    assert spearman([1, 2, 3], [1, 10, 1000]) == pytest.approx(1.0)
    assert pearson([1, 2, 3], [1, 10, 1000]) < 0.95
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1.0)


@pytest.mark.parametrize("scale", [1e-320, 1e-170, 1e200, 1e307])
def test_the_scale_does_not_matter(scale):
    x, y = np.array([[1.0, 2.0, 4.0], [1, 1, 1]]), np.array([1.0, 3.0, 2.0])
    for r in (pearson(scale * x, y), pearson(x, scale * y)):
        np.testing.assert_allclose(r, [scipy.stats.pearsonr(x[0], y).statistic, np.nan], rtol=1e-3)  # 1e-320 is rounded


def test_constant_lists_are_undefined():
    assert np.isnan(pearson([1, 1, 1], [1, 2, 3]))
    assert pearson([1, 1, 1], [1, 2, 3], undefined=0.0) == spearman([1, 2, 3], [0, 0, 0], undefined=0.0) == 0.0
    assert np.isnan(pearson([0.1 + 0.2, 0.3, 0.3, 0.3], np.arange(4.0)))  # constant up to rounding
    assert kendall(np.ones(4), np.arange(4), "a") == 0


def test_bad_input():
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        pearson(np.ones(2), np.ones(3))
    with pytest.raises(ValueError, match="two or more"):
        spearman(np.ones(1), np.ones(1))
    with pytest.raises(ValueError, match="one-dimensional"):
        kendall(np.ones((2, 2)), np.ones((2, 2)))
    with pytest.raises(ValueError, match="variant='d': choose a, b or c"):
        kendall(np.arange(3), np.arange(3), "d")
    for bad, variant in itertools.product((np.nan, np.inf), "abc"):
        with pytest.raises(ValueError, match="NaN"):
            kendall(np.array([1.0, bad]), np.ones(2), variant)
