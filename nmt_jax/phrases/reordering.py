"""Lexicalized reordering: the orientation of a phrase to the phrase before and after it (Koehn et al., 2005)."""

import numpy as np

from nmt_jax.phrases.extraction import Spans

MONOTONE, SWAP, DISCONTINUOUS = 0, 1, 2
SMOOTHING = 0.5  # added to the count of each orientation


def orientations(
    spans: Spans, linked: np.ndarray, source_lengths: np.ndarray, target_lengths: np.ndarray
) -> np.ndarray:
    """Returns the orientations of phrase pairs to what precedes and what follows them in the target, int64[P, 2].

    To what precedes: monotone if the words before the two phrases are linked, swap if the word after the source phrase
    is linked to the word before the target phrase. To what follows: the same in the other direction. The words before
    the first and after the last of a sentence are linked.
    """
    sentences, source, target = linked.shape
    framed = np.zeros((sentences, source + 2, target + 2), bool)
    framed[:, 1:-1, 1:-1] = linked
    framed[:, 0, 0] = True
    framed[np.arange(sentences), source_lengths + 1, target_lengths + 1] = True
    s, before, after = spans.sentence, spans.source_start, spans.source_end + 1  # in the frame
    left, right = spans.target_start, spans.target_end + 1
    previous = _orientation(framed[s, before, left], framed[s, after, left])
    following = _orientation(framed[s, after, right], framed[s, before, right])
    return np.stack([previous, following], axis=1)


def _orientation(monotone: np.ndarray, swap: np.ndarray) -> np.ndarray:
    return np.where(monotone, MONOTONE, np.where(swap, SWAP, DISCONTINUOUS))


def log_probabilities(orientation: np.ndarray, pair: np.ndarray, num_pairs: int) -> np.ndarray:
    """Returns log p(orientation | phrase pair), float64[N, 2, 3]; orientation: int[P, 2], pair: int[P]."""
    counts = np.stack(
        [np.bincount(pair * 3 + side, minlength=3 * num_pairs).reshape(-1, 3) for side in orientation.T], axis=1
    )
    return np.log((counts + SMOOTHING) / (counts.sum(2, keepdims=True) + 3 * SMOOTHING))
