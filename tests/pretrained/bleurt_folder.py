"""The random BLEURT of the golden files as a Hugging Face folder."""

import json
import pathlib

import numpy as np
import safetensors.numpy

RENAMED = {"beta": "bias", "gamma": "weight", "kernel": "weight", "dense": "classifier"}


def write(shared: pathlib.Path, folder: pathlib.Path, max_length: int, body: str = "bert", **config) -> pathlib.Path:
    """The weights of shared/golden; `body` begins the names of the encoder's tensors, and is the model_type."""
    golden = shared / "golden"
    architecture = json.loads((golden / "bleurt.json").read_text())["architecture"]
    architecture.pop("head")
    tensors = {}
    with np.load(golden / "bleurt_tiny_random.npz") as weights:
        for name in weights:
            *path, leaf = name.removeprefix("bert.").replace("layer_", "layer.").split(".")
            renamed = ".".join([*path, RENAMED.get(leaf, leaf)])
            if leaf.endswith("embeddings"):
                renamed += ".weight"
            renamed = f"{body}.{renamed}" if name.startswith("bert.") else renamed.replace("dense", "classifier")
            tensors[renamed] = np.ascontiguousarray(weights[name].T if leaf == "kernel" else weights[name])
    folder.mkdir(parents=True)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    settings = {"model_type": body, "layer_norm_eps": 1e-12, **architecture, **config}
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "vocab.txt").write_bytes((golden / "bleurt_tiny_vocab.txt").read_bytes())
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": max_length, "do_lower_case": True}))
    return folder
