"""Perturbed sentences: dropped words, masked tokens, and how fillings are inserted."""

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from nmt_jax.data.batching.encoder_rows import Pieces
from nmt_jax.data.batching.masking import MAX_MASKS, Masked, choose_masked, drop_words


def chance(seed=0):
    return np.random.default_rng(seed)


@given(st.lists(st.sampled_from(["a", "b", "cc", "d."]), max_size=9), st.integers(0, 99))
def test_some_words_are_dropped_and_the_others_keep_their_order(words, seed):
    left = drop_words(" ".join(words), chance(seed)).split()
    assert len(left) < max(len(words), 1)
    assert left or len(words) < 2
    rest = iter(words)
    assert all(word in rest for word in left)
    assert left == drop_words(" ".join(words), chance(seed)).split()


def test_spans_and_scattered_tokens_are_masked():
    found = [choose_masked(40, chance(seed)) for seed in range(300)]
    assert {len(positions) for positions in found} == set(range(1, MAX_MASKS + 1))
    assert all((np.diff(positions) > 0).all() and 0 <= positions[0] <= positions[-1] < 40 for positions in found)
    runs = np.mean([len(positions) == positions[-1] - positions[0] + 1 for positions in found if len(positions) > 3])
    assert 0.35 < runs < 0.65
    assert {int(place) for seed in range(50) for place in choose_masked(2, chance(seed))} == {0, 1}


@pytest.mark.parametrize(
    ("positions", "fillings", "expected"),
    [
        ([0], ["a"], "a Cat sitting."),
        ([1, 2], ["dog", "stands"], "The dog stands ting."),
        ([1], ["##me"], "Theme sitting."),
        ([3], ["##s"], "The Cat sits."),
        ([3], ["down"], "The Cat sit down."),
        ([4], ["!"], "The Cat sitting!"),
        ([2], ["\u2581ran"], "The Cat ran ting."),
    ],
)
def test_fillings_are_inserted_into_the_sentence(positions, fillings, expected):
    text = "The Cat sitting."
    spans = np.array([(0, 3), (4, 7), (8, 11), (11, 15), (15, 16)])
    if expected.endswith("ting.") and 2 in positions:
        expected = expected.replace(" ting", "ting")  # the rest of the same word stays attached
    assert Masked(text, Pieces(np.arange(5), spans), np.array(positions)).filled(fillings) == expected


@pytest.mark.parametrize(
    ("text", "positions", "fillings", "expected"),
    [
        ("walking home", [2], ["\u2581home"], "walking home"),
        ("walking home", [1, 2], ["ing", "ing"], "walkinging"),
        ("walking home", [1], ["\u2581home"], "walk home home"),
        ("walking home", [0], ["\u2581home"], "homeing home"),
        ("walking", [1], ["\u2581walk"], "walk walk"),
        ("walking  home walk", [3, 4], ["\u2581walk", "ing"], "walking walking"),
    ],
)
def test_tokens_with_a_blank_in_front_begin_words(text, positions, fillings, expected):
    scores = [("[UNK]", -9.0), ("\u2581walk", -1.0), ("ing", -1.0), ("\u2581home", -1.0), ("\u2581", -1.0)]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(scores, 0))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    encoding = tokenizer.encode(text)
    if text == "walking home":
        assert encoding.offsets == [(0, 4), (4, 7), (7, 12)]
    pieces = Pieces(np.array(encoding.ids), np.array(encoding.offsets))
    assert Masked(text, pieces, np.array(positions)).filled(fillings) == expected


def test_a_sentence_without_masks_is_unchanged():
    assert Masked("a  b", Pieces(np.zeros(0), np.zeros((0, 2), int)), np.zeros(0, int)).filled([]) == "a b"
