"""How well a pair is aligned."""

import pytest

from nmt_jax.alignment.links import Alignment


def test_the_score_is_the_mean_of_the_best_posterior_of_each_word():
    alignment = Alignment([(0, 0), (0, 1), (2, 1)], [0.9, 0.6, 0.8])
    assert alignment.score((3, 3)) == pytest.approx((0.9 + 0.0 + 0.8 + 0.9 + 0.8 + 0.0) / 6)


def test_a_pair_without_links_or_words_has_score_0():
    assert Alignment([], []).score((3, 2)) == 0
    assert Alignment([], []).score((0, 0)) == 0
