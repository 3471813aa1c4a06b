"""SpecAugment: bands within their bounds, every band possible, and nothing else changed."""

import jax
import numpy as np
import pytest

from nmt_jax.models.layers.features import Features
from nmt_jax.models.layers.spec_augment import spec_augment

OFF = {"frequency_masks": 0, "frequency_width": 3, "time_masks": 0, "time_width": 4, "time_share": 1.0}
ROWS, LENGTHS = np.ones((400, 9, 5), np.float32), np.full(400, 6, np.int32)
apply = jax.jit(spec_augment, static_argnames=tuple(OFF))


def masked(seed=0, lengths=LENGTHS, **changes):
    source = Features(ROWS, lengths)
    found = apply(jax.random.key(seed), source, **OFF | changes)
    np.testing.assert_array_equal(found.lengths, lengths)
    assert set(np.unique(found.rows)) <= {0, 1}
    return np.array(found.rows) == 0


def bands(covered):
    """First place and width of the single band in each row of bool[B, N]; rows without one are left out."""
    edges = np.diff(np.pad(covered, ((0, 0), (1, 1))).astype(int), axis=1)
    assert (edges == 1).sum(axis=1).max() == 1
    used = covered.any(axis=1)
    first, end = (edges[used] == 1).argmax(axis=1), (edges[used] == -1).argmax(axis=1)
    return first, end - first


def test_without_masks_nothing_changes():
    assert not masked().any()


def test_a_band_of_columns_covers_all_rows():
    found = masked(frequency_masks=1)
    assert (found == found[:, :1]).all()
    first, width = bands(found[:, 0])
    assert {(int(a), int(b)) for a, b in zip(first, width, strict=True)} == {
        (start, size) for size in (1, 2, 3) for start in range(5 - size + 1)
    }
    # f ~ U{0, ..., 3}: each width, and none, in a quarter of the sources
    counts = np.bincount(width, minlength=4)
    counts[0] = len(found) - len(width)
    np.testing.assert_allclose(counts / len(found), 0.25, atol=0.08)


def test_a_band_of_rows_is_inside_the_length():
    found = masked(time_masks=1)
    assert (found == found[:, :, :1]).all()
    first, width = bands(found[:, :, 0])
    assert {(int(a), int(b)) for a, b in zip(first, width, strict=True)} == {
        (start, size) for size in (1, 2, 3, 4) for start in range(6 - size + 1)
    }


@pytest.mark.parametrize(("share", "widest"), [(0.5, 3), (0.2, 1), (0.1, 0)])
def test_a_band_of_rows_is_at_most_a_share_of_the_length(share, widest):
    found = masked(time_masks=1, time_share=share)[:, :, 0]
    assert found.sum(axis=1).max() == widest


def test_several_masks_overlap_and_differ_between_sources_and_keys():
    found = masked(frequency_masks=2, time_masks=2)
    assert found[:, 0].any(axis=1).mean() > 0.9
    assert len({rows.tobytes() for rows in found}) > 200
    assert (found != masked(seed=1, frequency_masks=2, time_masks=2)).any()


def test_an_empty_source_stays_empty():
    lengths = LENGTHS.copy()
    lengths[:10] = 0
    assert not masked(lengths=lengths, time_masks=2)[:10].any()
