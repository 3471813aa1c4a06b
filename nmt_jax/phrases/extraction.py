"""Phrase pairs that are consistent with a word alignment (Och and Ney, 2004; Koehn et al., 2003, section 3.1).

A source and a target phrase form a pair if there is a link between them, and no link from a word of one of them to a
word outside the other.
"""

from typing import NamedTuple

import numpy as np


class Spans(NamedTuple):
    """P phrase pairs, int64[P] each: the sentence, and the words start <= n < end on both sides."""

    sentence: np.ndarray
    source_start: np.ndarray
    source_end: np.ndarray
    target_start: np.ndarray
    target_end: np.ndarray


def extract(linked: np.ndarray, source_lengths: np.ndarray, target_lengths: np.ndarray, longest: int) -> Spans:
    """Returns all pairs of phrases of at most `longest` words, in no particular order.

    linked: bool[B, S, T], padded. source_lengths, target_lengths: int[B].
    """
    inner = [_tight(linked, source_lengths, length, longest) for length in range(1, min(longest, linked.shape[1]) + 1)]
    return _extended(Spans(*map(np.concatenate, zip(*inner, strict=True))), linked, target_lengths, longest)


def _tight(linked: np.ndarray, source_lengths: np.ndarray, length: int, longest: int) -> Spans:
    """Returns the pairs with a source phrase of this length and the shortest target phrase."""
    low, high = (_windows(one, length, least) for one, least in zip(_ends(linked), (True, False), strict=True))
    sentence, start = np.nonzero((low <= high) & (high - low < longest))
    first, last = low[sentence, start], high[sentence, start]
    inside = start + length <= source_lengths[sentence]
    source_low, source_high = _ends(linked.swapaxes(1, 2))
    for offset in range(longest):  # no link of the target phrase leaves the source phrase
        place = np.minimum(first + offset, last)
        inside &= (source_low[sentence, place] >= start) & (source_high[sentence, place] < start + length)
    found = Spans(sentence, start, start + length, first, last + 1)
    return Spans(*(one[inside] for one in found))


def _ends(linked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the first and the last word that each word of the second axis is linked to; T and -1 if there is none."""
    width, any_link = linked.shape[2], linked.any(2)
    first = np.where(any_link, linked.argmax(2), width)
    return first, np.where(any_link, width - 1 - linked[:, :, ::-1].argmax(2), -1)


def _windows(values: np.ndarray, length: int, least: bool) -> np.ndarray:
    """Returns the least or greatest value of each window of this length, int[B, S - length + 1]."""
    views = np.lib.stride_tricks.sliding_window_view(values, length, axis=1)
    return views.min(2) if least else views.max(2)


def _extended(inner: Spans, linked: np.ndarray, target_lengths: np.ndarray, longest: int) -> Spans:
    """Returns the pairs, and those with unaligned words at the edges of the target phrase."""
    free = ~linked.any(1)  # [B, T]
    free &= np.arange(free.shape[1]) < target_lengths[:, None]
    before, after = _run_lengths(free), _run_lengths(free[:, ::-1])[:, ::-1]
    edge = np.zeros((len(free), 1), before.dtype)
    left = np.hstack([edge, before])[inner.sentence, inner.target_start]
    right = np.hstack([after, edge])[inner.sentence, inner.target_end]
    found = []
    for more_left in range(longest):
        for more_right in range(longest - more_left):
            size = inner.target_end - inner.target_start + more_left + more_right
            fits = (more_left <= left) & (more_right <= right) & (size <= longest)
            one = Spans(*(column[fits] for column in inner))
            wider = {"target_start": one.target_start - more_left, "target_end": one.target_end + more_right}
            found.append(one._replace(**wider))
    return Spans(*map(np.concatenate, zip(*found, strict=True)))


def _run_lengths(free: np.ndarray) -> np.ndarray:
    """Returns how many free places in a row end at each place, int[B, T]."""
    places = np.arange(1, free.shape[1] + 1)
    return places - np.maximum.accumulate(np.where(free, 0, places), axis=1)
