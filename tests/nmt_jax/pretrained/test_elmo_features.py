"""ELMo features: independence of sentences, unseen words, caching."""

import json

import numpy as np
import pytest

from nmt_jax import schema
from nmt_jax.errors import UserError
from nmt_jax.pretrained.elmo_features import elmo_features, load_elmo

pytestmark = pytest.mark.slow  # trains models

SENTENCES = [["das", "Haus"], [], ["unausdenkliche", "Wörter", "déjà", "\u200b", "."] * 3, ["das", "Haus"], ["Haus"]]


@pytest.fixture(scope="module")
def workdir(elmo_workdir):
    return elmo_workdir


@pytest.fixture(scope="module")
def elmo(workdir):
    return load_elmo(workdir)


def test_every_layer_of_every_word(elmo):
    found = elmo.features(SENTENCES)
    assert [features.shape for features in found] == [(3, len(words), 24) for words in SENTENCES]
    np.testing.assert_array_equal(found[0], found[3])
    np.testing.assert_allclose(found[0][0, 1], found[4][0, 0], atol=1e-6)  # layer 0 depends on the word only
    assert np.abs(found[0][1:, 1] - found[4][1:, 0]).max() > 1e-4
    assert len(np.unique(found[2][0, :5].round(5), axis=0)) == 5


def test_a_sentence_is_independent_of_the_others(elmo):
    for words, features in zip(SENTENCES, elmo.features(SENTENCES), strict=True):
        np.testing.assert_allclose(elmo.features([words])[0], features, atol=1e-6)


def test_cached_features_equal_computed_ones(workdir, elmo, tmp_path, monkeypatch):
    computed = elmo_features(workdir, SENTENCES)
    first = elmo_features(workdir, SENTENCES, tmp_path)
    (stored,) = tmp_path.iterdir()
    monkeypatch.setattr(type(elmo), "features", lambda *_: pytest.fail("computed again"))
    for again in (first, elmo_features(elmo, SENTENCES, tmp_path)):
        assert [features.shape for features in again] == [features.shape for features in computed]
        for a, b in zip(again, computed, strict=True):
            np.testing.assert_array_equal(a, b)
    with np.load(stored, allow_pickle=False) as file:
        assert file["features"].dtype == np.float32
    stored.write_bytes(stored.read_bytes()[:200])
    with pytest.raises(UserError, match=r"elmo-.*npz: damaged .*: delete it"):
        elmo_features(elmo, SENTENCES, tmp_path)


def test_other_sentences_and_weights_get_other_files(elmo, tmp_path):
    elmo_features(elmo, SENTENCES, tmp_path)
    elmo_features(elmo, SENTENCES[:1], tmp_path)
    other = type(elmo)(
        elmo.model, {**elmo.params, "characters": {**elmo.params["characters"], "table": np.ones((260, 4))}}
    )
    elmo_features(other, SENTENCES, tmp_path)
    assert len(list(tmp_path.iterdir())) == 3
    softmax = type(elmo)(elmo.model, {**elmo.params, "output_bias": elmo.params["output_bias"] + 1})
    assert softmax.fingerprint == elmo.fingerprint != other.fingerprint


def test_no_sentences(elmo, tmp_path):
    assert elmo_features(elmo, [], tmp_path) == elmo_features(elmo, []) == []


def test_a_workdir_of_another_task_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(schema.defaults()))
    with pytest.raises(UserError, match="its task is 'translate', but ELMo features need"):
        load_elmo(tmp_path)
