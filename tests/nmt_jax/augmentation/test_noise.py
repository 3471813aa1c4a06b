"""Noise: shares of words, the window of swaps, lines that stay non-empty, independence of other lines."""

import collections
import functools

import numpy as np
import pytest

from nmt_jax.augmentation import noise
from nmt_jax.augmentation.augmenter import Pair, augment

WORDS = [f"w{n}" for n in range(11)]
KINDS = {
    "drop": functools.partial(noise.drop, rate=0.3),
    "swap": functools.partial(noise.swap, rate=0.3, window=3),
    "mask": functools.partial(noise.mask, rate=0.3, token="<mask>"),
}
ALL = KINDS | {"corrupt": functools.partial(noise.corrupt, rate=0.3, token="<mask>", window=3)}


@pytest.mark.parametrize("kind", KINDS)
def test_the_share_of_changed_words_is_the_rate(kind):
    lines = 2000
    changed = sum(KINDS[kind](WORDS, np.random.default_rng(n)).num_changed for n in range(lines))
    assert changed / (lines * len(WORDS)) == pytest.approx(0.3, abs=0.015)  # 4 standard deviations


def test_each_place_is_dropped_equally_often():
    kept = collections.Counter(
        word for n in range(2000) for word in noise.drop(WORDS, np.random.default_rng(n), 0.5).words
    )
    assert all(count == pytest.approx(1000, abs=100) for count in kept.values())
    assert kept.keys() == set(WORDS)


@pytest.mark.parametrize("length", [1, 2, 7])
def test_a_word_remains(length):
    changed = noise.drop(WORDS[:length], np.random.default_rng(0), 1.0)
    assert len(changed.words) == 1
    assert changed.words[0] in WORDS
    assert changed.num_changed == length - 1


@pytest.mark.parametrize("window", [1, 4])
def test_no_word_moves_farther_than_the_window(window):
    distances = set()
    for n in range(200):
        changed = noise.swap(WORDS, np.random.default_rng(n), 1.0, window)
        assert sorted(changed.words) == sorted(WORDS)
        moved = {abs(changed.words.index(word) - place) for place, word in enumerate(WORDS)}
        assert changed.num_changed == sum(one != other for one, other in zip(changed.words, WORDS, strict=True))
        distances |= moved
    assert distances - {0} == set(range(1, window + 1))


@pytest.mark.parametrize("window", [0, 1, 3])
def test_a_permutation_moves_no_word_farther_than_the_window(window):
    distances = set()
    for n in range(300):
        changed = noise.permute(WORDS, np.random.default_rng(n), window)
        assert sorted(changed.words) == sorted(WORDS)
        moved = [abs(changed.words.index(word) - place) for place, word in enumerate(WORDS)]
        assert changed.num_changed == sum(distance > 0 for distance in moved)
        distances |= set(moved)
    assert distances == set(range(window + 1))


def test_infilling_replaces_spans_by_one_token_each():
    words, masked, spans = [f"w{n}" for n in range(40)], 0, collections.Counter()
    for n in range(2000):
        changed = noise.infill(words, np.random.default_rng(n), 0.3, "<mask>")
        kept = [word for word in changed.words if word != "<mask>"]
        assert kept == [word for word in words if word in kept], "words keep their order"
        masked += len(words) - len(kept)
        spans["number"] += len(changed.words) - len(kept)
        spans["inserted"] += changed.num_changed - (len(words) - len(kept))
    assert masked / (2000 * 40) == pytest.approx(0.3, abs=0.01)
    # The last span of a line is cut to the number of words that are left, so the mean is below 3.
    assert 2.2 < masked / spans["number"] < 3
    assert spans["inserted"] / spans["number"] == pytest.approx(np.exp(-3), abs=0.01)


@pytest.mark.parametrize("length", [1, 5])
def test_infilling_all_words_leaves_tokens_only(length):
    changed = noise.infill(WORDS[:length], np.random.default_rng(1), 1.0, "<mask>")
    assert set(changed.words) == {"<mask>"}


def test_all_noise_together_has_the_right_rates():
    lines, rate, lengths, masks, farthest = 3000, 0.2, 0, 0, 0
    for n in range(lines):
        changed = noise.corrupt(WORDS, np.random.default_rng(n), rate, "<mask>", 3)
        kept = [word for word in changed.words if word != "<mask>"]
        lengths, masks = lengths + len(changed.words), masks + len(changed.words) - len(kept)
        assert len(kept) == len(set(kept))
        assert set(kept) <= set(WORDS)
        order = [WORDS.index(word) for word in kept]
        # Words that change their order were at most three places apart; those dropped in between add to the distance.
        inverted = [a - b for place, a in enumerate(order) for b in order[place:] if a > b]
        farthest = max([farthest, *inverted])
        if len(changed.words) == len(WORDS):
            assert max(inverted, default=0) <= 3
    assert lengths / (lines * len(WORDS)) == pytest.approx(1 - rate, abs=0.01)
    assert masks / lengths == pytest.approx(rate, abs=0.01)
    assert farthest >= 3


def test_equal_words_are_not_swapped_and_masks_not_masked():
    random = np.random.default_rng(0)
    assert noise.swap(["a"] * 9, random, 1.0, 3).num_changed == 0
    changed = noise.mask(["<mask>", "b"], random, 1.0, "<mask>")
    assert (changed.words, changed.num_changed) == (["<mask>", "<mask>"], 1)


@pytest.mark.parametrize("kind", ALL)
def test_a_copy_depends_on_seed_line_and_number_only(kind):
    pair = Pair(" ".join(WORDS * 3))
    first = augment(pair, ALL[kind], 5, 7, 1)
    augment(Pair("other words"), ALL[kind], 5, 8, 1)
    assert augment(pair, ALL[kind], 5, 7, 1) == first
    others = [augment(pair, ALL[kind], *key).source for key in ((6, 7, 1), (5, 8, 1), (5, 7, 2))]
    assert len({first.source, *others}) == 4


def test_a_line_without_change_is_returned_as_it_was():
    assert augment(Pair("  a  b ", "c  d"), KINDS["drop"], 0, 1, 0).source in ("  a  b ", "a", "b")
    assert augment(Pair(" \t", "c  d"), KINDS["drop"], 0, 0, 0) == (" \t", "c  d", 0, 0, 0)
