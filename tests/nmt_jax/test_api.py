"""Trained models in Python give what the commands give."""

import json
import shutil

import numpy as np
import pytest

import nmt_jax
from nmt_jax.commands import classify, perplexity, translate
from nmt_jax.errors import UserError

LINES = ["the old man sleeps .", "", "she sees the dog ."]


def test_translations_are_those_of_the_command(translator_workdir):
    model = nmt_jax.load(translator_workdir)
    expected = [found[0] for found in translate.run(translator_workdir, LINES)]
    assert model.translate(LINES) == [one.text for one in expected]
    two = model.n_best(LINES[:1], n_best=2, beam_size=4)[0]
    assert len(two) == 2
    assert two[0].score >= two[1].score


def test_a_workdir_of_an_older_version_lacks_keys(translator_workdir, tmp_path):
    workdir = tmp_path / "w"
    shutil.copytree(translator_workdir, workdir)
    config = json.loads((workdir / "config.json").read_text())
    del config["decode"]["dtype"]
    (workdir / "config.json").write_text(json.dumps(config))
    assert nmt_jax.load(workdir).translate(LINES) == nmt_jax.load(translator_workdir).translate(LINES)


def test_scores_and_attention_of_translations(translator_workdir, tmp_path):
    model, translations = nmt_jax.load(translator_workdir), ["der alte Mann schläft .", "", "sie sieht den Hund ."]
    given = tmp_path / "given"
    given.write_text("".join(f"{line}\n" for line in translations))
    expected = [found[0].score for found in translate.run(translator_workdir, LINES, given=str(given))]
    np.testing.assert_allclose(model.score(LINES, translations), expected, rtol=1e-6)
    found = model.attention(LINES[0], translations[0])
    assert found.attention.shape == (len(found.pieces), len(found.source_pieces))
    np.testing.assert_allclose(found.attention.sum(axis=1), 1, atol=1e-5)
    assert model.attention(LINES[0]).pieces[-1] == model.attention(LINES[0], translations[0]).pieces[-1]


def test_a_language_model(language_model_workdir):
    model = nmt_jax.load(language_model_workdir)
    expected = perplexity.run(language_model_workdir, LINES)
    assert model.perplexity(LINES) == pytest.approx(expected["perplexity"], rel=1e-6)
    scores = model.score(LINES)
    assert scores.shape == (3,)
    assert (scores < 0).all()
    assert scores[0] < scores[1]  # a longer text


def test_a_classifier(classifier_workdir):
    model = nmt_jax.load(classifier_workdir)
    labels, predictions = classify.run(classifier_workdir, LINES)
    rows = list(predictions)
    assert model.labels == labels
    assert model.classify(LINES) == [row.label for row in rows]
    np.testing.assert_allclose(model.probabilities(LINES[:1]), [rows[0].probabilities], atol=1e-6)


def test_an_encoder(pretraining_workdir):
    model = nmt_jax.load(pretraining_workdir)
    vectors = model.embed(LINES[::2])
    assert vectors.shape == (2, vectors.shape[1])
    np.testing.assert_allclose(model.embed(LINES[2:]), vectors[1:], atol=1e-6)
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-3


def test_mistakes_are_explained(translator_workdir, language_model_workdir, word_vectors_workdir, tmp_path):
    model = nmt_jax.load(language_model_workdir)
    with pytest.raises(AttributeError, match="a LanguageModel has no 'translate'; it has score, perplexity"):
        model.translate(LINES)
    assert repr(model).startswith("LanguageModel(")
    with pytest.raises(TypeError, match=r"such as \[text\]"):
        nmt_jax.load(translator_workdir).translate(LINES[0])
    with pytest.raises(UserError, match=r"config\.task=word_vectors cannot be loaded here"):
        nmt_jax.load(word_vectors_workdir)
    with pytest.raises(UserError, match="not a workdir"):
        nmt_jax.load(tmp_path)
    with pytest.raises(UserError, match="beam_size"):
        nmt_jax.load(translator_workdir).translate(LINES, beam_size=0)
