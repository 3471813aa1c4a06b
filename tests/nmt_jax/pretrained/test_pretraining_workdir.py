"""The encoder of a pretraining run, from its workdir and from the output of `nmt-jax export`."""

import json
import shutil

import numpy as np
import pytest
from ml_collections import ConfigDict

from metrics_jax import InfoLM
from nmt_jax import config as configs
from nmt_jax import schema
from nmt_jax.commands import export
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.models.bert import Model
from nmt_jax.pretrained import load, load_encoder
from nmt_jax.pretrained.loading import load_workdir, trained_params
from nmt_jax.pretrained.masked_encoder import load_masked_encoder
from nmt_jax.tasks.registry import make_task
from nmt_jax.workdir import MANIFEST, write_manifest
from tests.conftest import ROOT

TEXTS = ["the old man sees the house .", "she sleeps", "", "der alte Mann schläft ."]


@pytest.fixture
def workdir(pretraining_workdir):
    return pretraining_workdir


@pytest.fixture
def copy(workdir, tmp_path):
    """A copy that may be damaged, and its config."""
    shutil.copytree(workdir, tmp_path / "w")
    return tmp_path / "w", json.loads((workdir / "config.json").read_text())


@pytest.mark.slow
def test_the_exported_model_has_bit_identical_hidden_states(workdir, tmp_path):
    export.run(workdir, "huggingface", tmp_path / "folder")
    ours, theirs = load_encoder(workdir), load_encoder(tmp_path / "folder")
    assert ours.fingerprint == theirs.fingerprint
    assert ours.max_length == theirs.max_length == 32
    ids, mask, special = ours.tokenize(TEXTS)
    for a, b in zip((ids, mask, special), theirs.tokenize(TEXTS), strict=True):
        np.testing.assert_array_equal(a, b)
    hidden = np.array([*ours.embed(ids, mask)])
    assert hidden.shape == (3, 4, ids.shape[1], 16)
    np.testing.assert_array_equal(hidden, np.array([*theirs.embed(ids, mask)]))
    config = json.loads((tmp_path / "folder" / "config.json").read_text())
    assert (config["model_type"], config["vocab_size"], config["type_vocab_size"]) == ("bert", 400, 2)
    assert load(tmp_path / "folder").model == load(workdir).model


def test_load_workdir(workdir):
    loaded = load_workdir(workdir)
    assert loaded.model.dtype == "float32"  # independent of training
    assert load(workdir, "bfloat16").model.dtype == "bfloat16"
    last, first = (load_workdir(workdir, checkpoint=which).params["pooler_dense"]["kernel"] for which in ("last", 1))
    np.testing.assert_array_equal(last, first)
    assert loaded.tokenizer.pieces(loaded.tokenizer(["she sleeps"])[0][0])[0] == "[CLS]"


def test_infolm_reads_the_head_of_the_run(workdir):
    """The logits are those of the model that was trained."""
    encoder = load_masked_encoder(workdir)
    ids, mask, _ = encoder.tokenize(TEXTS)
    config, params = json.loads((workdir / "config.json").read_text()), trained_params(workdir)
    model = Model(vocab_size=len(params["output_bias"]), **{**config["model"], "dtype": "float32"})
    positions = np.array([[1], [2], [0], [3]], np.int32)
    expected, _ = model.apply({"params": params}, ids, mask, np.zeros_like(ids), positions)
    np.testing.assert_allclose(encoder.logits(ids, mask, positions[:, 0]), expected[:, 0], atol=1e-5)
    assert InfoLM(encoder, idf="uniform")(TEXTS, TEXTS[::-1]).score > 0


def test_other_tasks_and_causal_models_are_refused(copy):
    folder, config = copy
    configs.save(ConfigDict(schema.defaults("transformer", "translate")), folder / "config.json")
    with pytest.raises(UserError, match="its task is 'translate', but an encoder needs 'pretrain'"):
        load_encoder(folder)
    causal = ConfigDict({**config, "model": {**config["model"], "causal": True}})
    configs.save(causal, folder / "config.json")
    with pytest.raises(UserError, match=r"model\.causal was False when the checkpoints were written, and is True now"):
        load_encoder(folder)
    write_manifest(folder, causal)
    with pytest.raises(UserError, match=r"a causal language model \(model\.causal=true\) is not an encoder"):
        load_encoder(folder)
    with pytest.raises(UserError, match="its task is 'pretrain'"):
        export.run(folder, "ctranslate2", folder / "output")
    assert not (folder / "output").exists()


def test_a_causal_model_is_fine_tuned(copy, tmp_path):
    folder, config = copy
    causal = ConfigDict({**config, "model": {**config["model"], "causal": True, "next_sentence": False}})
    configs.save(causal, folder / "config.json")
    write_manifest(folder, causal)
    with pytest.raises(UserError, match="is not an encoder"):
        load(folder)
    (tmp_path / "texts.tsv").write_text("sentence\tlabel\nshe sleeps\tgood\nthe house sleeps\tbad\n")
    changes = {"encoder.place": folder, "model.bilstm_layers": 1, "data.corpus": "files", "data.directory": tmp_path}
    changes |= {"data.train": "texts.tsv", "data.dev": "texts.tsv"}
    page = configs.load(f"{ROOT}/configs/glue.py:smoke=true", {key: str(value) for key, value in changes.items()})
    task = make_task(page, tmp_path / "tuned", sharding.make_mesh())
    assert task.model.encoder.causal
    assert dict(task.encoder_rows())["head reads"] == "a 1-layer biLSTM on the last layer"


def test_a_vocabulary_that_does_not_fit_the_weights_is_refused(copy):
    folder, _ = copy
    tokenizer = json.loads((folder / "vocab" / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["more"] = 400
    (folder / "vocab" / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(
        UserError, match=r"tokenizer\.json: is not the vocabulary that the checkpoints were trained with"
    ):
        load_encoder(folder)
    (folder / MANIFEST).unlink()  # as in workdirs of older versions
    with (
        pytest.warns(UserWarning, match=r"has no manifest\.json"),
        pytest.raises(UserError, match="has 401 pieces, but the weights have 400: restore"),
    ):
        load_encoder(folder)


def test_other_tasks_cannot_be_exported_to_hugging_face(tmp_path):
    config = configs.load(f"{ROOT}/configs/quickstart.py:smoke=true")
    (tmp_path / "w").mkdir()
    configs.save(config, tmp_path / "w" / "config.json")
    with pytest.raises(UserError, match="its task is 'translate', but this needs 'pretrain'"):
        export.run(tmp_path / "w", "huggingface", tmp_path / "folder")
