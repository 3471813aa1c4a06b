"""Pairs of real text and translations: which side is real, the tag, noise on the source alone, empty sides."""

import functools

import pytest

from nmt_jax.augmentation import noise
from nmt_jax.augmentation.machine_pairs import SourceEdit, make_pairs
from nmt_jax.translation.requests import Hypothesis

LINES = ["ein Hund", "", "zwei alte Hunde schlafen im Garten", "drei"]
TEXTS = [["a dog", "the dog"], ["empty", "empty"], ["two old dogs\nsleep\rin the garden", " "], ["", "three"]]
FOUND = [[Hypothesis(text, 0.0, [], []) for text in texts] for texts in TEXTS]
NOISE = functools.partial(noise.corrupt, rate=0.3, token="<mask>", window=3)


def pairs(back=True, edit=None, first=0):
    return [(source, target) for source, target, _ in make_pairs(LINES, FOUND, back, edit or SourceEdit(), first)]


def test_every_translation_makes_a_pair_unless_a_side_is_empty():
    expected = [
        ("a dog", LINES[0]),
        ("the dog", LINES[0]),
        ("two old dogs sleep in the garden", LINES[2]),
        ("three", LINES[3]),
    ]
    assert pairs() == expected
    assert pairs(back=False) == [pair[::-1] for pair in expected]


@pytest.mark.parametrize("back", [True, False])
@pytest.mark.parametrize("change", [None, NOISE])
def test_the_tag_is_in_front_of_every_source_and_the_target_is_untouched(back, change):
    plain, tagged = pairs(back, SourceEdit(change)), pairs(back, SourceEdit(change, "<BT>"))
    assert tagged == [(f"<BT> {source}", target) for source, target in plain]
    assert [target for _, target in tagged] == [target for _, target in pairs(back)]


def test_noise_depends_on_the_line_the_copy_and_the_seed_only():
    first = pairs(edit=SourceEdit(NOISE, seed=1))
    assert pairs(edit=SourceEdit(NOISE, seed=1)) == first
    assert first != pairs(edit=SourceEdit(NOISE, seed=2))
    late = [
        (source, target) for source, target, _ in make_pairs(LINES[2:], FOUND[2:], True, SourceEdit(NOISE, seed=1), 2)
    ]
    assert late == first[2:]
    assert pairs(edit=SourceEdit(NOISE, seed=1), first=1) != first
