"""Encoders of every family: equal to the reference at every layer, independent of padding, exact round trips."""

import json

import jax
import numpy as np
import pytest
import safetensors.numpy

from metrics_jax.embedding.encoder import encode
from nmt_jax.errors import UserError
from nmt_jax.models.layers.bert_stack import LARGEST_DISTANCE
from nmt_jax.models.layers.deberta_stack import log_distances
from nmt_jax.models.layers.relative_positions import relative_buckets
from nmt_jax.pretrained import load, load_encoder, save
from nmt_jax.pretrained.families import ENCODERS as FAMILIES
from nmt_jax.pretrained.weight_names import read_config
from tests.fixtures import encoder_folders
from tests.fixtures.family_folders import ENCODERS, GOLDEN, tensors, write_folder

BEGINS_WITH_BERT = (
    "roberta",
    "xlm-roberta",
    "camembert",
    "bleurt",
)  # in the golden values of encoder_folders, or equal
ONLY_HERE = [name for name in ENCODERS if ENCODERS[name]["config"]["model_type"] in FAMILIES]


def batch(name):
    golden = ENCODERS[name]
    return np.array(golden["ids"]), np.array(golden["mask"], bool)


@pytest.mark.parametrize("name", ONLY_HERE)
def test_every_layer_equals_the_reference_and_padding_has_no_influence(tmp_path, name):
    encoder = load_encoder(write_folder(tmp_path, ENCODERS[name]))
    ids, mask = batch(name)
    hidden, again = (
        np.stack([np.asarray(state)[mask] for state in encoder.embed(rows, mask)])
        for rows in (ids, np.where(mask, ids, 7))
    )
    np.testing.assert_allclose(hidden, ENCODERS[name]["hidden"], atol=1e-5, rtol=0)
    np.testing.assert_array_equal(hidden, again)


@pytest.mark.slow
@pytest.mark.parametrize("name", ONLY_HERE)
def test_the_whole_model_equals_the_reference(tmp_path, name):
    golden, pretrained = ENCODERS[name], load(write_folder(tmp_path, ENCODERS[name]))
    ids, mask = batch(name)
    hidden, out = jax.jit(pretrained.model.apply)({"params": pretrained.params}, ids, mask)
    assert len(hidden) == pretrained.model.num_layers + 1 == len(out["attention"]) + 1
    np.testing.assert_allclose(hidden[:, mask], golden["hidden"], atol=1e-5, rtol=0)
    if golden["pooled"]:
        np.testing.assert_allclose(out["pooled"], golden["pooled"], atol=1e-5, rtol=0)
    else:
        assert "pooled" not in out
    for weights in out["attention"]:
        np.testing.assert_allclose(np.asarray(weights).sum(axis=-1), 1.0, atol=1e-6)
        assert (np.asarray(weights)[1, :, :, 4:] == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ONLY_HERE)
def test_a_text_does_not_depend_on_its_neighbours(tmp_path, name):
    encoder = load_encoder(write_folder(tmp_path, ENCODERS[name]))
    texts = ["a b c d e f g h i", "o", "b a", "c d e", "n m l k j i h g"]
    together = encode(encoder, texts, (0, -1))
    for number, text in enumerate(texts):
        alone = encode(encoder, [text], (0, -1))
        np.testing.assert_array_equal(alone.vectors, together[number][0])
    ids, mask = batch(name)
    short, long = (list(encoder.embed(ids[rows], mask[rows]))[-1] for rows in (np.s_[1:2, :4], np.s_[:]))
    np.testing.assert_allclose(short[0], long[1, :4], atol=2e-6)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in ("rembert", "mt5"))) for name in ONLY_HERE]
)
def test_save_and_load_are_exact(tmp_path, name):
    first = load(write_folder(tmp_path / "theirs", ENCODERS[name]))
    save(first, tmp_path / "ours")
    written = safetensors.numpy.load_file(tmp_path / "ours" / "model.safetensors")
    for tensor, value in written.items():
        np.testing.assert_array_equal(value, tensors(ENCODERS[name]["tensors"])[tensor])
    second = load(tmp_path / "ours")
    assert (second.model, second.kind, second.tokenizer) == (first.model, first.kind, first.tokenizer)
    jax.tree.map(np.testing.assert_array_equal, first.params, second.params)
    assert load_encoder(tmp_path / "ours").fingerprint == load_encoder(tmp_path / "theirs").fingerprint


def test_every_family_has_golden_values():
    golden = [one["config"]["model_type"] for one in (*ENCODERS.values(), *encoder_folders.GOLDEN.values())]
    assert set(FAMILIES) <= {*golden, *BEGINS_WITH_BERT}


@pytest.mark.parametrize("side", ["both", "past"])
def test_buckets_of_t5(side):
    found = relative_buckets(201, 401, 32, LARGEST_DISTANCE, side == "both")  # the distance of MPNet, too
    expected = GOLDEN["buckets"][side]  # of distances -200 to 200
    np.testing.assert_array_equal(found[200], expected[:401])
    np.testing.assert_array_equal(found[0, :201], expected[200:])


def test_buckets_of_deberta():
    found = log_distances(np.arange(-511, 512), 256, 512)
    np.testing.assert_array_equal(found, GOLDEN["buckets"]["log"])


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("albert", {"num_hidden_groups": 2}, "num_hidden_groups 2 is not supported, only 1"),
        ("rembert", {"input_embedding_size": 7}, r"embeddings\.LayerNorm\.bias has shape \[6\], .* implies \[7\]"),
        ("electra", {"embedding_size": 16}, "embeddings_project|has shape"),
        ("electra, wide", {"embedding_size": 8}, "embeddings.*has shape|no tensor embeddings_project"),
        ("mpnet", {"relative_attention_num_buckets": 16}, r"relative_attention_bias\.weight has shape \[32, 2\]"),
        ("mpnet", {"relative_attention_num_buckets": 2}, "relative_buckets=2 must be 0 or 4 to 128"),
        ("t5", {"feed_forward_proj": "gated-silu"}, "activation 'gated-silu' is not supported; supported are relu, g"),
        ("t5", {"feed_forward_proj": "gated-gelu"}, "no tensor|do not belong"),
        ("t5", {"d_kv": 6.5}, "d_kv 6.5 is not a whole number"),
        ("t5", {"num_layers": 10**12}, "num_layers 1000000000000 is too large"),
        ("t5", {"num_layers": 1}, r"encoder\.block\.1.* do not belong to the model"),
        ("t5", {"num_layers": 3}, r"no tensor encoder\.block\.2"),
        ("deberta-v2", {"position_biased_input": True}, "position_biased_input True is not supported, only False"),
        ("deberta-v2", {"pos_att_type": ["p2p"]}, "pos_att_type .* is not supported; supported are p2c|c2p, "),
        ("deberta-v2", {"pos_att_type": {}}, "pos_att_type {} is not supported"),
        ("deberta-v2", {"position_buckets": 5000}, "buckets=5000 must be 0, or from 4 to twice the largest distance"),
        ("deberta-v2", {"conv_kernel_size": 3}, r"no tensor encoder\.conv\.conv\."),
        ("deberta-v2", {"conv_kernel_size": 4}, "conv_width=4 must be 0 or odd"),
        ("deberta-v2, convolution", {"conv_kernel_size": 0}, r"encoder\.conv\..* do not belong"),
        ("t5", {"relative_attention_max_distance": 3}, "must be at least 4 and less than twice largest_distance=3"),
    ],
)
def test_errors_are_one_line(tmp_path, name, change, words):
    folder = write_folder(tmp_path / "model", ENCODERS[name], **change)
    with pytest.raises(UserError, match=words) as error:
        load(folder)
    assert str(error.value).startswith(str(folder))
    assert "\n" not in str(error.value)


def test_embeddings_as_wide_as_the_model_are_projected_in_some_families():
    width = {"rembert": "input_embedding_size", "albert": "embedding_size", "electra": "embedding_size"}
    found = {}
    for name, key in width.items():
        config = ENCODERS[name]["config"]
        fields = read_config({**config, key: config["hidden_size"]}, FAMILIES[name], "config.json")
        found[name] = fields["embedding_width"]
    assert found == {"rembert": 16, "albert": 16, "electra": 0}


def test_an_unknown_family_lists_the_known_ones(tmp_path):
    folder = write_folder(tmp_path, ENCODERS["t5"], model_type="led")
    with pytest.raises(UserError, match=r"model_type 'led' is not supported; supported are bert, .*rembert, .*mt5"):
        load(folder)


def test_a_model_that_its_kind_cannot_describe_is_not_saved(tmp_path):
    pretrained = load(write_folder(tmp_path / "a", ENCODERS["rembert"]))
    object.__setattr__(pretrained, "kind", "bert")
    with pytest.raises(UserError, match="bert model cannot have embedding_width=6; save it as another kind: bert, rob"):
        save(pretrained, tmp_path / "b")


def test_older_files_omit_settings_of_t5(tmp_path):
    folder = write_folder(tmp_path, ENCODERS["t5"])
    config = json.loads((folder / "config.json").read_text())
    del config["relative_attention_max_distance"], config["feed_forward_proj"]
    (folder / "config.json").write_text(json.dumps(config))
    model = load(folder).model
    assert (model.largest_distance, model.activation, model.max_positions) == (128, "relu", 512)
