"""Filterbanks of speech: the values of librosa, frames, and the normalization."""

import json

import numpy as np
import pytest

from nmt_jax.data.readers.filterbanks import FLOOR, HOP, WINDOW, log_mel, mel_filters, normalize
from tests.conftest import ROOT
from tests.fixtures.filterbank_golden import FILTERS, signal

GOLDEN = json.loads((ROOT / "tests/fixtures/filterbank_golden.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("count", FILTERS)
def test_values_are_those_of_librosa(count):
    golden, rows = GOLDEN[str(count)], log_mel(signal(), count)
    assert list(rows.shape) == golden["shape"]
    np.testing.assert_allclose(rows[golden["frames"]], golden["rows"], atol=2e-5)
    np.testing.assert_allclose(rows.sum(axis=0), golden["sums"], atol=1e-3)


def test_frames_stay_inside_the_recording():
    random = np.random.default_rng(0)
    for length, frames in ((WINDOW, 1), (WINDOW + HOP - 1, 1), (WINDOW + HOP, 2)):
        assert len(log_mel(random.normal(size=length), 40)) == frames
    with pytest.raises(ValueError, match="399 samples are less than a frame of 400"):
        log_mel(np.zeros(WINDOW - 1), 40)


@pytest.mark.parametrize("count", [1, 40, 128])
def test_every_filter_has_a_frequency(count):
    weights = mel_filters(count)
    assert weights.shape == (201, count)
    assert (weights.max(axis=0) > 0).all()
    assert (weights >= 0).all()


def test_silence_has_the_logarithm_of_the_floor():
    rows = log_mel(np.zeros(1000), 40)
    assert (rows == np.log(FLOOR)).all()
    np.testing.assert_allclose(normalize(rows), 0, atol=1e-6)


def test_normalized_rows_do_not_depend_on_the_loudness():
    samples = np.random.default_rng(0).normal(0, 0.1, 3000)
    rows = normalize(log_mel(samples, 40))
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(rows.std(axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(normalize(log_mel(0.25 * samples, 40)), rows, atol=1e-8)
