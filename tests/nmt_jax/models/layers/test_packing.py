"""Packed rows: positions restart with each item, and only tokens of one item see each other."""

import numpy as np

from nmt_jax.models.layers.packing import embed_positions, restarting_positions, same_item

PACKING = np.array([[1, 1, 1, 2, 3, 3, 0, 0], [1, 2, 2, 2, 2, 2, 2, 2]])


def test_positions_restart_with_each_item():
    found = restarting_positions(PACKING)
    np.testing.assert_array_equal(found, [[0, 1, 2, 0, 0, 1, 0, 1], [0, 0, 1, 2, 3, 4, 5, 6]])
    table = np.arange(16.0).reshape(8, 2)
    np.testing.assert_array_equal(embed_positions(table, PACKING)[1], table[found[1]])
    np.testing.assert_array_equal(embed_positions(table, None)[0], table)


def test_tokens_see_their_own_item_only():
    mask = np.asarray(same_item(PACKING, PACKING[:, :5]))
    assert mask.shape == (2, 1, 8, 5)
    for row, query, key in np.ndindex(2, 8, 5):
        assert mask[row, 0, query, key] == (PACKING[row, query] == PACKING[row, key])
