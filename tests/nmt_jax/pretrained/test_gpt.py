"""GPT and GPT-2 folders: equal to the reference at every layer, and damaged ones are named (gpt_golden.py)."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from nmt_jax.errors import UserError
from nmt_jax.models.gpt import Model
from nmt_jax.pretrained.gpt import is_gpt, load_gpt, save_gpt
from nmt_jax.pretrained.huggingface import Pretrained
from nmt_jax.pretrained.piece_vocabulary import PieceVocabulary
from nmt_jax.pretrained.tokenizer import Tokenizer
from tests.conftest import ROOT
from tests.fixtures import gpt_folders
from tests.fixtures.parameters import draw_parameters

GOLDEN = json.loads((ROOT / "tests/fixtures/gpt_golden.json").read_text())


@pytest.fixture(scope="module", params=["gpt2", "openai-gpt"])
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def folder(kind, tmp_path_factory):
    folder = gpt_folders.write_folder(tmp_path_factory.mktemp("gpt"), GOLDEN[kind])
    Tokenizer.load(folder, "gpt2").save(folder, 40)  # that of openai-gpt is not one of bytes, so it needs this file
    return folder


def test_every_layer_and_the_logits_equal_the_reference(kind, folder):
    assert is_gpt(folder)
    found, golden = load_gpt(folder), GOLDEN[kind]
    ids = np.array(golden["ids"])
    (hidden, _), (logits, _) = jax.jit(
        lambda params: (
            found.model.apply({"params": params}, ids, ids >= 0, None, False, method="states"),
            found.model.apply({"params": params}, ids),
        )
    )(found.params)
    expected = np.array(golden["hidden"])
    np.testing.assert_allclose(np.stack(hidden)[..., : expected.shape[-1]], expected, atol=2e-5)
    expected = np.array(golden["logits"])
    np.testing.assert_allclose(logits[..., : expected.shape[-1]], expected, atol=5e-5)


def test_files_that_do_not_belong_together_are_named(kind, folder, tmp_path):
    for changes, line in (
        ({"n_layer": 1}, r"transformer\.h\.1\.attn\.c_attn\.bias and 11 more do not belong"),
        ({"n_layer": 3}, r"no tensor transformer\.h\.2"),
        ({"n_embd": 8}, "has shape"),
        ({"vocab_size": 200}, "the tokenizer has 267 pieces, but the weights have 200"),
        ({"n_head": 3}, "not divisible by num_heads=3"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings False is not supported"),
    ):
        for file in folder.iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        (tmp_path / "config.json").write_text(json.dumps(GOLDEN[kind]["config"] | changes))
        with pytest.raises(UserError, match=line):
            load_gpt(tmp_path)


@pytest.mark.parametrize("scaled", [True, False])
def test_a_model_of_ours_is_written_as_a_gpt2(scaled, tmp_path):
    gpt_folders.write_tokenizer(tmp_path)
    tokenizer = Tokenizer.load(tmp_path, "gpt2")
    sizes = {"num_layers": 2, "d_model": 8, "d_ff": 12, "num_heads": 2, "max_positions": 9, "epsilon": 1e-4}
    model = Model(len(tokenizer), **sizes, norm="pre", scale_embeddings=scaled)
    ids = np.array([[3, 5, 7, 11]])
    params = jax.device_get(draw_parameters(model.init, ids)["params"])
    save_gpt(Pretrained("gpt", model, params, tokenizer, 9), tmp_path)
    found = load_gpt(tmp_path)
    assert (found.model.epsilon, found.max_length) == (1e-4, 9)
    logits = [
        jax.jit(one.apply)({"params": own}, ids)[0] for one, own in ((model, params), (found.model, found.params))
    ]
    np.testing.assert_allclose(*logits, atol=1e-5)
    with pytest.raises(UserError, match="a GPT-2 cannot have norm='post'"):
        save_gpt(dataclasses.replace(found, model=model.clone(norm="post")), tmp_path)


def test_the_pieces_of_gpt2_are_those_of_the_reference(tmp_path):
    gpt_folders.write_tokenizer(tmp_path)
    tokenizer = Tokenizer.load(tmp_path, "gpt2")
    assert tokenizer.encode(list(GOLDEN["texts"])) == list(GOLDEN["texts"].values())
    vocab = PieceVocabulary(tokenizer, 270, "here")  # three rows in reserve
    assert vocab.pieces([0, vocab.end, 269]) == ["<|endoftext|>", "Ċ", ""]
    for text, ids in GOLDEN["texts"].items():
        ours = vocab.encode(text)
        assert vocab.order[ours].tolist() == ids
        assert 0 not in ours
        assert vocab.decode([0, *ours]) == text.split("\n")[0]
    assert vocab.decode([*vocab.encode("the"), vocab.end, *vocab.encode("man")]) == "the"


def test_a_tokenizer_without_line_breaks_is_refused():
    with pytest.raises(UserError, match="here: the tokenizer has no piece"):
        PieceVocabulary(Tokenizer.train(["the old man"], size=40), 40, "here")
