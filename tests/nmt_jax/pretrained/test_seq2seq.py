"""Encoder-decoders: probabilities equal to the reference's, causal, independent of padding; one-line errors."""

import numpy as np
import pytest

from nmt_jax.errors import UserError
from nmt_jax.pretrained import load
from nmt_jax.pretrained.seq2seq import first_logits, load_seq2seq, log_probabilities
from tests.fixtures.family_folders import SEQ2SEQ, write_folder


def arrays(golden):
    return (np.array(golden[name]) for name in ("ids", "mask", "targets", "kept"))


@pytest.mark.parametrize("name", SEQ2SEQ)
def test_probabilities_equal_the_reference(tmp_path, name):
    golden, found = SEQ2SEQ[name], load_seq2seq(write_folder(tmp_path, SEQ2SEQ[name]))
    ids, mask, targets, kept = arrays(golden)
    score = log_probabilities(found.model)
    values = np.asarray(score(found.params, ids, mask > 0, targets, found.start_id))
    np.testing.assert_allclose(values[kept > 0], golden["log_probabilities"], atol=1e-5, rtol=0)
    # Padding has no influence, nor have later target tokens.
    again = np.asarray(
        score(found.params, np.where(mask, ids, 9), mask > 0, np.where(kept, targets, 9), found.start_id)
    )
    np.testing.assert_array_equal(values[kept > 0], again[kept > 0])


@pytest.mark.parametrize("name", ["mt5", *(pytest.param(name, marks=pytest.mark.slow) for name in ("t5", "bart"))])
def test_logits_of_the_first_step_equal_the_reference(tmp_path, name):
    golden, found = SEQ2SEQ[name], load_seq2seq(write_folder(tmp_path, SEQ2SEQ[name]))
    ids, mask, _, _ = arrays(golden)
    logits = np.asarray(first_logits(found.model)(found.params, ids, mask > 0, found.start_id))
    np.testing.assert_allclose(logits, golden["first_logits"], atol=1e-5, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mt5", "bart"])
def test_a_pair_does_not_depend_on_its_neighbours(tmp_path, name):
    found = load_seq2seq(write_folder(tmp_path, SEQ2SEQ[name]))
    ids, mask, targets, kept = arrays(SEQ2SEQ[name])
    score = log_probabilities(found.model)
    together = np.asarray(score(found.params, ids, mask > 0, targets, found.start_id))
    for row in range(len(ids)):
        source, target = ids[row, mask[row] > 0], targets[row, kept[row] > 0]
        alone = score(found.params, source[None], np.ones((1, len(source)), bool), target[None], found.start_id)
        np.testing.assert_allclose(np.asarray(alone)[0], together[row, : len(target)], atol=2e-6)


def test_the_fingerprint_covers_weights_and_settings(tmp_path):
    one = load_seq2seq(write_folder(tmp_path / "a", SEQ2SEQ["t5"]))
    assert one.fingerprint == load_seq2seq(tmp_path / "a").fingerprint
    others = [{"relative_attention_max_distance": 8}, {"tie_word_embeddings": False}, {"decoder_start_token_id": 3}]
    folders = [write_folder(tmp_path / str(number), SEQ2SEQ["t5"], **change) for number, change in enumerate(others)]
    found = {one.fingerprint, *(load_seq2seq(folder).fingerprint for folder in folders)}
    assert len(found) == 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model_type": "bert"}, "model_type 'bert' is not supported; supported are t5, mt5"),
        ({"num_decoder_layers": 2}, r"decoder\.block\.2.* more do not belong"),
        ({"num_decoder_layers": None}, r"decoder\.block\.2.* more do not belong"),  # as many as of the encoder
        ({"num_decoder_layers": 4}, r"no tensor decoder\.block\.3"),
        ({"num_decoder_layers": 10**6}, "1000000 layers, but model.safetensors has only"),
        ({"decoder_start_token_id": "x"}, "decoder_start_token_id 'x' is not an id"),
        ({"decoder_start_token_id": 20}, "decoder_start_token_id 20 is not an id"),
        ({"pad_token_id": -1}, "pad_token_id -1 is not an id"),
    ],
)
def test_errors_are_one_line(tmp_path, change, words):
    folder = write_folder(tmp_path / "model", SEQ2SEQ["t5"], **change)
    with pytest.raises(UserError, match=words) as error:
        load_seq2seq(folder)
    assert str(error.value).startswith(str(folder))
    assert "\n" not in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEQ2SEQ)
def test_the_encoder_of_a_whole_model_is_read_alone(tmp_path, name):
    whole, alone = load_seq2seq(write_folder(tmp_path, SEQ2SEQ[name])), load(tmp_path)
    ids, mask, _, _ = arrays(SEQ2SEQ[name])
    states = whole.model.apply({"params": whole.params}, ids, mask > 0, method="encode")
    found = alone.model.apply({"params": alone.params}, ids, mask > 0)[0][-1]
    np.testing.assert_allclose(found[mask > 0], states[mask > 0], atol=1e-6)
