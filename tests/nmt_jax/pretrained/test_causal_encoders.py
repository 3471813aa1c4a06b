"""GPT as an encoder: its rows, its pieces, and places that are none."""

import json

import numpy as np
import pytest

from nmt_jax.data.batching.encoder_rows import RowReader
from nmt_jax.data.vocabulary.vocab import Vocab
from nmt_jax.errors import UserError
from nmt_jax.pretrained.causal_encoders import load_causal
from nmt_jax.pretrained.gpt import load_gpt
from nmt_jax.pretrained.tokenizer import Tokenizer
from nmt_jax.pretrained.vocabulary_files import of_sentencepiece
from tests.conftest import ROOT
from tests.fixtures import gpt_folders

GOLDEN = json.loads((ROOT / "tests/fixtures/gpt_golden.json").read_text())
LINES = ["der alte Mann schläft nicht .", "sie sieht das Haus , das alte Haus .", "der Mann sieht sie nicht ."] * 9
TEXTS = ["der  alte Mann", " Haus das sie", "schlafen Häuser?", "日本 der", "", "das das das", "ein <unk> sieht"]


@pytest.mark.parametrize("algorithm", ["unigram", "bpe", "word"])
@pytest.mark.parametrize("byte_fallback", [True, False])
def test_the_tokenizer_of_a_vocabulary_gives_its_ids(algorithm, byte_fallback):
    size = 20 if algorithm == "word" else 60 + 256 * byte_fallback
    vocab = Vocab.train(LINES, size=size, algorithm=algorithm, byte_fallback=byte_fallback)
    tokenizer = Tokenizer(of_sentencepiece(vocab.model, "here").to_str())
    assert tokenizer.encode([*LINES, *TEXTS]) == [vocab.encode(text) for text in [*LINES, *TEXTS]]


def test_rows_of_gpt2_have_a_start_a_delimiter_and_an_end(tmp_path):
    folder = gpt_folders.write_folder(tmp_path, GOLDEN["gpt2"])
    plain, found = load_gpt(folder), load_causal(folder)
    reader = RowReader(found.tokenizer.model, 12, segments=False)
    one, two = (piece.ids for piece in reader.pieces(["the old", "a man"]))
    pieces = found.tokenizer.pieces(reader.row(one, two)[0]["ids"])
    assert [pieces[0], pieces[1 + len(one)], pieces[-1]] == ["<|endoftext|>", "<delimiter>", "<classify>"]
    assert found.tokenizer.pieces(reader.row(one)[0]["ids"])[-1] == "<classify>"
    assert one.tolist() == plain.tokenizer.encode(["the old"])[0]
    tables = [one.params["embedding"]["table"] for one in (plain, found)]
    assert len(tables[1]) == found.model.vocab_size == len(tables[0]) + 2
    np.testing.assert_array_equal(tables[1][:-2], tables[0])
    assert tables[1][-2:].std() == pytest.approx(tables[0].std(), rel=0.5)


def test_other_places_are_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(UserError, match="neither a GPT or GPT-2 in Hugging Face's format nor a workdir"):
        load_causal(tmp_path)
