"""The sign test, its power, and the choice of pairs of texts that it is done on."""

import collections
import math

import numpy as np
import pytest
import scipy.stats

from metrics_jax.judging.disagreement import choose_pairs, find_disagreements
from metrics_jax.judging.sign_test import pairs_needed, sign_test, sign_test_power


def test_p_values_equal_scipys_binomial_test():
    for wins, losses in ((8, 2), (0, 6), (5, 5), (31, 17), (3, 4)):
        expected = scipy.stats.binomtest(wins, wins + losses).pvalue
        assert sign_test(wins, losses) == sign_test(losses, wins) == pytest.approx(expected, abs=1e-12)
    assert sign_test(0, 0) == 1


def test_power_is_the_probability_of_a_significant_result():
    for size, share, alpha in ((1, 0.9, 0.05), (5, 1.0, 0.05), (6, 1.0, 0.05), (20, 0.7, 0.05), (35, 0.3, 0.01)):
        outcomes = [
            (sign_test(k, size - k), math.comb(size, k) * share**k * (1 - share) ** (size - k)) for k in range(size + 1)
        ]
        expected = sum(probability for p, probability in outcomes if p <= alpha)
        assert sign_test_power(size, share, alpha) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("share", "power"), [(0.6, 0.8), (0.7, 0.8), (0.25, 0.9), (0.95, 0.8), (1.0, 0.8), (0.55, 0.06), (0.7, 0.1)]
)
def test_enough_pairs_and_no_more(share, power):
    size = pairs_needed(share, power)
    powers = sign_test_power(np.arange(1, 3 * size + 50), share)
    assert powers[size - 2] < power <= powers[size - 1 :].min()


def test_impossible_studies():
    for call, words in (
        (lambda: pairs_needed(0.5), "chance"),
        (lambda: pairs_needed(0.501), "more than 100,000 pairs"),
        (lambda: pairs_needed(1.5), "probabilities"),
        (lambda: pairs_needed(0.7, 0.01), "above alpha"),
        (lambda: sign_test(-1, 3), "0 or more"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


# Texts of three systems for four items; the second metric is the first but for the marked ones.
SYSTEMS, ITEMS = ["a"] * 4 + ["b"] * 4 + ["c"] * 3, list("12341234123")
TEXTS = ["p", "q", "r", "s", "p", "t", "u", "v", "w", "x", "y"]
FIRST = np.array([1, 5, 3, 4, 2, 4, 1, 4, 0, 0, 0.0])
SECOND = np.array([1, 3, 3, 0, 2, 4, 2, 5, 0, 9, 0.0])  # b beats a on 2; on 4, a tie of the first; c beats both on 2


def test_pairs_that_metrics_order_differently():
    found = find_disagreements(np.stack([FIRST, SECOND]), TEXTS, SYSTEMS, ITEMS)
    # Items 1 to 3 have three pairs, item 4 one; a and b have the same text for item 1.
    assert found.num_pairs == 9
    assert list(zip(found.first, found.second, strict=True)) == [(1, 5), (1, 9), (5, 9)]
    assert found.rate == pytest.approx(1 / 3)
    spread = FIRST.std(), SECOND.std()
    assert found.strengths == pytest.approx(
        [min(1 / s for s in spread), min(5 / spread[0], 6 / spread[1]), min(4 / spread[0], 5 / spread[1])]
    )
    swapped = find_disagreements(np.stack([SECOND, FIRST * 7 + 3]), TEXTS, SYSTEMS, ITEMS)
    assert list(zip(swapped.second, swapped.first, strict=True)) == [(1, 5), (1, 9), (5, 9)]
    assert swapped.strengths == pytest.approx(found.strengths)
    with pytest.raises(ValueError, match="the same score"):
        find_disagreements(np.stack([FIRST, np.ones(11)]), TEXTS, SYSTEMS, ITEMS)


def test_scores_of_other_types_and_nan():
    lists = find_disagreements([FIRST.tolist(), SECOND.tolist()], TEXTS, SYSTEMS, ITEMS)
    assert list(zip(lists.first, lists.second, strict=True)) == [(1, 5), (1, 9), (5, 9)]
    bytes_ = find_disagreements(np.stack([FIRST, SECOND]).astype(np.uint8), TEXTS, SYSTEMS, ITEMS)
    np.testing.assert_array_equal(bytes_.strengths, lists.strengths)
    with pytest.raises(ValueError, match="the score of text 2 by metric 1 is nan"):
        find_disagreements(np.stack([FIRST, np.where(np.arange(11) == 2, np.nan, SECOND)]), TEXTS, SYSTEMS, ITEMS)


def test_items_and_systems_are_chosen_equally_often():
    random = np.random.default_rng(0)
    systems, items = np.repeat(["a", "b", "c", "d"], 30).tolist(), list(range(30)) * 4
    scores = random.normal(size=(2, 120))
    scores[:, :60] *= 9  # a and b differ most
    scores[:, ::30] *= 99  # as the texts of item 0 do
    found = find_disagreements(scores, [str(k) for k in range(120)], systems, items)
    chosen = choose_pairs(found, systems, items, 18)
    assert chosen[0] == np.argmax(found.strengths)
    of_systems = collections.Counter(frozenset((systems[found.first[k]], systems[found.second[k]])) for k in chosen)
    assert list(of_systems.values()) == [3] * 6
    of_items = collections.Counter(items[found.first[k]] for k in chosen)
    assert max(of_items.values()) <= 3
    assert len({items[found.first[k]] for k in chosen[:6]}) == 6
    assert len(set(choose_pairs(found, systems, items, 10_000))) == len(found.first)
