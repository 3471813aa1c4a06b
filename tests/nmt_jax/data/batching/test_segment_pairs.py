"""Pretraining rows: the text before and after the cut, and batches as pure functions of their number."""

import numpy as np
import pytest

from nmt_jax.data.batching.masking import LeftToRight, Masking
from nmt_jax.data.batching.row_slice import RowSlice
from nmt_jax.data.batching.segment_pairs import NEXT, RANDOM, SINGLE, PairBatches, SegmentPairs
from nmt_jax.data.prepared.segments import Segments
from nmt_jax.errors import UserError

CLS, SEP, MASK, ROOM, LONGEST = 2, 3, 4, 20, 10
S = ROOM + 3


def text_of(documents):
    """A text of documents, lists of the lengths of their segments; tokens are numbered from 5 on."""
    ends, examples, firsts, filled = [], [], [], 0
    for document in documents:
        firsts.append(len(examples))
        filled = ROOM + 1
        for length in document:
            if filled + length > ROOM:
                examples.append(len(ends))
                filled = 0
            filled += length
            ends.append((ends[-1] if ends else 0) + length)
    ids = np.arange(5, 5 + ends[-1], dtype=np.int32)
    bounds = (np.array(values) for values in (ends, [*examples, len(ends)], [*firsts, len(examples)]))
    return Segments(ids, *bounds, LONGEST, ROOM, "a text")


@pytest.fixture(scope="module")
def text():
    random = np.random.default_rng(0)
    return text_of([random.integers(1, LONGEST + 1, random.integers(1, 12)).tolist() for _ in range(30)])


def pairs_of(text, next_sentence=True):
    return SegmentPairs(text, next_sentence=next_sentence, cls=CLS, sep=SEP)


def masking(text):
    size = int(text.ids[-1]) + 1
    return Masking(0.15, 0.8, 0.1, False, MASK, np.arange(size) < 5, np.ones(size, bool))


def batches_of(text, next_sentence=True, corruption=None, **options):
    options = {"max_length": S, "batch_tokens": 16 * S, "share": RowSlice(8), **options}
    return PairBatches(pairs_of(text, next_sentence), corruption or masking(text), **options)


def document_of(text, token):
    segment = np.searchsorted(text.ends, token - 5, "right")
    example = np.searchsorted(text.examples, segment, "right") - 1
    return np.searchsorted(text.documents, example, "right") - 1


def test_second_sentences_follow_or_are_of_another_document(text):
    pairs, ends = pairs_of(text), set((text.ends + 5).tolist())
    labels, lengths = [], {NEXT: [], RANDOM: []}
    for number in range(len(pairs)):
        for seed in range(20):
            ids, first, label = pairs.draw(number, np.random.default_rng((number, seed)))
            labels.append(label)
            assert len(ids) <= S
            assert ids[0] == CLS
            assert ids[-1] == ids[first - 1] == SEP
            one, two = ids[1 : first - 1], ids[first:-1]
            for part in (one, two):
                assert (np.diff(part) == 1).all()
                assert not len(part) or part[-1] + 1 in ends  # segments are never cut
            if label == SINGLE:
                assert not len(two)
                continue
            lengths[label].append(len(ids))
            assert len(one)
            assert len(two)
            if label == NEXT:
                assert two[0] == one[-1] + 1
            else:
                assert document_of(text, two[0]) != document_of(text, one[0])
                assert document_of(text, two[0]) == document_of(text, two[-1])
    labels = np.array(labels)
    paired = labels[labels != SINGLE]
    assert abs((paired == NEXT).mean() - 0.5) < 4 * 0.5 / np.sqrt(len(paired))
    # Lengths do not distinguish them either, except for the short examples at the ends of documents.
    assert abs(np.mean(lengths[NEXT]) - np.mean(lengths[RANDOM])) < 1.5
    alone = sum(last - first == 1 for first, last in zip(text.examples, text.examples[1:], strict=False))
    assert (labels == SINGLE).sum() == 20 * alone > 0


def test_any_other_document_can_be_second_and_any_cut_is_possible(text):
    pairs = pairs_of(text)
    number = int(np.argmax(np.diff(text.examples)))
    drawn = [pairs.draw(number, np.random.default_rng(seed)) for seed in range(2000)]
    seen = {int(document_of(text, row.ids[row.first])) for row in drawn if row.second == RANDOM}
    assert len(seen) == len(text.documents) - 2
    assert len({row.first for row in drawn}) == np.count_nonzero(
        text.ends[text.examples[number] : text.examples[number + 1] - 1]
        - (text.ends[text.examples[number] - 1] if text.examples[number] else 0)
        <= ROOM - LONGEST
    )


def test_without_next_sentences_a_row_is_an_example(text):
    pairs = pairs_of(text, next_sentence=False)
    rows = [pairs.draw(number, np.random.default_rng(0)) for number in range(len(pairs))]
    np.testing.assert_array_equal(np.concatenate([row.ids[1:-1] for row in rows]), text.ids)
    assert {row.second for row in rows} == {SINGLE}
    batch = batches_of(text, next_sentence=False)[0]
    assert "next_sentence" not in batch
    assert (batch["segments"] == 0).all()


def test_each_epoch_corrupts_every_example_once_and_anew(text):
    batches = batches_of(text, next_sentence=False, steps=1000)
    epochs = []
    for epoch in range(2):
        numbers = range(epoch * batches.batches_per_epoch, (epoch + 1) * batches.batches_per_epoch)
        rows = {}
        for batch in map(batches.__getitem__, numbers):
            for ids, positions, labels, weights in zip(
                *(batch[name] for name in ("ids", "positions", "labels", "weights")), strict=True
            ):
                predicted = positions[weights > 0]
                original = ids.copy()
                original[predicted] = labels[weights > 0]
                if len(predicted):
                    assert tuple(original) not in rows
                    rows[tuple(original)] = set(predicted.tolist())
        epochs.append(rows)
    assert epochs[0].keys() == epochs[1].keys()
    assert len(epochs[0]) == len(text)
    assert sum(epochs[0][row] != epochs[1][row] for row in epochs[0]) > len(text) / 2


def test_a_batch_depends_only_on_its_number(text):
    one, other = batches_of(text, steps=50), batches_of(text, steps=90)
    for number in (41, 3, 41, 0):
        a, b = one[number], other[number]
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])
    different = batches_of(text, steps=50, seed=1)[0]
    assert (different["ids"] != one[0]["ids"]).any()


def test_processes_share_the_rows(text):
    whole = batches_of(text, steps=9)
    shares = [batches_of(text, steps=9, share=RowSlice(8, index, 4)) for index in range(4)]
    for number in range(9):
        for name, array in whole[number].items():
            np.testing.assert_array_equal(array, np.concatenate([share[number][name] for share in shares]))


def test_shapes_are_static_and_padding_has_no_weight(text):
    batches = batches_of(text)
    assert batches.shapes == [(16, S)]
    for number in range(len(batches)):
        batch = batches[number]
        assert {name: array.shape for name, array in batch.items()} == {
            **dict.fromkeys(("ids", "segments"), (16, S)),
            **dict.fromkeys(("positions", "labels", "weights"), (16, 3)),
            "next_sentence": (16,),
        }
        assert (batch["labels"][batch["weights"] == 0] == 0).all()
        assert (batch["segments"][batch["ids"] == 0] == 0).all()
        assert (batch["next_sentence"][(batch["ids"] == 0).all(axis=1)] == SINGLE).all()
    with pytest.raises(IndexError):
        batches[len(batches)]


def test_left_to_right_rows_predict_every_next_token(text):
    batch = batches_of(text, next_sentence=False, corruption=LeftToRight())[0]
    for ids, labels, weights in zip(batch["ids"], batch["labels"], batch["weights"], strict=True):
        np.testing.assert_array_equal(labels[weights > 0], ids[1:][ids[1:] > 0])


def test_a_text_without_next_sentences_is_refused():
    with pytest.raises(UserError, match=r"a text: no document has two lines.*model\.next_sentence=false"):
        pairs_of(text_of([[5], [3], [8]]))
    with pytest.raises(UserError, match=r"a text: only one document.*blank line"):
        pairs_of(text_of([[5, 3, 8]]))
    assert len(pairs_of(text_of([[5], [3], [8]]), next_sentence=False)) == 3
