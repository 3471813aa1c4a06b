"""Numbers of words and pairs, batches."""

import random

import numpy as np
import pytest

from nmt_jax.alignment import bitext
from nmt_jax.alignment.bitext import LONGEST, SPECIAL, Bitext
from nmt_jax.errors import UserError


@pytest.fixture(scope="module")
def text():
    """Sentences of 0 to 20 words of which few are equal."""
    rng = random.Random(0)
    return tuple([[f"{rng.randrange(99)}" for _ in range(rng.randint(0, 20))] for _ in range(300)] for _ in range(2))


def test_pairs_are_those_of_the_words(text, monkeypatch):
    monkeypatch.setattr(bitext, "POSITIONS", 1 << 13)  # several batches of each length
    one = Bitext(*text, multiple_of=2)
    source, target = one.pair_words
    lines = []
    for batch in one.batches:
        assert len(batch.source) % 2 == 0
        lines += batch.lines.tolist()
        both = (batch.source[:, None, :] > 0) & (batch.target[:, :, None] > 0)
        assert ((batch.pairs > 0) == both).all()
        shape = batch.pairs.shape
        np.testing.assert_array_equal(source[batch.pairs][both], np.broadcast_to(batch.source[:, None, :], shape)[both])
        np.testing.assert_array_equal(target[batch.pairs][both], np.broadcast_to(batch.target[:, :, None], shape)[both])
        for row, line in enumerate(batch.lines):
            words = [one.source_words.words[number - SPECIAL] for number in batch.source[row] if number]
            assert words == text[0][line]
    assert len(one.batches) > 5
    assert sorted(lines) == [line for line in range(300) if text[0][line] and text[1][line]]


def test_unknown_words_and_pairs(text):
    one = Bitext([["a", "b"], ["c"]], [["x"], ["y"]])
    (batch,) = one.batches_of([["c", "a", "new"]], [["x", "y"]])
    assert batch.source[0, :4].tolist() == [4, 2, 1, 0]
    pairs = batch.pairs[0, :2, :3]
    assert (pairs > 0).tolist() == [[False, True, False], [True, False, False]]


def test_a_sentence_that_is_too_long():
    assert Bitext([["a"] * LONGEST], [["b"]]).batches[0].source.shape == (1, LONGEST)
    with pytest.raises(UserError, match=r"a sentence of 1,025 words .* at most 1,024"):
        Bitext([["a"]], [["b"] * (LONGEST + 1)])


def test_places_of_lines(text):
    one = Bitext(*text)
    for first, number in ((0, 300), (100, 50), (299, 5), (7, 1)):
        found = [line for place, rows in one.places_of(first, number) for line in one.batches[place].lines[rows]]
        assert sorted(found) == [line for line in range(first, min(first + number, 300)) if all(s[line] for s in text)]


@pytest.mark.parametrize("largest", [100, 2**62])  # the position does not fit beside the larger one
def test_distinct_keys(largest):
    keys = np.random.default_rng(0).integers(0, 50, (20, 30)) * (largest // 50)
    found, index = bitext._distinct(keys)
    np.testing.assert_array_equal(found, np.unique(keys))
    np.testing.assert_array_equal(found[index], keys)
