"""`nmt-jax convert`: a folder that other verbs read, and one line for every mistake."""

import json
import shutil

import numpy as np
import safetensors.numpy

from nmt_jax.storage.paths import path_of
from tests.fixtures.encoder_folders import write_folder
from tests.nmt_jax.pretrained.test_torch_files import FOLDER, tensor, write


def test_a_converted_encoder_scores(nmt_jax, mistake, tmp_path):
    model = write_folder(tmp_path / "bert")
    weights = safetensors.numpy.load_file(model / "model.safetensors")
    (tmp_path / "text").write_text("a b c\n")
    score = ["score", tmp_path / "text", f"--reference={tmp_path / 'text'}", "--metrics=bertscore", "--format=json"]
    expected = nmt_jax(*score, f"--encoder={model}").lines
    model = shutil.copytree(model, tmp_path / "torch", ignore=shutil.ignore_patterns("model.safetensors"))
    content, storages = {}, []
    for name, value in weights.items():
        strides = tuple(stride // 4 for stride in np.ascontiguousarray(value).strides)
        content[name] = tensor(value.size, 0, value.shape, strides, str(len(storages)))
        storages.append(value.astype("<f4").tobytes())
    write(model / "pytorch_model.bin", content, storages=storages)
    assert "convert them once: nmt-jax convert --input=" in mistake(*score, f"--encoder={model}")
    found = nmt_jax("convert", f"--input={model}", f"--output={tmp_path / 'out'}")
    assert found.code == 0
    assert f"{len(weights)} tensors" in found.stderr
    assert "licence of the weights: not stated" in found.stderr
    assert nmt_jax(*score, f"--encoder={tmp_path / 'out'}").lines == expected


def test_mistakes(mistake, tmp_path):
    output = f"--output={tmp_path / 'out'}"
    assert "needs --input=FILE_OR_FOLDER" in mistake("convert", output)
    assert "unexpected argument 'x'; use --input" in mistake("convert", "x", output)
    assert "no such file or folder" in mistake("convert", f"--input={tmp_path / 'none'}", output)
    assert "0 files of PyTorch (none)" in mistake("convert", f"--input={tmp_path}", output)
    assert "4 files of PyTorch" in mistake("convert", f"--input={FOLDER}", output)
    assert "no such folder" in mistake("convert", f"--input={FOLDER}", output, "--base=nowhere")
    assert "already exists; name a new folder" in mistake("convert", f"--input={FOLDER}", f"--output={FOLDER}")
    comet = write(tmp_path / "m.ckpt", {"state_dict": {"a": tensor()}, "hyper_parameters": {"encoder_model": "BERT"}})
    assert "--base=FOLDER, a folder with config.json" in mistake("convert", f"--input={comet}", output)
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "config.json").write_text(json.dumps({"model_type": "bert"}))
    (tmp_path / "hparams.yaml").write_text("a: !!python/object:os.system {}")
    assert "hparams.yaml: not plain YAML" in mistake(
        "convert", f"--input={comet}", output, f"--base={tmp_path / 'base'}"
    )
    levels = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 7)]
    (tmp_path / "hparams.yaml").write_text("\n".join(levels))
    assert "hparams.yaml: more than 100,000 values in the settings" in mistake(
        "convert", f"--input={comet}", output, f"--base={tmp_path / 'base'}"
    )
    assert not (tmp_path / "out").exists()
    assert "s3://a/b: this must be a local path" in mistake("convert", "--input=s3://a/b", output)


def test_a_model_is_converted_into_an_object_store(nmt_jax, tmp_path, bucket):
    model = write(tmp_path / "m.bin", {"a": tensor()})
    assert nmt_jax("convert", f"--input={model}", f"--output={bucket}/m").code == 0
    assert path_of(f"{bucket}/m/model.safetensors").is_file()
