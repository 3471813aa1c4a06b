"""Words in context: published subsampling, every remaining word a centre once, batch n a pure function of n."""

import numpy as np
import pytest

from nmt_jax.data.batching.batches import iterator
from nmt_jax.data.batching.row_slice import RowSlice
from nmt_jax.data.batching.word_contexts import Contexts, kept_share
from nmt_jax.data.vocabulary.words import NO_WORD
from nmt_jax.errors import UserError


def text(length: int) -> np.ndarray:
    """Distinct words, with NO_WORD after every tenth and at the end."""
    ids = np.arange(1, length + 1, dtype=np.int32)
    ids[9::10] = NO_WORD
    ids[-1] = NO_WORD
    return ids


def contexts(length: int = 101, shares=None, **changes) -> Contexts:
    settings = {"window": 2, "block_length": 8, "batch_tokens": 32, "share": RowSlice(2), "seed": 3}
    shares = np.ones(length + 1) if shares is None else shares
    return Contexts(text(length), shares, **(settings | changes))


def centres(batch) -> list[tuple[int, ...]]:
    """Every centre with two positions on each side."""
    rows, places = np.nonzero(batch["weights"])
    return [tuple(map(int, batch["words"][row, place : place + 5])) for row, place in zip(rows, places, strict=True)]


@pytest.mark.parametrize("length", [2, 9, 16, 64, 101])
def test_every_word_is_a_centre_once_per_epoch_between_its_neighbours(length):
    source = contexts(length, steps=1000)
    padded = np.concatenate([[0, 0], text(length), [0, 0]])
    expected = [tuple(map(int, padded[i : i + 5])) for i in range(length) if padded[i + 2] != NO_WORD]
    for epoch in range(3):
        numbers = range(epoch * source.batches_per_epoch, (epoch + 1) * source.batches_per_epoch)
        assert sorted(centre for n in numbers for centre in centres(source[n])) == sorted(expected)


def test_padding_is_the_share_of_places_without_weight():
    source = contexts()
    used = np.mean([source[n]["weights"] for n in range(source.batches_per_epoch)])
    assert source.padding["blocks"] == pytest.approx(1 - used)


def test_the_probability_of_keeping_a_word_is_the_published_one():
    """Mikolov et al. (2013b), eq. 5, and t / f of their program, at t = 1e-3."""
    counts = np.array([0, 900_000, 99_000, 1_000])
    share = kept_share(counts, 1e-3)
    np.testing.assert_allclose(share[1:], [(1e-3 / 0.9) ** 0.5 + 1e-3 / 0.9, (1e-3 / 0.099) ** 0.5 + 1e-3 / 0.099, 1.0])
    assert (kept_share(counts, 0.0) == 1).all()


def test_words_are_kept_with_their_probability_in_every_epoch():
    count, shares = 40_000, np.array([1.0, 0.3, 0.05, 1.0])
    ids = np.tile(np.array([1, 2, 3, NO_WORD], np.int32), count)
    source = Contexts(ids, shares, window=2, block_length=16, batch_tokens=1 << 17, steps=6)
    found = []
    for epoch in range(2):
        numbers = range(epoch * source.batches_per_epoch, (epoch + 1) * source.batches_per_epoch)
        batches = [source[n] for n in numbers]
        words = np.concatenate([batch["words"][:, 2:-2][batch["weights"] > 0] for batch in batches])
        found.append(np.bincount(words, minlength=4))
        deviations = (found[-1][1:] - count * shares[1:]) / np.sqrt(count * np.maximum(shares * (1 - shares), 1e-9)[1:])
        assert abs(deviations).max() < 5  # five standard deviations of the binomial
    assert (found[0] != found[1]).any()


def test_a_batch_is_a_pure_function_of_its_number():
    shares = np.full(102, 0.7)
    forwards = [contexts(shares=shares, steps=20)[n] for n in range(20)]
    source = contexts(shares=shares, steps=20)
    for n in reversed(range(20)):
        for name, array in source[n].items():
            np.testing.assert_array_equal(array, forwards[n][name])
            assert array.shape == (4, 8 + 4 * (name == "words"))
    assert any((contexts(shares=shares, steps=20, seed=4)[n]["words"] != forwards[n]["words"]).any() for n in range(4))
    with pytest.raises(IndexError, match="batch 20 of 20"):
        source[20]


def test_resuming_continues_with_the_next_batch():
    whole = [batch["words"] for batch in iterator(contexts(steps=12))]
    begun = iterator(contexts(steps=12))
    for _ in range(5):
        next(begun)
    rest = [batch["words"] for batch in iterator(contexts(steps=12), begun.get_state())]
    np.testing.assert_array_equal(rest, whole[5:])


def test_processes_share_a_batch():
    for n in range(3):
        parts = [contexts(share=RowSlice(2, i, 2))[n] for i in (0, 1)]
        for name, array in contexts()[n].items():
            np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), array)


def test_invalid_block_lengths():
    with pytest.raises(UserError, match=r"config\.train\.batch_tokens=4 is less than config"):
        contexts(batch_tokens=4)
