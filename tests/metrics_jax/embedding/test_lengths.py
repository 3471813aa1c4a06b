"""Batches of a few shapes: every item once, longest first, within the token budget."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics_jax.embedding.lengths import batch_rows, pack_by_length


@given(st.lists(st.integers(0, 70), max_size=300), st.sampled_from([1, 2, 3]))
@settings(max_examples=30, deadline=None)
def test_every_item_is_in_one_batch_that_it_fits(lengths, multiple_of):
    packs = list(pack_by_length(lengths, 256, multiple_of))
    assert sorted(itertools.chain.from_iterable(pack.indices.tolist() for pack in packs)) == list(range(len(lengths)))
    for pack in packs:
        assert len(pack.indices) <= pack.rows
        assert pack.rows % multiple_of == 0
        assert pack.rows * pack.length <= 256 or pack.rows == multiple_of
        assert max(lengths[index] for index in pack.indices) <= pack.length
    assert [pack.length for pack in packs] == sorted((pack.length for pack in packs), reverse=True)
    assert all(pack.rows == batch_rows(pack.length, 256, multiple_of) for pack in packs[:-1])
    if packs:
        assert packs[-1].rows < 2 * max(len(packs[-1].indices), multiple_of)


def test_lengths_are_padded_as_requested():
    lengths = np.random.default_rng(0).integers(1, 60, 100)
    packs = list(pack_by_length(lengths, 256, 2, lambda length: -(-length // 8) * 8))
    assert {pack.length % 8 for pack in packs} == {0}
    assert len({(pack.rows, pack.length) for pack in packs}) <= 9


def test_a_row_longer_than_the_budget_is_a_batch():
    ((indices, rows, length),) = pack_by_length([500], 256, 1, lambda length: length)
    assert (indices.tolist(), rows, length) == ([0], 1, 500)


@pytest.mark.parametrize(("length", "multiple_of", "rows"), [(8, 1, 32), (10, 1, 16), (10, 3, 24), (300, 3, 3)])
def test_rows_are_a_multiple_times_a_power_of_two(length, multiple_of, rows):
    assert batch_rows(length, 256, multiple_of) == rows
