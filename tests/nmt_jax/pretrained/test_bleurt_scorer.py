"""BLEURT with weights from folders: equal to the published program with the golden file's random weights."""

import json

import numpy as np
import pytest
import safetensors.numpy

from metrics_jax import BLEURT
from nmt_jax.errors import UserError
from nmt_jax.pretrained.learned_metrics import load_bleurt
from tests.fixtures import bleurt_folder, estimator_folders, golden


@pytest.fixture(scope="module")
def folders(shared, tmp_path_factory):
    golden.read(shared, "bleurt")  # skips if there are no golden values
    folder = tmp_path_factory.mktemp("bleurt")
    return {length: bleurt_folder.write(shared, folder / str(length), length) for length in (32, 128)}


@pytest.mark.slow
def test_equals_bleurt(shared, folders):
    """google-research/bleurt cebe7e6, its own graph and input encoder; at 32 pieces, most pairs are truncated."""
    stored, count, cut = golden.read(shared, "bleurt"), 0, 0
    for case in (case for case in stored["cases"] if case["level"] == "sentence"):
        hypotheses, references = (stored["inputs"][case["input"]][side] for side in ("hypotheses", "references"))
        metric = BLEURT(load_bleurt(folders[case["options"]["max_seq_length"]]))
        found = metric(hypotheses, references)
        expected = [row["score"] for row in case["expected"]]
        np.testing.assert_allclose(found.segments, expected, atol=1e-5, rtol=0, err_msg=case["id"])
        rows = metric.scorer.tokenize([group[0] for group in references], hypotheses)
        for row, expected_row in zip(rows, case["expected"], strict=True):
            if "input_ids" in expected_row:
                assert row.ids.tolist() == [one for one in expected_row["input_ids"] if one]
                assert row.segments.tolist() == expected_row["segment_ids"][: len(row.ids)]
        count, cut = count + len(expected), cut + found.parts["long"]
    assert count == 160
    assert cut > 30


@pytest.mark.slow
def test_equals_bleurt_20(tmp_path):
    """RemBERT of transformers 4.57.6 with a linear layer; also with the names of the weights in bleurt-pytorch."""
    hypotheses, references, _ = estimator_folders.texts()
    folder = estimator_folders.write(tmp_path / "rembert", "bleurt20")
    found = BLEURT(load_bleurt(folder))(hypotheses, references)
    expected = estimator_folders.golden("bleurt20")["scores"]
    np.testing.assert_allclose(found.segments, expected, atol=1e-5, rtol=0)
    assert np.ptp(expected) > 0.1
    assert found.parts == {"long": 2.0}
    sizes = {"model_type": "bleurt", "embedding_size": 6}
    renamed = estimator_folders.write(tmp_path / "bleurt", "bleurt20", **sizes)
    weights = safetensors.numpy.load_file(renamed / "model.safetensors")
    weights = {
        name.replace("embedding_hidden_mapping_in", "embedding_projection"): one for name, one in weights.items()
    }
    safetensors.numpy.save_file(weights, renamed / "model.safetensors")
    np.testing.assert_array_equal(BLEURT(load_bleurt(renamed))(hypotheses, references).segments, found.segments)


def test_the_candidate_is_truncated_first_if_lengths_are_equal(folders):
    scorer = load_bleurt(folders[32])
    (row,) = scorer.tokenize(["the " * 40], ["the " * 40])
    assert (len(row.ids), row.num_pieces) == (32, 83)
    assert (np.count_nonzero(row.segments == 0), np.count_nonzero(row.segments)) == (17, 15)  # 15 and 14 pieces


def test_both_kinds_of_tensor_names(shared, folders, tmp_path):
    other = bleurt_folder.write(shared, tmp_path / "bleurt", 32, body="bleurt")
    tanh = bleurt_folder.write(shared, tmp_path / "tanh", 32, hidden_act="gelu_new")
    first, *others = (load_bleurt(folder) for folder in (folders[32], other, tanh))
    assert {one.fingerprint for one in others} == {first.fingerprint}
    assert load_bleurt(folders[128]).fingerprint != first.fingerprint
    relu = bleurt_folder.write(shared, tmp_path / "relu", 32, hidden_act="relu")
    assert load_bleurt(relu).fingerprint != first.fingerprint


def test_other_weights_change_the_signature(shared, folders, tmp_path):
    folder = bleurt_folder.write(shared, tmp_path / "other", 32)
    weights = safetensors.numpy.load_file(folder / "model.safetensors")
    weights["classifier.bias"] = weights["classifier.bias"] + 1
    safetensors.numpy.save_file(weights, folder / "model.safetensors")
    one, other = BLEURT(load_bleurt(folders[32])), BLEURT(load_bleurt(folder))
    assert one.signature != other.signature
    assert other(["a"], ["b"]).score == pytest.approx(one(["a"], ["b"]).score + 1, abs=1e-5)
    assert BLEURT(load_bleurt(folders[32], "bfloat16")).signature != one.signature


def test_unsuitable_folders_raise_errors(shared, folders, tmp_path):
    for name, words in (("classifier", "no tensor classifier"), ("bert.pooler", "no tensor pooler")):
        folder = bleurt_folder.write(shared, tmp_path / name, 32)
        weights = safetensors.numpy.load_file(folder / "model.safetensors")
        kept = {tensor: value for tensor, value in weights.items() if not tensor.startswith(name)}
        safetensors.numpy.save_file(kept, folder / "model.safetensors")
        with pytest.raises(UserError, match=words):
            load_bleurt(folder)
    (tmp_path / "w" / "checkpoints").mkdir(parents=True)
    for config, words in (
        ({"task": "translate"}, "--bleurt needs a workdir of task 'sentences' with scores of pairs"),
        ({"task": "sentences", "data": {"scores": True, "texts": ["a"]}}, "--bleurt needs a workdir"),
    ):
        (tmp_path / "w" / "config.json").write_text(json.dumps(config))
        with pytest.raises(UserError, match=words):
            load_bleurt(tmp_path / "w")
    data = {"scores": True, "texts": ["a", "b"], "label": "bleu,rouge"}
    config = {"task": "sentences", "model_name": "siamese_head", "data": data}
    (tmp_path / "w" / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="siamese_head encodes the two texts separately"):
        load_bleurt(tmp_path / "w")
    (tmp_path / "w" / "config.json").write_text(json.dumps({**config, "model_name": "sentence_head"}))
    with pytest.raises(UserError, match=r"BLEURT needs one score; .* --config\.encoder\.place="):
        load_bleurt(tmp_path / "w")
