import numpy as np
import pytest

from metrics_jax.judging.agreement import p_values, soft_accuracy


def p_values_by_loops(segments, permutations, seed):
    """The p-values, computed pair by pair and permutation by permutation, from the same random draws."""
    swaps = np.random.default_rng(seed).integers(2, size=(permutations, segments.shape[1])) == 0
    p = np.full((len(segments), len(segments)), np.nan)
    for i in range(len(segments)):
        for j in range(len(segments)):
            common = [k for k in range(segments.shape[1]) if not np.isnan(segments[i, k] + segments[j, k])]
            if i == j or not common:
                continue
            observed = np.mean([segments[i, k] - segments[j, k] for k in common])
            larger = 0
            for swap in swaps:
                one = np.mean([segments[j if swap[k] else i, k] for k in common])
                two = np.mean([segments[i if swap[k] else j, k] for k in common])
                larger += one - two >= observed - 1e-12
            p[i, j] = larger / permutations
    return p


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_p_values_equal_loops(missing):
    random = np.random.default_rng(0)
    segments = random.integers(0, 4, (5, 12)) + 0.1 * np.arange(5)[:, None]
    segments[random.random(segments.shape) < missing] = np.nan
    np.testing.assert_array_equal(p_values(segments, permutations=60, seed=3), p_values_by_loops(segments, 60, 3))


def test_p_values_of_better_and_equal_systems():
    random = np.random.default_rng(0)
    noise = random.normal(size=(2, 400))
    p = p_values(np.stack([noise[0] + 1, noise[0], noise[1], noise[1]]))
    assert p[0, 1] < 0.01
    assert p[1, 0] > 0.99
    assert p[2, 3] == 1  # equal systems: every permutation gives a difference at least as large
    assert np.isnan(p.diagonal()).all()


def test_soft_accuracy_is_a_mean_over_pairs():
    human, metric = np.full((2, 3, 3), np.nan)
    human[0, 1], human[0, 2], human[1, 2] = 0.1, 0.2, 0.9
    metric[0, 1], metric[0, 2], metric[1, 2] = 0.1, 0.5, 0.3
    assert soft_accuracy(metric, human) == pytest.approx(1 - (0 + 0.3 + 0.6) / 3)
    weights = np.array([[1, 1, 1], [2, 1, 0], [0, 0, 3]])
    found = soft_accuracy(metric, human, weights)
    np.testing.assert_allclose(found, [1 - 0.3, 1.0, np.nan])
    human[1, 2] = np.nan
    assert soft_accuracy(metric, human) == pytest.approx(1 - 0.3 / 2)


def test_scores_must_be_two_dimensional():
    with pytest.raises(ValueError, match=r"\(3,\)"):
        p_values(np.ones(3))


def test_p_values_need_permutations():
    with pytest.raises(ValueError, match="permutations must be at least 1, not 0"):
        p_values(np.ones((2, 3)), permutations=0)
