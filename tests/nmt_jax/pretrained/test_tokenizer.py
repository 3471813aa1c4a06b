"""Tokenizers: equal to the reference, no truncation, saving, training."""

import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest

from nmt_jax.data import grammar
from nmt_jax.errors import UserError
from nmt_jax.pretrained.tokenizer import FIRST, Tokenizer
from tests.conftest import ROOT
from tests.fixtures.encoder_folders import WORDPIECES, words


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


def test_settings_in_the_folder_are_used(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join([*WORDPIECES, "A"]) + "\n")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    tokenizer = Tokenizer.load(tmp_path)
    assert tokenizer.pieces(tokenizer(["A a"])[0][0]) == ["[CLS]", "A", "a", "[SEP]"]


def test_stored_truncation_and_padding_are_ignored(tmp_path):
    tokenizer = words()
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=10, pad_id=1, pad_token="<pad>")
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    ids, mask, special = Tokenizer.load(tmp_path)(["a b c d e f", "g", ""])
    assert ids.tolist() == [[0, 5, 6, 7, 8, 9, 10, 2], [0, 11, 2, 0, 0, 0, 0, 0], [0, 2, 0, 0, 0, 0, 0, 0]]
    assert mask.sum(axis=1).tolist() == [8, 3, 2]
    assert special.sum(axis=1).tolist() == [2, 2, 2]
    assert not (special & ~mask).any()


def test_special_pieces_in_the_text_are_text(letters):
    ids, _, special = letters(["a [SEP] b"])
    assert letters.pieces(ids[0]) == ["[CLS]", "a", "[SEP]", "b", "[SEP]"]
    assert special[0].tolist() == [True, False, False, False, True]


def test_any_text_has_tokens(letters):
    ids, mask, _ = letters(["\ud800 a", "\x00", "a\u2028b", "a" * 1000])
    assert mask[:, :2].all()
    assert (ids < len(letters)).all()
    assert letters([])[0].shape == (0, 0)


def test_pieces_of_unknown_ids_are_empty(letters):
    assert letters.pieces([5, 99]) == ["a", ""]
    assert (letters.id("a"), letters.id("zz")) == (5, None)


def test_save_and_load(tmp_path, letters):
    letters.save(tmp_path, 512)
    again = Tokenizer.load(tmp_path)
    assert again == letters
    assert hash(again) == hash(letters)
    for one, other in zip(again(["a b", "abc"]), letters(["a b", "abc"]), strict=True):
        np.testing.assert_array_equal(one, other)
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert (settings["model_max_length"], settings["pad_token"]) == (512, "[PAD]")


def sentences():
    return [side for pair in grammar.pairs("train", 300) for side in pair]


def digests():
    """A digest of the trained tokenizer of each algorithm."""
    tokenizers = (Tokenizer.train(sentences(), size=300, algorithm=name) for name in ("wordpiece", "unigram"))
    return [hashlib.sha256(tokenizer.model.encode()).hexdigest() for tokenizer in tokenizers]


@pytest.mark.slow
def test_training_is_the_same_in_every_process():
    code = "from tests.nmt_jax.pretrained.test_tokenizer import digests; print(*digests())"
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert printed.split() == digests()


@pytest.mark.parametrize("algorithm", ["wordpiece", "unigram"])
def test_a_trained_tokenizer_splits_text_into_its_pieces(algorithm, tmp_path):
    tokenizer = Tokenizer.train(sentences(), size=300, algorithm=algorithm)
    assert len(tokenizer) == 300
    assert tokenizer.pieces(range(5)) == list(FIRST)
    starts = tokenizer.starts()
    for text in ("the old man sees the house .", "Die Kinder schlafen , weil sie müde sind ."):
        (ids,) = tokenizer.encode([text])
        pieces = [piece.removeprefix("##").replace("\u2581", "") for piece in tokenizer.pieces(ids)]
        assert "".join(pieces) == text.lower().replace(" ", "").replace("ü", "u" if algorithm == "wordpiece" else "ü")
        assert starts[ids].sum() == len(text.split())
        row, _, special = tokenizer([text])
        assert tokenizer.pieces(row[0])[:: len(ids) + 1] == ["[CLS]", "[SEP]"]
        assert special[0].nonzero()[0].tolist() == [0, len(ids) + 1]
    tokenizer.save(tmp_path, 32)
    assert Tokenizer.load(tmp_path) == tokenizer


def test_training_normalizes_lines_of_any_length():
    line = "Überall sind Wölfe ! " * 400
    assert len(line.encode()) > 4192  # SentencePiece ignores longer lines
    tokenizer = Tokenizer.train([line], size=60)
    assert tokenizer.pieces(tokenizer.encode(["ÜBERALL Wölfe"])[0]) == ["uberall", "wolfe"]
    cased = Tokenizer.train([line], size=60, lower_case=False)
    assert cased.pieces(cased.encode(["Überall Wölfe"])[0]) == ["Überall", "Wölfe"]


def test_invalid_training_settings_raise_errors():
    with pytest.raises(UserError, match="'bpe' is not one of wordpiece, unigram"):
        Tokenizer.train(["a"], size=100, algorithm="bpe")
    for algorithm in ("wordpiece", "unigram"):
        with pytest.raises(UserError, match="no usable text"):
            Tokenizer.train(["", " "], size=300, algorithm=algorithm)
        with pytest.raises(
            UserError, match=r"config\.vocab\.size.* too (few|small) for the alphabet.*: .* \d+ or more"
        ):
            Tokenizer.train(sentences(), size=20, algorithm=algorithm)


@pytest.mark.parametrize("algorithm", ["wordpiece", "unigram"])
def test_word_numbers_count_words_between_blanks(algorithm):
    """Of punctuation inside of words, several blanks, and a character that becomes one piece with others or none."""
    tokenizer = Tokenizer.train(["the dog's house is near , well"] * 3, size=60, algorithm=algorithm)
    texts = ["the  dog's house", " near\u00a0well , ", "", "\ud800 the"]
    numbers = tokenizer.word_numbers(texts)
    ids, mask, special = tokenizer(texts)
    assert [len(one) for one in numbers] == mask.sum(axis=1).tolist()
    assert [sorted({*one.tolist()} - {-1}) for one in numbers] == [[0, 1, 2], [0, 1, 2], [], [0, 1]]
    for row, one in enumerate(numbers):
        assert (one[special[row][mask[row]]] == -1).all()
        words = texts[row].encode("utf-8", "replace").decode().split()
        for piece, word in zip(tokenizer.pieces(ids[row][mask[row]]), one.tolist(), strict=True):
            assert word < 0 or piece == "[UNK]" or piece.strip("▁#") in words[word]
