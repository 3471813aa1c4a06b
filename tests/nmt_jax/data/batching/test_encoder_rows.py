"""Rows for encoders: the template of the tokenizer, truncation, and padding."""

import numpy as np
import pytest
import tokenizers

from nmt_jax.data.batching.batches import Batches, Shape
from nmt_jax.data.batching.encoder_rows import Field, RowCorpus, RowLayout, RowReader
from nmt_jax.data.batching.row_slice import RowSlice
from nmt_jax.errors import UserError
from nmt_jax.pretrained.tokenizer import Tokenizer
from tests.fixtures.encoder_folders import words

TEXTS = ["The café’s ﬁne men.", "x", "", "a\u0301b  c\u200b d\ud800", "[SEP] is a word"]


@pytest.fixture(scope="module")
def tokenizer() -> str:
    return Tokenizer.train(["the cafés fine men is a word b c d x . ’"] * 3, size=120).model


@pytest.mark.parametrize("pair", [False, True])
def test_rows_equal_those_of_the_tokenizer(tokenizer, pair):
    library = tokenizers.Tokenizer.from_str(tokenizer)
    reader = RowReader(tokenizer, 128, segments=True)
    for text in TEXTS[:3]:
        row_texts = (text, TEXTS[0]) if pair else (text,)
        expected = library.encode(*row_texts)
        item, starts = reader.row(*(pieces.ids for pieces in reader.pieces(row_texts)))
        assert item["ids"].tolist() == expected.ids
        assert item["segments"].tolist() == expected.type_ids
        assert starts[0] == 1
        if pair:
            assert starts[1] == expected.type_ids.index(1)


def test_another_template_and_no_segments():
    reader = RowReader(words().to_str(), 16, segments=False)
    item, starts = reader.row(reader.pieces(["a b"])[0].ids)
    assert item["ids"].tolist() == [0, 5, 6, 2]
    assert list(item) == ["ids"]
    assert starts == [1]


def test_spans_are_characters_of_the_text(tokenizer):
    reader = RowReader(tokenizer, 128, segments=True)
    (pieces,) = reader.pieces(["the  CAFÉ \U0001f642 men"])
    found = ["the  CAFÉ \U0001f642 men"[start:end] for start, end in pieces.spans]
    assert "".join(found) == "theCAFÉ\U0001f642men"
    assert found[-1] in "men"


def test_a_lone_surrogate_is_accepted(tokenizer):
    (pieces,) = RowReader(tokenizer, 128, segments=True).pieces(["b\ud800 c"])
    assert pieces.spans[-1].tolist() == [3, 4]


def test_the_longest_text_is_truncated(tokenizer):
    reader = RowReader(tokenizer, 13, segments=True)
    assert (reader.capacity(1), reader.capacity(2)) == (11, 10)
    for lengths, expected in (
        ((3, 4), (3, 4)),
        ((20, 4), (6, 4)),
        ((4, 20), (4, 6)),
        ((20, 30), (5, 5)),
        ((7, 7), (5, 5)),
        ((6, 5), (5, 5)),
        ((5, 6), (5, 5)),
    ):
        fitting = reader.fit([np.arange(length) for length in lengths])
        assert tuple(map(len, fitting)) == expected
        assert all(ids.tolist() == list(range(len(ids))) for ids in fitting)
        assert len(reader.row(*fitting)[0]["ids"]) <= 13
    assert len(reader.fit([np.arange(20)])[0]) == 11
    odd = RowReader(tokenizer, 14, segments=True)
    assert [len(ids) for ids in odd.fit([np.arange(20), np.arange(20)])] == [
        6,
        5,
    ]  # of equally long texts the second is truncated


def test_batches_hold_every_item_and_padding_is_masked():
    items = [{"ids": np.full(n, n, np.int32), "tags": np.full(n, n, np.int32), "label": n} for n in range(1, 12)]
    layout = RowLayout({"tags": Field(np.int32, -1, per_token=True), "label": Field(np.int32)}, segments=False)
    corpus = RowCorpus("corpus", items, 16)
    batches = Batches(corpus, batch_tokens=64, num_buckets=2, share=RowSlice(2), layout=layout)
    seen = []
    for batch in map(batches.__getitem__, range(len(batches))):
        for row in range(len(batch["ids"])):
            length = batch["mask"][row].sum()
            assert (batch["mask"][row] == (np.arange(batch["ids"].shape[1]) < length)).all()
            assert (batch["ids"][row, :length] == batch["label"][row]).all()
            assert (batch["tags"][row, :length] == batch["label"][row]).all()
            assert (batch["tags"][row, length:] == -1).all()
            assert not batch["ids"][row, length:].any()
            seen += [int(batch["label"][row])] if length else []
    assert sorted(seen) == list(range(1, 12))
    masks = [batches[n]["mask"] for n in range(len(batches))]
    assert batches.padding["rows"] == pytest.approx(1 - sum(mask.sum() for mask in masks) / sum(map(np.size, masks)))


def test_texts_encoded_separately_have_one_row_each():
    layout = RowLayout({}, segments=False, num_texts=2)
    batch = layout.arrays([{"ids": (np.array([1, 2]), np.array([3]))}], Shape(2, 4, 1))
    assert batch["ids"].tolist() == [[[1, 2, 0, 0], [3, 0, 0, 0]], [[0] * 4] * 2]
    assert batch["mask"].sum(axis=-1).tolist() == [[2, 1], [0, 0]]


def test_an_empty_corpus_is_an_error():
    with pytest.raises(UserError, match="corpus: no text to train on"):
        RowCorpus("corpus", [], 8)
