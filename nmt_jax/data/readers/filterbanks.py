"""Logarithmic mel filterbanks of speech, and their normalization per utterance.

The definition is that of `librosa.feature.melspectrogram` with its defaults and `center=False`: the power spectrum of
frames of 25 ms every 10 ms under a periodic Hann window, 201 frequencies, through triangular filters of equal area
(Slaney, 1998) from 0 to 8 kHz. Frames do not reach beyond the recording.
"""

from __future__ import annotations

import functools

import numpy as np

RATE = 16_000  # samples per second
WINDOW = RATE * 25 // 1000  # samples of a frame
HOP = RATE * 10 // 1000  # samples from frame to frame
FLOOR = 1e-10  # of the energy in a filter, so that silence has a logarithm
LEAST_STDDEV = 1e-5
# Slaney's scale: linear up to 1 kHz, 15 mel; then logarithmic, 27 mel for a factor of 6.4
_LINEAR, _BREAK, _STEP = 200 / 3, 1000.0, np.log(6.4) / 27


def log_mel(samples: np.ndarray, count: int) -> np.ndarray:
    """The natural logarithms of the energies in `count` filters, float64[S, count], of samples float[N] in [-1, 1].

    S = 1 + (N - 400) // 160. Raises ValueError for fewer than 400 samples.
    """
    if len(samples) < WINDOW:
        raise ValueError(f"{len(samples)} samples are less than a frame of {WINDOW}")
    frames = np.lib.stride_tricks.sliding_window_view(samples, WINDOW)[::HOP]
    power = np.abs(np.fft.rfft(frames * _hann())) ** 2
    return np.log(np.maximum(power @ mel_filters(count), FLOOR))


def normalize(rows: np.ndarray) -> np.ndarray:
    """Rows float[S, F] with mean 0 and variance 1 in each column (CMVN per utterance)."""
    return (rows - rows.mean(axis=0)) / np.maximum(rows.std(axis=0), LEAST_STDDEV)


@functools.cache
def mel_filters(count: int) -> np.ndarray:
    """The weights of each frequency in each filter, float64[201, count]."""
    frequencies = np.fft.rfftfreq(WINDOW, 1 / RATE)[:, None]
    edges = _frequency(np.linspace(0, _mel(RATE / 2), count + 2))
    low, centre, high = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (frequencies - low) / (centre - low), (high - frequencies) / (high - centre)
    return np.maximum(np.minimum(rising, falling), 0) * 2 / (high - low)


def _mel(frequency: float) -> float:
    """The place on Slaney's scale of a frequency of at least 1 kHz."""
    return float(_BREAK / _LINEAR + np.log(frequency / _BREAK) / _STEP)


def _frequency(mel: np.ndarray) -> np.ndarray:
    """The frequencies in Hz of places on Slaney's scale."""
    above = np.maximum(mel - _BREAK / _LINEAR, 0)
    return np.where(above > 0, _BREAK * np.exp(_STEP * above), _LINEAR * mel)


@functools.cache
def _hann() -> np.ndarray:
    """The periodic Hann window, float64[400]."""
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
