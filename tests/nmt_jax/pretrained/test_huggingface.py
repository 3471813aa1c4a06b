"""Folders in Hugging Face's format: equal to the reference implementation, exact round trips, one-line errors."""

import json
import pickle
import struct
import sys

import huggingface_hub
import jax
import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from nmt_jax.errors import UserError
from nmt_jax.pretrained import load, save
from tests.fixtures.encoder_folders import GOLDEN, WORDPIECES, tensors, words, write_folder


def hidden(pretrained, name):
    """Hidden states and pooled output of the golden rows."""
    golden = GOLDEN[name]
    segments = golden["segments"] and np.array(golden["segments"])
    ids, mask = np.array(golden["ids"]), np.array(golden["mask"], bool)
    states, out = pretrained.model.apply({"params": pretrained.params}, ids, mask, segments)
    return np.asarray(states), out.get("pooled")


def assert_golden(pretrained, name, atol=1e-5):
    golden = GOLDEN[name]
    states, pooled = hidden(pretrained, name)
    real = np.array(golden["mask"], bool)
    np.testing.assert_allclose(states[:, real], np.array(golden["hidden"])[:, real], atol=atol, rtol=0)
    if golden["pooled"]:
        np.testing.assert_allclose(pooled, golden["pooled"], atol=atol, rtol=0)
    else:
        assert pooled is None


@pytest.mark.parametrize("name", GOLDEN)
def test_every_layer_equals_the_reference(tmp_path, name):
    assert_golden(load(write_folder(tmp_path, name)), name)


@pytest.mark.parametrize("kind", ["xlm-roberta", "camembert"])
def test_models_related_to_roberta(tmp_path, kind):
    assert_golden(load(write_folder(tmp_path, "roberta", model_type=kind)), "roberta")


def test_the_body_of_a_model_with_a_head(tmp_path):
    head = {"cls.predictions.bias": np.zeros(20, np.float32), "bert.embeddings.position_ids": np.arange(10)[None]}
    assert_golden(load(write_folder(tmp_path, rename=lambda tensor: f"bert.{tensor}", extra=head)), "bert")


def test_names_of_norms_from_tensorflow(tmp_path):
    def rename(tensor):
        return tensor.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta")

    assert_golden(load(write_folder(tmp_path, rename=rename)), "bert")


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_is_read_exactly(tmp_path, dtype):
    params = load(write_folder(tmp_path, dtype=dtype)).params
    expected = tensors("bert")["embeddings.word_embeddings.weight"].astype(dtype).astype(np.float32)
    np.testing.assert_array_equal(params["embeddings"]["word"], expected)
    assert all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(params))


def test_without_a_pooler(tmp_path):
    folder = write_folder(tmp_path)
    rest = {name: value for name, value in tensors("bert").items() if not name.startswith("pooler")}
    safetensors.numpy.save_file(rest, folder / "model.safetensors")
    states, pooled = hidden(load(folder), "bert")
    assert pooled is None
    np.testing.assert_allclose(states[-1][0], GOLDEN["bert"]["hidden"][-1][0], atol=1e-5)


@pytest.mark.parametrize("name", GOLDEN)
def test_save_and_load_are_exact(tmp_path, name):
    first = load(write_folder(tmp_path / "theirs", name))
    save(first, tmp_path / "ours")
    written = safetensors.numpy.load_file(tmp_path / "ours" / "model.safetensors")
    assert written.keys() == GOLDEN[name]["tensors"].keys()  # the reference's own names
    for tensor, value in tensors(name).items():
        np.testing.assert_array_equal(written[tensor], value)
    config = json.loads((tmp_path / "ours" / "config.json").read_text())
    theirs = {**GOLDEN[name]["config"]}
    theirs.pop("position_embedding_type", None)  # has only one possible value
    assert theirs.items() <= config.items()
    second = load(tmp_path / "ours")
    assert (second.model, second.kind, second.tokenizer, second.max_length) == (
        *(first.model, first.kind, first.tokenizer, first.max_length),
    )
    jax.tree.map(np.testing.assert_array_equal, first.params, second.params)


def test_saving_a_model_as_an_unsuitable_kind(tmp_path):
    pretrained = load(write_folder(tmp_path / "a"))
    object.__setattr__(pretrained, "kind", "distilbert")
    with pytest.raises(UserError, match="distilbert model cannot have num_segments=2, pooler=True; save it as another"):
        save(pretrained, tmp_path / "b")
    assert not (tmp_path / "b").exists()


def _without(key):
    config = dict(GOLDEN["bert"]["config"])
    del config[key]
    return json.dumps(config)


def _with(**changes):
    return json.dumps(GOLDEN["bert"]["config"] | changes)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("config.json", None, "config.json: No such file or directory: not the folder of a model"),
        ("config.json", "{", "config.json: not JSON"),
        ("config.json", "[]", "config.json: not a JSON object"),
        ("config.json", _without("model_type"), "model_type None is not supported; supported are bert, roberta"),
        ("config.json", _with(model_type="gpt2"), "model_type 'gpt2' is not supported"),
        ("config.json", _without("hidden_size"), "hidden_size missing"),
        ("config.json", _with(hidden_size="8"), "hidden_size '8' is not a number"),
        ("config.json", _with(hidden_size=9), "d_model=9 is not divisible by num_heads=2"),
        ("config.json", _with(hidden_act="mish"), "activation 'mish' is not supported"),
        ("config.json", _with(is_decoder=True), "is_decoder True is not supported"),
        ("config.json", _with(position_embedding_type="relative_key"), "'relative_key' is not supported"),
        (
            "config.json",
            _with(intermediate_size=16),
            r"layer.0.intermediate.dense.bias has shape \[12\], .* \[16\]",
        ),
        ("config.json", _with(num_hidden_layers=3), "no tensor encoder.layer.2"),
        ("config.json", _with(num_hidden_layers=10**6), r"1000000 layers, but model.safetensors has only \d+ tensors"),
        ("config.json", _with(num_hidden_layers=1), "encoder.layer.1.* and 15 more do not belong"),
        ("config.json", _with(vocab_size=19), "the tokenizer has 20 pieces, but the weights have 19"),
        (
            "config.json",
            _with(pad_token_id=5),
            "the padding id of the bert model is piece 'a': the tokenizer is of another model",
        ),
        ("vocab.txt", "\n".join([*WORDPIECES, "more"]), "the tokenizer has 21 pieces, but the weights have 20"),
        ("vocab.txt", "a\nb\n", r"vocab.txt: \[CLS\], \[SEP\], \[UNK\], \[PAD\] not among its 2 pieces"),
        ("vocab.txt", None, "neither tokenizer.json nor vocab.txt"),
        ("tokenizer.json", "{}", "tokenizer.json: not a tokenizer"),
        ("tokenizer_config.json", "no", "tokenizer_config.json: not JSON"),
        ("model.safetensors", None, "model.safetensors: no such file"),
        ("model.safetensors", b"", "model.safetensors: truncated or damaged"),
    ],
)
def test_errors_are_one_line(tmp_path, file, content, words):
    folder = write_folder(tmp_path / "model")
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=words) as error:
        load(folder)
    assert str(error.value).startswith(str(folder))
    assert "\n" not in str(error.value)


def test_a_tokenizer_of_another_model(tmp_path):
    folder = write_folder(tmp_path)
    words().save(str(folder / "tokenizer.json"))
    with pytest.raises(UserError, match="the padding id of the bert model is piece '<s>'"):
        load(folder)


def _header(**tensors):
    text = json.dumps(tensors).encode()
    return struct.pack("<Q", len(text)) + text


@pytest.mark.parametrize(
    "content",
    [
        struct.pack("<Q", 2**62),  # a header longer than the file
        b"\x80\x04pickled",
        _header(a={"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 8]}) + bytes(8),
        _header(a={"dtype": "F32", "shape": [2], "data_offsets": [8, 16]}) + bytes(16),
        _header(a={"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 8]}) + bytes(8),
        _header(a={"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}) + bytes(4),
        "half",
    ],
)
def test_damaged_weights(tmp_path, content):
    folder = write_folder(tmp_path)
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100] if content == "half" else content)
    with pytest.raises(UserError, match=r"model\.safetensors: truncated or damaged"):
        load(folder)


def test_integer_tensors_are_refused(tmp_path):
    folder = write_folder(tmp_path, dtype=np.int32)
    with pytest.raises(UserError, match="is of type I32; save it as F32 or F16 or BF16"):
        load(folder)


class Harmful:
    def __reduce__(self):
        return (print, ("harm done",))


def test_pickles_are_not_read(tmp_path, capsys):
    folder = write_folder(tmp_path)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Harmful()))
    with pytest.raises(
        UserError, match=r"pytorch_model\.bin: pickled .* not read here; convert them once: nmt-jax convert --input="
    ):
        load(folder)
    assert not capsys.readouterr().out


def test_a_package_with_a_model_is_not_imported(tmp_path, monkeypatch):
    package = tmp_path / "a_model_of_tests"
    write_folder(package / "files" / "model")
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert_golden(load("a-model-of-tests"), "bert")
    write_folder(package / "another")
    with pytest.raises(UserError, match="contains 2 models"):
        load("a_model_of_tests")


def test_nothing_is_downloaded_without_permission(tmp_path, monkeypatch):
    asked = []

    def download(name, **options):
        asked.append((name, options["revision"]))
        if name != "owner/model":
            raise OSError("404: not found\nat some address")
        return str(write_folder(tmp_path / "hub"))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    for name in ("owner/model", "model_of_nobody"):
        with pytest.raises(UserError, match=f"{name}: no such folder or installed package"):
            load(name)
    assert not asked
    assert_golden(load("owner/model", download=True, revision="v1"), "bert")
    assert asked == [("owner/model", "v1")]
    with pytest.raises(UserError, match=r"cannot be downloaded: 404: not found$"):
        load("owner/none", download=True)
