"""Phrase extraction and orientations against the definitions, pair by pair."""

import numpy as np
import pytest

from nmt_jax.phrases.extraction import extract
from nmt_jax.phrases.reordering import DISCONTINUOUS, MONOTONE, SWAP, orientations

LONGEST = 4


def brute_force(links, source_length, target_length):
    """All pairs of phrases of which no word is linked outside, and one is linked inside."""
    found = set()
    for i in range(source_length):
        for k in range(i + 1, min(i + LONGEST, source_length) + 1):
            for j in range(target_length):
                for m in range(j + 1, min(j + LONGEST, target_length) + 1):
                    sides = [(i <= s < k, j <= t < m) for s, t in links]
                    if all(one == other for one, other in sides) and (True, True) in sides:
                        found.add((i, k, j, m))
    return found


def orientation(links, source_length, target_length, pair):
    linked = {*links, (-1, -1), (source_length, target_length)}
    i, k, j, m = pair
    first = MONOTONE if (i - 1, j - 1) in linked else SWAP if (k, j - 1) in linked else DISCONTINUOUS
    second = MONOTONE if (k, m) in linked else SWAP if (i - 1, m) in linked else DISCONTINUOUS
    return [first, second]


@pytest.fixture(scope="module")
def batch():
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 8, (2, 60))
    linked = np.zeros((60, 7, 7), bool)
    for row, (source, target) in enumerate(lengths.T):
        linked[row, :source, :target] = rng.random((source, target)) < rng.choice([0.1, 0.2, 0.4])
    return linked, *lengths


def test_phrases_are_those_of_the_definition(batch):
    linked, source_lengths, target_lengths = batch
    spans = extract(*batch, LONGEST)
    found = list(zip(*(one.tolist() for one in spans), strict=True))
    assert len(found) == len(set(found)) > 250
    for row in range(len(linked)):
        expected = brute_force(np.argwhere(linked[row]).tolist(), source_lengths[row], target_lengths[row])
        assert {pair for sentence, *pair in found for pair in [tuple(pair)] if sentence == row} == expected


def test_orientations_are_those_of_the_definition(batch):
    linked, source_lengths, target_lengths = batch
    spans = extract(*batch, LONGEST)
    found = orientations(spans, *batch)
    assert {*found.ravel().tolist()} == {MONOTONE, SWAP, DISCONTINUOUS}
    for (sentence, *pair), own in zip(zip(*(one.tolist() for one in spans), strict=True), found.tolist(), strict=True):
        links = set(map(tuple, np.argwhere(linked[sentence]).tolist()))
        assert own == orientation(links, source_lengths[sentence], target_lengths[sentence], pair)
