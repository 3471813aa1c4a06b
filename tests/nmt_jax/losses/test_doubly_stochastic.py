"""Doubly stochastic attention: equation 14 of Xu et al. (2015) written out, and no influence of padding."""

import numpy as np

from nmt_jax.losses.doubly_stochastic import doubly_stochastic

B, N, T, S = 2, 1, 4, 3
RANDOM = np.random.default_rng(0)
ATTENTION = RANDOM.dirichlet(np.ones(S), size=(B, N, T)).astype(np.float32)
PLACES = np.array([[[True, True, True]], [[True, True, False]]])
WEIGHTS = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.float32)


def test_it_is_equation_14():
    expected = 0.0
    for row, (length, places) in enumerate([(4, 3), (2, 2)]):
        for i in range(places):
            expected += (1 - sum(ATTENTION[row, 0, t, i] for t in range(length))) ** 2
    np.testing.assert_allclose(doubly_stochastic(ATTENTION, PLACES, WEIGHTS), expected, rtol=1e-6)


def test_it_is_zero_where_all_places_get_one():
    uniform = np.full((1, 1, S, S), 1 / S, np.float32)
    np.testing.assert_allclose(doubly_stochastic(uniform, np.ones((1, 1, S), bool), np.ones((1, S))), 0, atol=1e-12)


def test_padding_has_no_influence():
    changed = ATTENTION.copy()
    changed[1, :, 2:], changed[1, :, :, 2] = 5.0, 7.0
    empty = np.concatenate([WEIGHTS, np.zeros((1, T), np.float32)])  # a third row, which completes a batch
    more = np.concatenate([changed, ATTENTION[:1]]), np.concatenate([PLACES, PLACES[:1]])
    np.testing.assert_allclose(
        doubly_stochastic(*more, empty), doubly_stochastic(ATTENTION, PLACES, WEIGHTS), rtol=1e-6
    )
