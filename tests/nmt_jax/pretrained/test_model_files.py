"""Folders whose weights are in several files, as large published models come."""

import json

import jax
import numpy as np
import pytest
import safetensors.numpy

from nmt_jax.errors import UserError
from nmt_jax.pretrained import load
from nmt_jax.pretrained.model_files import has_weights, read_tensors, tensor_names
from tests.fixtures import tiny_encoder_folder

INDEX = "model.safetensors.index.json"


@pytest.fixture
def folder(tmp_path):
    """A tiny encoder whose tensors are in three files, by turns; and the content of the index."""
    whole = load(tiny_encoder_folder.write(tmp_path / "m"))
    path = tmp_path / "m" / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    parts = [f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)]
    places = {name: parts[number % 3] for number, name in enumerate(tensors)}
    for part in parts:
        some = {name: tensors[name] for name, place in places.items() if place == part}
        safetensors.numpy.save_file(some, path.with_name(part))
    path.unlink()
    path.with_name(INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return path, places, whole


def test_parts_are_read_as_one_file(folder):
    path, places, whole = folder
    found = load(path.parent)
    jax.tree.map(np.testing.assert_array_equal, found.params, whole.params)
    assert sorted(tensor_names(path)) == sorted(places)
    assert has_weights(path.parent)
    assert not has_weights(path.parent.parent)


def test_mistakes(folder):
    path, places, _ = folder
    index, (name, part) = path.with_name(INDEX), next(iter(places.items()))
    with pytest.raises(UserError, match="no tensor missing"):
        read_tensors(path, {"missing": (1,)})
    for content, words in (
        ({}, "no 'weight_map' that names files of this folder"),
        ({"weight_map": {name: "../other.safetensors"}}, "no 'weight_map' that names files of this folder"),
        ({"weight_map": {name: 3}}, "no 'weight_map' that names files of this folder"),
        ({"weight_map": {name: "none.safetensors"}}, "none.safetensors: no such file"),
        ({"weight_map": {"moved": part}}, f"{part}: no tensor moved, which {INDEX} says it has"),
    ):
        index.write_text(json.dumps(content))
        with pytest.raises(UserError, match=words):
            tensor_names(path)
    index.write_text(json.dumps({"weight_map": places}))
    path.with_name(part).write_bytes(path.with_name(part).read_bytes()[:100])
    with pytest.raises(UserError, match=f"{part}: truncated or damaged"):
        load(path.parent)
