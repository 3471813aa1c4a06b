"""A workdir is used only with the vocabulary and the model that its checkpoints were trained with."""

import json
import shutil

import pytest

from nmt_jax import config as configs
from nmt_jax import schema
from nmt_jax.errors import UserError
from nmt_jax.training.run import resolve_config
from nmt_jax.workdir import MANIFEST, Workdir
from tests.conftest import ROOT


def opened(folder, by):
    """Open a workdir as `translate` or as `train` does."""
    return folder.trained_config("translate") if by == "translate" else resolve_config(None, folder, {})


@pytest.fixture
def folder(translator_workdir, tmp_path):
    """A workdir that a test may damage; the checkpoints are not needed."""
    shutil.copytree(translator_workdir, tmp_path / "w", ignore=shutil.ignore_patterns("params", "rest", "tensorboard"))
    return Workdir(tmp_path / "w")


@pytest.mark.parametrize("by", ["translate", "train"])
@pytest.mark.parametrize("damage", ["folder", "file", "swap"])
def test_another_or_no_vocabulary_is_an_error(damage, by, folder):
    model = next(folder.vocab.iterdir())
    if damage == "folder":
        shutil.rmtree(folder.vocab)
    elif damage == "file":
        model.unlink()
    else:
        model.write_bytes(model.read_bytes()[:-1] + b"x")
    message = "is not the vocabulary that the checkpoints were trained with" if damage == "swap" else "missing; restore"
    with pytest.raises(UserError, match=f"{model}: {message}"):
        opened(folder, by)


@pytest.mark.parametrize("by", ["translate", "train"])
def test_an_edited_model_is_an_error_that_names_the_key(by, folder):
    config = json.loads(folder.config_file.read_text())
    config["model"]["num_heads"] = 1
    folder.config_file.write_text(json.dumps(config))
    with pytest.raises(UserError, match=r"config\.json: model\.num_heads was 2 .*, and is 1 now; restore it"):
        opened(folder, by)


@pytest.mark.parametrize(("task", "needed"), [("translate", " of config.task=translate"), ("phrase", "")])
def test_a_phrase_based_model_is_not_a_neural_one(task, needed, tmp_path):
    folder = Workdir(tmp_path)
    configs.save(configs.load(f"{ROOT}/configs/phrase.py"), folder.config_file)
    with pytest.raises(UserError, match=f"a phrase-based model, but this needs a neural model{needed}$"):
        folder.trained_config(task)


@pytest.mark.parametrize("by", ["translate", "train"])
def test_other_keys_may_be_edited(by, folder):
    config = json.loads(folder.config_file.read_text())
    config["train"]["minutes"] = 5.0
    folder.config_file.write_text(json.dumps(config))
    assert opened(folder, by).train.minutes == 5.0


@pytest.mark.parametrize("by", ["translate", "train"])
def test_the_layers_of_a_trained_model_may_be_computed_in_another_way(by, folder):
    """Also those of a version that had no `scan_layers`, and true or false for `remat`."""
    for file in (folder.config_file, folder.path / MANIFEST):
        content = json.loads(file.read_text())
        if file == folder.config_file:
            content["model"]["remat"] = False
            del content["model"]["scan_layers"]
        else:
            content["model"]["model.remat"] = True
        file.write_text(json.dumps(content))
    assert opened(folder, by).model.remat == "none"
    changes = {key: str(value) for key, value in configs.flatten(folder.config()).items() if key != "vocab.lexicon"}
    changes |= {"model.remat": "dots", "model.scan_layers": "true"}
    model = resolve_config(f"{ROOT}/configs/quickstart.py:smoke=true", folder, changes).model
    assert (model.remat, model.scan_layers) == ("dots", True)


@pytest.mark.parametrize("by", ["translate", "train"])
def test_keys_of_the_model_that_an_older_version_did_not_know_have_their_defaults(by, folder):
    config, manifest = (json.loads(file.read_text()) for file in (folder.config_file, folder.path / MANIFEST))
    for key, value in schema.defaults()["model"].items():
        if config["model"].get(key) == value:
            del config["model"][key]
            manifest["model"].pop(f"model.{key}", None)
    expected = folder.config()
    assert set(config["model"]) < set(expected.model)
    folder.config_file.write_text(json.dumps(config))
    (folder.path / MANIFEST).write_text(json.dumps(manifest))
    assert opened(folder, by) == expected


@pytest.mark.parametrize("by", ["translate", "train"])
def test_a_workdir_of_an_older_version_is_a_warning(by, folder):
    (folder.path / MANIFEST).unlink()
    with pytest.warns(UserWarning, match=r"has no manifest\.json, so its vocabulary and config cannot be verified"):
        opened(folder, by)


@pytest.mark.parametrize("content", ["", "[]", "{}", "null", "[" * 10**5, '{"model": 1, "vocab": {}}'], ids=range(6))
def test_a_damaged_manifest_is_an_error(content, folder):
    (folder.path / MANIFEST).write_text(content)
    with pytest.raises(UserError, match=r"manifest\.json: not a manifest; restore it from a copy, or delete it"):
        opened(folder, "translate")
