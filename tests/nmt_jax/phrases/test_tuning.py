"""Mixed weights, and the n-best lists of all rounds."""

import numpy as np
import pytest

from metrics_jax import BLEU
from nmt_jax.phrases.model import Translation
from nmt_jax.phrases.tuning import NBestLists, interpolated


def test_weights_are_mixed_on_the_same_scale():
    mixed = interpolated(np.array([1.0, 1.0]), np.array([0.0, 100.0]), 0.5)
    np.testing.assert_allclose(mixed, [0.25, 0.75])


def test_lists_keep_each_translation_once_with_its_score():
    lists = NBestLists(["a b c d", "e f"], BLEU())
    first = [[Translation(["a", "b"], 1.0, np.ones(2))], [Translation(["e", "f"], 1.0, np.ones(2))]]
    lists.add(first)
    lists.add([[*first[0], Translation(["a", "b", "c", "d"], 0.0, np.zeros(2))], first[1]])
    expected = BLEU(smooth_method="add-k")(["a b", "a b c d"], ["a b c d"] * 2).segments
    np.testing.assert_allclose(lists.scores[0], expected)
    assert [len(one) for one in lists.features] == [2, 1]
    assert expected[1] == pytest.approx(100)
