"""The tasks by which the layers of a model are compared."""

import numpy as np
import pytest

from benchmarks import measure
from benchmarks.layers import Example, Senses, classified, examples

BANK = [("river", 0), ("money", 1), ("river", 0), ("money", 1), ("blood", 2)]


def test_senses_are_chosen_by_the_other_examples():
    """A sense with one example is a wrong choice only; a word with one sense is no question."""
    found = [Example([word, "bank"], 1, "noun", "bank", rank) for word, rank in BANK]
    found += [Example(["dog"], 0, "noun", "dog", 0)] * 2
    vectors = np.array([[1, 0], [0, 1], [0.9, 0.1], [0.1, 0.9], [0.7, 0.7], [1, 1], [1, 1]])
    assert Senses(found).right(None).tolist() == [True, False, True, False]
    assert Senses(found).right(vectors).tolist() == [True] * 4
    vectors[0] = [0.7, 0.71]  # nearest to `blood`
    assert Senses(found).right(vectors).tolist() == [False, True, False, True]


def test_the_classifier_separates_what_is_separable():
    x = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    y = (x[:, 1] > 0) + 2 * (x[:, 2] > 0)
    assert classified(x[:200], y[:200], x[200:], y[200:]).mean() > 0.95
    assert classified(x[:200], y[:200], x[200:], y[np.arange(99, -1, -1)]).mean() < 0.5


@pytest.mark.skipif(not (path := measure.SHARED / "data" / "wordnet3.0").exists(), reason=f"no {path}")
@pytest.mark.slow
def test_examples_contain_their_word():
    found = examples()
    assert len(found) > 40_000
    sighed = [one for one in found if one.words[:3] == ["she", "sighed", "sadly"]]
    assert [(one.place, one.part, one.base, one.rank) for one in sighed] == [(1, "verb", "sigh", 0)]
