"""Lines in packed rows: every token predicted once from its own line, long lines in parts."""

import numpy as np
import pytest

from nmt_jax.data.batching.packed_lines import PackedLines
from nmt_jax.data.batching.row_slice import RowSlice
from nmt_jax.data.vocabulary.vocab import EOS
from nmt_jax.errors import UserError

T = 10
RANDOM = np.random.default_rng(0)
LINES = [np.append(100 * line + np.arange(length), EOS) for line, length in enumerate(RANDOM.integers(0, 35, 60), 1)]
TEXT = np.concatenate(LINES).astype(np.int32)


def make(**changes):
    return PackedLines(TEXT, **({"block_length": T, "batch_tokens": 80, "share": RowSlice(4), "seed": 3} | changes))


def parts_of(batch):
    """(inputs, labels, weights) of each part of a line."""
    for row in range(len(batch["labels"])):
        for number in range(1, batch["packing"][row].max() + 1):
            yield tuple(batch[name][row][batch["packing"][row] == number] for name in ("inputs", "labels", "weights"))


@pytest.mark.parametrize("context", [0, 3])
def test_an_epoch_predicts_every_token_once_from_the_token_before_it(context):
    batches = make(context=context, steps=1000)
    before = {}  # of each token that is no EOS, in its line
    for line in LINES:
        before |= dict(zip(line.tolist(), [EOS, *line[:-1].tolist()], strict=True))
    for epoch in range(2):
        found = []
        for n in range(epoch * batches.batches_per_epoch, (epoch + 1) * batches.batches_per_epoch):
            for inputs, labels, weights in parts_of(batches[n]):
                assert (inputs[1:] == labels[:-1]).all()
                assert inputs[0] == EOS or weights[:context].sum() == 0
                assert labels[0] == EOS or inputs[0] == before[labels[0]]
                found += labels[weights > 0].tolist()
        assert sorted(found) == sorted(TEXT.tolist())


def test_every_prediction_sees_its_context_in_the_line():
    batches = make(context=4)
    for n in range(len(batches)):
        for inputs, labels, weights in parts_of(batches[n]):
            if inputs[0] != EOS:
                assert len(labels) > 4
                np.testing.assert_array_equal(weights, np.arange(len(labels)) >= 4)


@pytest.mark.parametrize("process_count", [2, 4])
def test_the_rows_of_all_processes_make_up_the_batch(process_count):
    whole, shares = make(), [make(share=RowSlice(4, i, process_count)) for i in range(process_count)]
    for n in range(len(whole)):
        parts = [share[n] for share in shares]
        for name, array in whole[n].items():
            np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), array, strict=True)


def test_padding_is_the_share_of_places_without_a_token():
    batches = make()
    used = np.mean([batches[n]["packing"] > 0 for n in range(len(batches))])
    assert batches.padding["blocks"] == pytest.approx(1 - used)
    assert batches.padding["blocks"] < 0.1


def test_settings_that_leave_nothing_to_predict_are_errors():
    with pytest.raises(UserError, match=r"eval\.context=10 must be .* less than config\.data\.block_length=10"):
        make(context=10)
    with pytest.raises(UserError, match=r"eval\.batch_tokens = 5 is less than the 10 tokens of a packed row"):
        make(batch_tokens=5, key="config.eval.batch_tokens")


def test_a_text_that_ends_within_a_line():
    batches = PackedLines(TEXT[:3], block_length=T, batch_tokens=80)
    assert batches[0]["labels"][0, :3].tolist() == TEXT[:3].tolist()
    assert batches[0]["weights"].sum() == 3
