import itertools

import numpy as np
import pytest
import scipy.stats

from metrics_jax.judging.correlation import kendall, pearson, spearman
from metrics_jax.judging.pairs import COEFFICIENTS, Groups
from tests.fixtures import golden


def vectors(shared):
    file = golden.read(shared, "correlation")
    for case in file["cases"]:
        if case["level"] == "vector":
            given = file["inputs"][case["input"]]
            yield np.array(given["x"]), np.array(given["y"]), case["expected"]


def test_every_golden_value(shared):
    number = 0
    for x, y, expected in vectors(shared):
        found = {
            "pearson": pearson(x, y),
            "spearman": spearman(x, y),
            "kendall_tau_a": kendall(x, y, "a"),
            "kendall_tau_b": kendall(x, y),
            "kendall_tau_c": kendall(x, y, "c"),
        }
        for name, value in found.items():
            wanted = expected[name]["statistic"] if isinstance(expected[name], dict) else expected[name]
            assert value == pytest.approx(float(wanted), abs=1e-9, nan_ok=True), name
            number += 1
    assert number == 45


def test_the_pairs_of_the_golden_vectors(shared):
    for x, y, expected in vectors(shared):
        everyone = Groups.of(np.zeros(len(x), int))
        for name, of in (("kendall_tau_b", "kendall"), ("kendall_tau_a", "kendall_a")):
            coefficient = COEFFICIENTS[of]
            wanted = expected[name]["statistic"] if isinstance(expected[name], dict) else expected[name]
            value = coefficient.value(coefficient.sums(everyone, x, y))
            assert value == pytest.approx(float(wanted), abs=1e-9, nan_ok=True)
        counts, total = expected["pairs"], len(x) * (len(x) - 1) / 2
        same = (counts["concordant"] + counts["tied_both"]) / total
        assert COEFFICIENTS["acc"].value(COEFFICIENTS["acc"].sums(everyone, x, y)) == pytest.approx(same)


def test_many_rows_at_once_and_offsets_change_nothing():
    x, y = np.random.default_rng(0).integers(0, 6, (2, 5, 40)).astype(float)
    for function, peer in ((pearson, scipy.stats.pearsonr), (spearman, scipy.stats.spearmanr)):
        wanted = [peer(a, b).statistic for a, b in zip(x, y, strict=True)]
        np.testing.assert_allclose(function(x, y), wanted, atol=1e-12)
        np.testing.assert_allclose(function(3 * x + 1e6, y), wanted, atol=1e-8)


def test_a_constant_but_for_rounding_correlates_with_nothing():
    constant = np.array([0.1 + 0.2, 0.3, 0.3, 0.3])
    assert np.isnan(pearson(constant, np.arange(4.0)))
    assert kendall(np.ones(4), np.arange(4), "a") == 0


def test_bad_input():
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        pearson(np.ones(2), np.ones(3))
    with pytest.raises(ValueError, match="two or more"):
        spearman(np.ones(1), np.ones(1))
    for bad, variant in itertools.product((np.nan, np.inf), "abc"):
        with pytest.raises(ValueError, match="NaN"):
            kendall(np.array([1.0, bad]), np.ones(2), variant)
