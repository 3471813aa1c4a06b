"""Links from similarities: cases worked out by hand from Jalili Sabet et al. (2020), and transport."""

import itertools

import numpy as np

from nmt_jax.alignment.similarity import argmax, itermax, match, transport_shares

# 0-0 is linked first: all source pieces but the last prefer target piece 0, all target pieces source piece 0.
SIMILAR = np.array([[0.95, 0.9, 0.6], [0.8, 0.7, 0.2], [0.3, 0.5, 0.1]])


def links(found):
    return [(int(i), int(j)) for i, j in np.argwhere(found)]


def test_argmax_links_pieces_that_prefer_each_other():
    assert links(argmax(SIMILAR)) == [(0, 0)]
    assert links(argmax(np.full((2, 3), 0.5))) == [(0, 0)]


def test_itermax_goes_on_with_smaller_similarities_of_linked_pieces():
    """0-1 has 0.9 * 0.9, above 1-1; 1-0 has 0.9 * 0.8, above 1-1, but not above 0-1, as 0-0 no longer counts."""
    assert links(itermax(SIMILAR)) == [(0, 0), (0, 1), (1, 0)]
    free = np.array([[0.95, 0.75], [0.6, 0.7]])  # 0.9 * 0.75 is less than 0.7
    assert links(itermax(free)) == [(0, 0), (1, 1)]
    assert links(itermax(np.array([[0.1, 0.9], [0.9, 0.1]]))) == [(0, 1), (1, 0)]


def test_properties_of_random_matrices():
    for seed in range(50):
        one = np.random.default_rng(seed).random((4, 5))
        first, second, best = argmax(one), itermax(one), match(one)
        assert first.sum(0).max() == first.sum(1).max() == 1
        assert (second >= first).all()
        assert best.sum(1).tolist() == [1] * 4
        assert best.sum(0).max() == 1
        total = max(sum(one[i, j] for i, j in enumerate(order)) for order in itertools.permutations(range(5), 4))
        np.testing.assert_allclose(one[best].sum(), total)


def test_transport_shares():
    """All of a piece of the longer sentence is transported; padding and neighbours change nothing."""
    rng = np.random.default_rng(0)
    clear = np.full((3, 6), 0.3)
    clear[np.arange(6) // 2, np.arange(6)] = 0.9  # each source piece has two target pieces
    problems = [clear, rng.random((5, 4)), rng.random((1, 7)), clear.T]
    shares = transport_shares(problems)
    assert [one.shape for one in shares] == [one.shape for one in problems]
    assert links(shares[0] > 0.5) == [(i // 2, i) for i in range(6)]
    np.testing.assert_allclose(shares[3], shares[0].T, atol=1e-3)
    for one in shares:
        assert one.min() >= 0
        np.testing.assert_allclose(one.sum(axis=int(np.argmin(one.shape))), 1, atol=1e-3)
    for problem, one in zip(problems, shares, strict=True):
        np.testing.assert_array_equal(transport_shares([problem])[0], one)
