"""Tokenizers equal the reference's, cut nothing off, and survive a folder."""

import json

import numpy as np
import pytest

from nmt_jax.pretrained.tokenizer import Tokenizer
from tests.pretrained.folders import WORDPIECES, words


@pytest.fixture
def letters(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(WORDPIECES) + "\n")
    return Tokenizer.load(tmp_path)


def test_word_pieces_equal_the_reference(shared, tmp_path):
    """The golden rows of several languages, by transformers' BertTokenizer."""
    vocab, golden = shared / "data" / "bert_vocab" / "vocab.txt", shared / "golden" / "bertscore.json"
    if not (vocab.exists() and golden.exists()):
        pytest.skip(f"no {vocab} or no {golden}")
    (tmp_path / "vocab.txt").write_bytes(vocab.read_bytes())
    tokenizer, golden = Tokenizer.load(tmp_path), json.loads(golden.read_text())
    assert len(tokenizer) == 30522
    count = 0
    for case in golden["cases"]:
        if case["level"] != "tokens":
            continue
        given = golden["inputs"][case["input"]]
        for number, expected in enumerate(case["expected"]):
            texts = [given["hypotheses"][number], given["references"][number][0]]
            ids, mask, special = tokenizer(texts)
            for row, side in enumerate(("hyp", "ref")):
                pieces = tokenizer.pieces(ids[row][mask[row]])
                assert pieces == ["[CLS]", *expected[side], "[SEP]"]
                assert special[row].nonzero()[0].tolist() == [0, len(pieces) - 1]
                count += 1
    assert count > 80


def test_settings_of_the_folder_count(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join([*WORDPIECES, "A"]) + "\n")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    tokenizer = Tokenizer.load(tmp_path)
    assert tokenizer.pieces(tokenizer(["A a"])[0][0]) == ["[CLS]", "A", "a", "[SEP]"]


def test_nothing_is_cut_off_or_padded_for_good(tmp_path):
    tokenizer = words()
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=10, pad_id=1, pad_token="<pad>")
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    ids, mask, special = Tokenizer.load(tmp_path)(["a b c d e f", "g", ""])
    assert ids.tolist() == [[0, 5, 6, 7, 8, 9, 10, 2], [0, 11, 2, 0, 0, 0, 0, 0], [0, 2, 0, 0, 0, 0, 0, 0]]
    assert mask.sum(axis=1).tolist() == [8, 3, 2]
    assert special.sum(axis=1).tolist() == [2, 2, 2]
    assert not (special & ~mask).any()


def test_a_special_piece_that_is_spelt_out_is_text(letters):
    ids, _, special = letters(["a [SEP] b"])
    assert letters.pieces(ids[0]) == ["[CLS]", "a", "[SEP]", "b", "[SEP]"]
    assert special[0].tolist() == [True, False, False, False, True]


def test_any_text_has_tokens(letters):
    ids, mask, _ = letters(["\ud800 a", "\x00", "a\u2028b", "a" * 1000])
    assert mask[:, :2].all()
    assert (ids < len(letters)).all()
    assert letters([])[0].shape == (0, 0)


def test_unknown_ids_spell_nothing(letters):
    assert letters.pieces([5, 99]) == ["a", ""]
    assert (letters.id("a"), letters.id("zz")) == (5, None)


def test_a_folder_keeps_it(tmp_path, letters):
    letters.save(tmp_path, 512)
    again = Tokenizer.load(tmp_path)
    assert again == letters
    assert hash(again) == hash(letters)
    for one, other in zip(again(["a b", "abc"]), letters(["a b", "abc"]), strict=True):
        np.testing.assert_array_equal(one, other)
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert (settings["model_max_length"], settings["pad_token"]) == (512, "[PAD]")
