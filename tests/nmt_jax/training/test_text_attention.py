"""The attention of a text is that of the model, whatever padding the text gets."""

import jax
import numpy as np
import pytest

from nmt_jax import config as configs
from nmt_jax.data.vocabulary.vocab import EOS
from nmt_jax.decoding.sampling import Sampling
from nmt_jax.errors import UserError
from nmt_jax.pretrained import load
from nmt_jax.training.run import train
from nmt_jax.training.text_attention import open_encoder_attention, open_text_attention
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir
from tests.conftest import ROOT
from tests.fixtures import tiny_encoder_folder

TEXT = "der alte Mann schläft ."


def test_a_gpt_attends_to_what_comes_before(gpt_workdir):
    attention = open_text_attention(Workdir(gpt_workdir))
    pieces, weights = attention(TEXT)
    length = len(pieces)
    assert (pieces[0], "".join(pieces[1:]).replace("▁", " ").strip()) == ("</s>", TEXT)
    assert weights.shape == (1, 2, length, length)  # of the smoke config
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
    assert not np.triu(weights, 1).any()
    task, params = open_trained(Workdir(gpt_workdir), "language_model")
    ids = [EOS, *task.encode([TEXT])[:-1]]
    expected = task.model.apply({"params": params}, np.array([ids]))[1]["attention"]
    np.testing.assert_allclose(weights, np.concatenate(expected), atol=1e-5)


@pytest.mark.slow  # trains a model
def test_an_lstmn_attends_to_what_comes_before_and_generates(tmp_path):
    train(f"{ROOT}/configs/rnn_lm.py:smoke=true", tmp_path, {"model.cell": "lstmn", "vocab.algorithm": "unigram"})
    pieces, weights = open_text_attention(Workdir(tmp_path))(TEXT)
    assert weights.shape == (1, 1, len(pieces), len(pieces))
    np.testing.assert_allclose(weights.sum(axis=-1)[..., 1:], 1, atol=1e-5)
    assert not np.triu(weights).any()  # the first step attends to nothing
    task, params = open_trained(Workdir(tmp_path), "language_model")
    keys = jax.random.split(jax.random.key(0), 2)
    together = task.sample(params, ["der", "die alte"], keys, Sampling(), length=5)
    assert together[1:] == task.sample(params, ["die alte"], keys[1:], Sampling(), length=5)


@pytest.mark.slow
def test_a_bert_attends_in_both_directions(pretraining_workdir):
    pieces, weights = open_text_attention(Workdir(pretraining_workdir))(TEXT)
    assert (pieces[0], pieces[-1]) == ("[CLS]", "[SEP]")
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
    check(load(pretraining_workdir), weights, TEXT)


def test_a_folder_with_an_encoder(tmp_path):
    folder = tiny_encoder_folder.write(tmp_path / "encoder", pooler=False)
    pieces, weights = open_encoder_attention(str(folder))("the good film")
    assert weights.shape == (2, 2, len(pieces), len(pieces))
    check(load(folder), weights, "the good film")
    with pytest.raises(UserError, match="the encoder reads at most 48"):
        open_encoder_attention(str(folder))("good " * 60)


def check(pretrained, weights, text):
    """Compare with the weights that the model returns for the text without padding."""
    ids, mask, _ = pretrained.tokenizer([text])
    expected = pretrained.model.apply({"params": pretrained.params}, ids, mask)[1]["attention"]
    np.testing.assert_allclose(weights, np.concatenate(expected), atol=1e-5)
    assert np.triu(weights, 1).any()


def test_models_without_attention_say_what_they_have(language_model_workdir, translator_workdir, word_vectors_workdir):
    for workdir, told in (
        (language_model_workdir, "reads piece by piece into a state"),
        (translator_workdir, "attends from a translation to its source"),
        (word_vectors_workdir, "the same in every sentence"),
    ):
        with pytest.raises(UserError, match=told):
            open_text_attention(Workdir(workdir))


def test_elmo_says_that_it_reads_with_lstms(tmp_path):
    (tmp_path / "config.json").write_text(configs.load(f"{ROOT}/configs/elmo.py:smoke=true").to_json())
    with pytest.raises(UserError, match="ELMo has no attention: each of its layers reads the words with two LSTMs"):
        open_text_attention(Workdir(tmp_path))


def test_a_text_that_is_too_long_is_an_error(gpt_workdir, pretraining_workdir):
    for workdir in (gpt_workdir, pretraining_workdir):
        with pytest.raises(UserError, match=r"the text has [\d,]+ pieces, but the \w+ reads at most"):
            open_text_attention(Workdir(workdir))("der Hund " * 500)
