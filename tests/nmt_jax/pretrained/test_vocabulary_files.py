"""Tokenizers of folders without tokenizer.json: equal to SentencePiece's own pieces, and to byte-pair merges."""

import io
import json

import numpy as np
import pytest
import sentencepiece

from nmt_jax.data import grammar
from nmt_jax.errors import UserError
from nmt_jax.pretrained.tokenizer import Tokenizer

TEXTS = (
    "the old man sees the house .",
    "  two  spaces,\tand a tab ",
    "Die Kinder schlafen, weil sie müde sind.",
    "ﬁne ½ Ｆｕｌｌ width — dash…",
    "an unknown word: qxzj 東京 🙂",
    "12,5 and 3,000",
    "",
    " ",
)
PIECES = {  # options of SentencePiece's trainer for the layout of each family
    "t5": {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1},
    "rembert": {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": "[CLS],[SEP],[MASK]"},
    "deberta-v2": {
        **{"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3},
        **{"pad_piece": "[PAD]", "bos_piece": "[CLS]", "eos_piece": "[SEP]", "unk_piece": "[UNK]"},
    },
    "xlm-roberta": {"unk_id": 0, "bos_id": 1, "eos_id": 2, "pad_id": -1},
}
FILES = {
    "t5": "spiece.model",
    "rembert": "sentencepiece.model",
    "deberta-v2": "spm.model",
    "xlm-roberta": "sentencepiece.bpe.model",
}


def train(folder, kind, algorithm="unigram"):
    """A SentencePiece model in a folder, and the processor that reads it."""
    sentences = [side for pair in grammar.pairs("train", 300) for side in pair] + [*TEXTS[:4]] * 3
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=model,
        vocab_size=250,
        model_type=algorithm,
        character_coverage=1.0,
        minloglevel=2,
        num_threads=1,
        **PIECES[kind],
    )
    (folder / FILES[kind]).write_bytes(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def rows(tokenizer, texts):
    ids, mask, special = tokenizer(texts)
    return [(row[real], marks[real]) for row, real, marks in zip(ids, mask, special, strict=True)]


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("t5", [], ["</s>"]),
        ("rembert", ["[CLS]"], ["[SEP]"]),
        ("deberta-v2", ["[CLS]"], ["[SEP]"]),
        ("xlm-roberta", ["<s>"], ["</s>"]),
    ],
)
def test_pieces_equal_those_of_sentencepiece(tmp_path, kind, before, after):
    processor, tokenizer = train(tmp_path, kind), Tokenizer.load(tmp_path, kind)
    for text, (ids, special) in zip(TEXTS, rows(tokenizer, TEXTS), strict=True):
        expected = processor.encode(text)
        pieces = tokenizer.pieces(ids)
        assert [*pieces[: len(before)], *pieces[-len(after) :]] == before + after
        inner = ids[len(before) : -len(after)].tolist()
        if kind == "xlm-roberta":  # one more special piece, and another order of the first ones
            expected = [{0: 3, 1: 0, 2: 2}.get(one, one + 1) for one in expected]
        assert inner == expected
        assert special.sum() == len(before + after)
    tokenizer.save(tmp_path, 64)
    assert Tokenizer.load(tmp_path) == tokenizer  # now from tokenizer.json
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert settings["pad_token"] in ("<pad>", "[PAD]")


def test_layouts(tmp_path):
    train(tmp_path, "t5")
    assert len(Tokenizer.load(tmp_path, "t5")) == 350
    assert Tokenizer.load(tmp_path, "t5").id("<extra_id_0>") == 349
    (tmp_path / "tokenizer_config.json").write_text('{"extra_ids": 0}')
    assert len(Tokenizer.load(tmp_path, "mt5")) == 250


def test_albert_folds_case_and_accents(tmp_path):
    processor = train(tmp_path, "rembert")
    (ids, _), (other, _) = rows(Tokenizer.load(tmp_path, "albert"), ["Müde ``Kinder''", "12,5"])
    assert ids[1:-1].tolist() == processor.encode('mude "kinder"')
    assert "2," not in Tokenizer.load(tmp_path, "albert").pieces(other)


@pytest.mark.parametrize(
    ("kind", "algorithm", "words"),
    [
        ("t5", "bpe", r"spiece\.model: not a unigram model"),
        ("camembert", "unigram", r"spiece\.model: how a camembert model uses it is not known; write tokenizer\.json"),
        ("rembert", "unigram", r"spiece\.model: \[CLS\] not among its 250 pieces"),
    ],
)
def test_errors_are_one_line(tmp_path, kind, algorithm, words):
    train(tmp_path, "t5", algorithm)
    with pytest.raises(UserError, match=words) as error:
        Tokenizer.load(tmp_path, kind)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"\x08\x96", b"not a model", bytes(range(256))])
def test_damaged_models(tmp_path, content):
    (tmp_path / "spiece.model").write_bytes(content)
    with pytest.raises(UserError, match=r"not a tokenizer|not among|not a unigram") as error:
        Tokenizer.load(tmp_path, "t5")
    assert "\n" not in str(error.value)


def test_words_of_mpnet(tmp_path):
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "old", "##er", "<mask>"]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n")
    tokenizer = Tokenizer.load(tmp_path, "mpnet")
    (ids, special), (masked, _) = rows(tokenizer, ["The older x", "the <mask>"])
    assert tokenizer.pieces(ids) == ["<s>", "the", "old", "##er", "[UNK]", "</s>"]
    assert special.tolist() == [True, False, False, False, False, True]
    assert tokenizer.pieces(masked) == ["<s>", "the", "<mask>", "</s>"]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces[3:]) + "\n")
    with pytest.raises(UserError, match=r"<s>, <pad>, </s> not among its 9 pieces: not a vocabulary of mpnet"):
        Tokenizer.load(tmp_path, "mpnet")


def test_byte_pairs(tmp_path):
    letters = ["Ġ", "a", "b", "c", "Ã", "¼"]
    vocab = {piece: number for number, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", *letters, "ab", "Ġab"])}
    (tmp_path / "vocab.json").write_text(json.dumps({**vocab, "<mask>": len(vocab)}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\nĠ ab\n")
    tokenizer = Tokenizer.load(tmp_path, "bart")
    found = [tokenizer.pieces(ids) for ids, _ in rows(tokenizer, ["abc ab", "ü", "a <mask>", ""])]
    assert found == [
        ["<s>", "ab", "c", "Ġab", "</s>"],
        ["<s>", "Ã", "¼", "</s>"],
        ["<s>", "a", "<mask>", "</s>"],
        ["<s>", "</s>"],
    ]
    assert np.array([special.sum() for _, special in rows(tokenizer, ["abc ab", ""])]).tolist() == [2, 2]
    spaced = tokenizer.with_space()
    found = [spaced.pieces(ids) for ids, _ in rows(spaced, ["ab c", " ab", ""])]
    assert found == [["<s>", "Ġab", "Ġ", "c", "</s>"], ["<s>", "Ġab", "</s>"], ["<s>", "</s>"]]
    assert spaced.with_space() == spaced
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0}))
    with pytest.raises(UserError, match=r"vocab\.json: <s>, <pad>, </s>, <unk> not among its 1 pieces"):
        Tokenizer.load(tmp_path, "bart")
    (tmp_path / "vocab.json").write_text("{")
    with pytest.raises(UserError, match="not a tokenizer"):
        Tokenizer.load(tmp_path, "bart")
