"""Links from posteriors: the most probable word, NULL, ties, means of both directions."""

import numpy as np
import pytest

from nmt_jax.alignment.posteriors import Posteriors, alignments, most_probable


def posteriors(rows):
    links = np.array(rows, np.float32)
    return Posteriors(links, 1 - links.sum(-1))


def test_null_wins_if_it_is_more_probable():
    found = most_probable(posteriors([[[0.4, 0.1], [0.2, 0.45], [0.0, 0.0]], [[0.0, 0.0], [0.5, 0.0], [0.1, 0.3]]]))
    assert [*map(set, found)] == [{(1, 1)}, {(1, 0)}]


def test_rounding_errors_do_not_decide():
    for error in (-1e-6, 0.0, 1e-6):
        found = most_probable(posteriors([[[0.3, 0.3 + error], [0.5 + error, 0.0], [0.4, 0.4 + error]]]))
        assert [*map(set, found)] == [{(1, 0), (2, 0)}]


def test_both_directions_are_combined_in_each_sentence_pair():
    forward = posteriors([[[0.9, 0.0], [0.0, 0.6]], [[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.8], [0.0, 0.0]]])
    reverse = posteriors([[[0.7, 0.2], [0.9, 0.0]], [[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.6, 0.0]]])
    found = alignments(forward, reverse, "union")
    assert [one.links for one in found] == [[(0, 0), (1, 0), (1, 1)], [], [(1, 0)]]
    assert found[0].posteriors == pytest.approx([0.8, 0.45, 0.3])
    assert found[2].posteriors == pytest.approx([0.7])
    assert [one.links for one in alignments(forward, reverse, "intersection")] == [[(0, 0)], [], [(1, 0)]]
