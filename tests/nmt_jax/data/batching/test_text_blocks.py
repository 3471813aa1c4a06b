"""Blocks: batch n is a pure function of n, an epoch and an evaluation predict every token exactly once."""

import itertools

import numpy as np
import pytest

from nmt_jax.data.batching.batches import iterator
from nmt_jax.data.batching.row_slice import RowSlice
from nmt_jax.data.batching.text_blocks import Blocks, ContinuedBlocks, rows_per_batch, windows
from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.errors import UserError


def text(length: int) -> np.ndarray:
    """Distinct tokens, and EOS."""
    return np.array([*range(10, 9 + length), EOS], np.int32)


def blocks(length: int = 101, **changes) -> Blocks:
    settings = {"block_length": 8, "batch_tokens": 32, "share": RowSlice(2), "seed": 3}
    return Blocks(text(length), **(settings | changes))


def predicted(batches) -> list[tuple[int, int]]:
    """All pairs (previous token, token) with weight."""
    pairs = []
    for batch in batches:
        before, after = batch["tokens"][:, :-1], batch["tokens"][:, 1:]
        assert set(np.unique(batch["weights"])) <= {0.0, 1.0}
        pairs += [
            (int(a), int(b)) for a, b in zip(before[batch["weights"] > 0], after[batch["weights"] > 0], strict=True)
        ]
    return pairs


def following(length: int) -> list[tuple[int, int]]:
    """All pairs (previous token, token) of the text; EOS precedes the first token."""
    ids = text(length).tolist()
    return list(zip([EOS, *ids[:-1]], ids, strict=True))


@pytest.mark.parametrize("length", [2, 7, 8, 9, 64, 101])
def test_an_epoch_predicts_every_token_once(length):
    source = blocks(length, steps=1000)
    for epoch in range(3):
        numbers = range(epoch * source.batches_per_epoch, (epoch + 1) * source.batches_per_epoch)
        assert sorted(predicted(source[n] for n in numbers)) == sorted(following(length))


def test_padding_is_the_share_of_places_without_weight():
    source = blocks()
    used = np.mean([source[n]["weights"] for n in range(source.batches_per_epoch)])
    assert source.padding["blocks"] == pytest.approx(1 - used)


def test_each_epoch_has_a_new_offset_and_order():
    source = blocks(steps=1000)
    first, second = (predicted(source[n] for n in range(e * 4, e * 4 + 4)) for e in (0, 1))
    assert source.batches_per_epoch == 4
    assert first != second
    starts = {int(source[n]["tokens"][0, 0] - 10) % 8 for n in range(80)}
    assert len(starts) == 8  # all offsets occur


def test_a_batch_is_a_pure_function_of_its_number():
    forwards = [blocks(steps=20)[n] for n in range(20)]
    source = blocks(steps=20)
    for n in reversed(range(20)):
        for name, array in source[n].items():
            np.testing.assert_array_equal(array, forwards[n][name])
    assert any((blocks(steps=20, seed=4)[n]["tokens"] != forwards[n]["tokens"]).any() for n in range(4))
    with pytest.raises(IndexError, match="batch 20 of 20"):
        source[20]


def test_resuming_continues_with_the_next_batch():
    whole = [batch["tokens"] for batch in iterator(blocks(steps=12))]
    begun = iterator(blocks(steps=12))
    for _ in range(5):
        next(begun)
    rest = [batch["tokens"] for batch in iterator(blocks(steps=12), begun.get_state())]
    np.testing.assert_array_equal(rest, whole[5:])


def test_processes_share_a_batch():
    for n in range(4):
        parts = [blocks(share=RowSlice(2, i, 2))[n] for i in (0, 1)]
        for name, array in blocks()[n].items():
            np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), array)
    with pytest.raises(ValueError, match="2 rows cannot be divided equally among 3 processes"):
        RowSlice(2, 0, 3)


def continued(length: int = 101, **changes) -> ContinuedBlocks:
    settings = {"block_length": 8, "batch_tokens": 32, "share": RowSlice(2), "seed": 3, "steps": 40}
    return ContinuedBlocks(text(length), **(settings | changes))


@pytest.mark.parametrize("length", [3, 64, 101])
def test_each_row_continues_the_row_before_around_the_text(length):
    source = continued(length)
    rows = np.concatenate([source[n]["tokens"][:, :-1] for n in range(len(source))], axis=1)
    ring = dict(following(length))
    for row in rows.tolist():
        assert all(ring[before] == after for before, after in itertools.pairwise(row))
    starts = [following(length).index((first, ring[first])) for first in rows[:, 0]]
    gaps = np.diff([*starts, starts[0] + length]) % length
    assert abs(gaps - length / 4).max() < 1  # so each round of the text, about, predicts every token once
    for n in range(3):
        np.testing.assert_array_equal(source[n]["tokens"][:, -1], source[n + 1]["tokens"][:, 0])
        parts = [continued(length, share=RowSlice(2, i, 2))[n]["tokens"] for i in (0, 1)]
        np.testing.assert_array_equal(np.concatenate(parts), source[n]["tokens"])
    assert len({tuple(continued(length, seed=seed)[0]["tokens"][0]) for seed in range(8)}) > 1
    with pytest.raises(IndexError, match="batch 40 of 40"):
        source[40]


@pytest.mark.parametrize("length", [2, 7, 8, 9, 14, 101])
@pytest.mark.parametrize("context", [0, 3, 7])
def test_an_evaluation_predicts_every_token_once_from_enough_context(length, context):
    batches = list(windows(text(length), block_length=8, context=context, rows=3))
    assert sorted(predicted(batches)) == sorted(following(length))
    for batch in batches:
        for tokens, weights in zip(batch["tokens"], batch["weights"], strict=True):
            for t in np.flatnonzero(weights):
                position = following(length).index((int(tokens[t]), int(tokens[t + 1])))
                assert t >= min(context, position)  # number of preceding tokens of the text in the window


def test_the_windows_do_not_depend_on_the_rows_of_a_batch():
    def rows(count):
        batches = list(windows(text(101), block_length=8, context=5, rows=count))
        assert {batch["tokens"].shape for batch in batches} == {(count, 9)}
        filled = [row for batch in batches for row in batch["tokens"] if (row != PAD).any()]
        return np.array(filled)

    np.testing.assert_array_equal(rows(2), rows(32))


@pytest.mark.parametrize("context", [-1, 8, 9])
def test_invalid_contexts(context):
    with pytest.raises(
        UserError, match=r"config\.eval\.context=-?\d must be .* less than config\.data\.block_length=8"
    ):
        windows(text(20), block_length=8, context=context, rows=2)


def test_invalid_block_lengths():
    with pytest.raises(UserError, match=r"config\.data\.block_length=1 must be at least 2"):
        blocks(block_length=1)
    with pytest.raises(UserError, match=r"config\.train\.batch_tokens=32 is less than config.data.block_length=33"):
        blocks(block_length=33)
    assert rows_per_batch(100, 8, 4, "") == 12
    assert rows_per_batch(8, 8, 4, "") == 4
