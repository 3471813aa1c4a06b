"""Trained models in Python give what the commands give."""

import json
import shutil

import numpy as np
import pytest

import nmt_jax
from nmt_jax.commands import classify, generate, perplexity, translate
from nmt_jax.decoding.sampling import Sampling
from nmt_jax.errors import UserError
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["language_model", "gpt"])
def test_what_comes_next_and_what_is_generated(kind, request):
    workdir = request.getfixturevalue(f"{kind}_workdir")
    model = nmt_jax.load(workdir)
    expected = generate.run(workdir, LINES[:2], sampling=Sampling(temperature=0.7, seed=3), length=7)
    assert model.generate(LINES[:2], length=7, temperature=0.7, seed=3) == list(expected)
    best = model.next_pieces("the old", n=5)
    assert [one.probability for one in best] == sorted((one.probability for one in best), reverse=True)
    everything = model.next_pieces("the old", n=10**6)
    assert everything[:5] == best
    assert sum(one.probability for one in everything) == pytest.approx(1, abs=0.05)  # less PAD and BOS
    with pytest.raises(UserError, match="temperature"):
        model.generate(LINES, temperature=-1)


def test_the_probabilities_of_pieces_are_those_of_the_text(language_model_workdir, gpt_workdir):
    text = "the old"
    for workdir in (language_model_workdir, gpt_workdir):
        task, params = open_trained(Workdir(workdir), "language_model")
        ids = task.encode([text])
        assert len(ids) <= task.config.data.block_length  # the score of a longer text is that of several windows
        found, _ = task.predictions(params, ids, 3)
        assert [one.piece for one in found] == task.vocab.pieces(ids.tolist())
        score = sum(np.log(one.probability) for one in found)
        assert score == pytest.approx(nmt_jax.load(workdir).score([text])[0], rel=1e-3)  # products in bfloat16
        assert all(one.best[0].probability >= one.probability for one in found)


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


@pytest.mark.slow
def test_masks_are_filled_with_what_the_model_predicts(pretraining_workdir):
    model, text = nmt_jax.load(pretraining_workdir), "the old [MASK] sees [MASK]."
    first, second = model.fill(text, n=10**6)
    assert sum(one.probability for one in first) == pytest.approx(1)
    assert [one.probability for one in second] == sorted((one.probability for one in second), reverse=True)
    whole = next(one for one in first if one.piece.isalpha())
    assert whole.text == f"the old {whole.piece} sees [MASK]."
    part = next(one for one in first if one.piece.startswith("##"))
    assert part.text == f"the old{part.piece.removeprefix('##')} sees [MASK]."
    # The same from the logits of the unpadded row.
    task, params = open_trained(Workdir(pretraining_workdir), "pretrain")
    ids, mask, _ = task.tokenizer([text])
    places = np.flatnonzero(ids[0] == task.tokenizer.id("[MASK]"))
    logits = task.model.apply({"params": params}, ids, mask, np.zeros_like(ids), places[None])[0][0]
    ratio = np.log(first[0].probability / first[5].probability)
    a, b = (task.tokenizer.id(first[number].piece) for number in (0, 5))
    assert ratio == pytest.approx(float(logits[0, a] - logits[0, b]), abs=0.02)  # products in bfloat16
    with pytest.raises(UserError, match=r"the text has no \[MASK\]"):
        model.fill("the old man")
    assert model.attention(text).pieces[3] == "[MASK]"


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
