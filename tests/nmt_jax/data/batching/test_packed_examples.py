"""Pretraining examples in packed rows: the same examples and predictions as in rows of their own."""

import numpy as np
import pytest

from nmt_jax.data.batching.masking import LeftToRight
from nmt_jax.data.batching.packed_examples import PackedExamples, fill_examples
from nmt_jax.data.batching.row_slice import RowSlice
from tests.nmt_jax.data.batching.test_segment_pairs import CLS, SEP, S, batches_of, masking, pairs_of, text, text_of

__all__ = ["text"]


def packed_of(text, corruption=None, **options):
    options = {"max_length": S, "batch_tokens": 16 * S, "share": RowSlice(8), **options}
    return PackedExamples(pairs_of(text, next_sentence=False), corruption or masking(text), **options)


def examples_of(batch):
    """The sorted (ids, positions in the example, labels) of all examples of a batch, packed or not."""
    found = []
    for row, ids in enumerate(batch["ids"]):
        packing = batch["packing"][row] if "packing" in batch else (ids > 0).astype(int)
        predicted = batch["weights"][row] > 0
        positions, labels = batch["positions"][row][predicted], batch["labels"][row][predicted]
        for number in range(1, packing.max() + 1):
            places = np.flatnonzero(packing == number)
            inside = np.isin(positions, places)
            example = ids[places]
            assert example[0] == CLS
            assert example[-1] == SEP
            found.append([*map(tuple, (example, positions[inside] - places[0], labels[inside]))])
    return found


@pytest.mark.parametrize("corruption", [None, LeftToRight()])
def test_an_epoch_has_the_examples_and_predictions_of_rows_of_their_own(text, corruption):
    packed, apart = (make(text, corruption=corruption, seed=5, steps=400) for make in (packed_of, batches_of_plain))
    for epoch in range(2):
        found = [
            sorted(
                example
                for n in range(epoch * batches.batches_per_epoch, (epoch + 1) * batches.batches_per_epoch)
                for example in examples_of(batches[n])
            )
            for batches in (packed, apart)
        ]
        assert found[0] == found[1]
        assert len(found[0]) == len(text)


def batches_of_plain(text, **options):
    return batches_of(text, next_sentence=False, **options)


@pytest.mark.parametrize("process_count", [2, 4])
def test_the_rows_of_all_processes_make_up_the_batch(text, process_count):
    whole, shares = (
        packed_of(text),
        [packed_of(text, share=RowSlice(8, i, process_count)) for i in range(process_count)],
    )
    for n in range(len(whole)):
        parts = [share[n] for share in shares]
        for name, array in whole[n].items():
            np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), array, strict=True)


def test_padding_is_the_share_of_places_without_a_token():
    random = np.random.default_rng(0)
    short = text_of([[int(length)] for length in random.integers(1, 8, 300)])  # documents of one short line
    packed, apart = packed_of(short), batches_of_plain(short)
    for batches in (packed, apart):
        used = np.mean([batches[n]["ids"] > 0 for n in range(batches.batches_per_epoch)])
        assert batches.padding["rows"] == pytest.approx(1 - used)
    assert packed.padding["rows"] < 0.2 < 0.5 < apart.padding["rows"]


def test_empty_rows_are_padding(text):
    batches = packed_of(text)
    empty, batch = fill_examples([], [], [], batches.shapes[0]), batches[0]
    assert empty.keys() == batch.keys()
    for name, array in empty.items():
        assert (array.shape, array.dtype) == (batch[name].shape, batch[name].dtype)
        assert not array.any()


def test_pairs_of_sentences_are_refused(text):
    with pytest.raises(ValueError, match="next sentences cannot be packed"):
        PackedExamples(pairs_of(text), masking(text), max_length=S, batch_tokens=16 * S)
