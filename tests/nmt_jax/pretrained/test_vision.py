"""Features of images by pretrained encoders: equal to the reference, prepared as published, read by a model."""

import json
import pathlib

import numpy as np
import pytest
import safetensors.numpy
from PIL import Image

from nmt_jax.data.readers.images import ImageFiles
from nmt_jax.errors import UserError
from nmt_jax.pretrained.vision import load_vision
from nmt_jax.storage.paths import path_of
from tests.conftest import ROOT
from tests.fixtures.family_folders import tensors

GOLDEN = json.loads((ROOT / "tests" / "fixtures" / "vision_golden.json").read_text())
MODELS = ("ViTModel", "CLIPVisionModel")
SIZE, PATCH, WIDTH = 12, 4, 16
PROCESSOR = {"size": {"height": SIZE, "width": SIZE}, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
CLIP_PROCESSOR = {
    "size": {"shortest_edge": SIZE},
    "do_center_crop": True,
    "crop_size": {"height": SIZE, "width": SIZE},
    "resample": 3,
    "image_mean": [0.4, 0.5, 0.6],
    "image_std": [0.2, 0.3, 0.4],
}


def write(folder, kind, prefix="", processor=PROCESSOR, **config):
    """A golden model as a folder; config overrides what its config.json says."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(GOLDEN[kind]["config"] | config))
    named = {prefix + name: value for name, value in tensors(GOLDEN[kind]["tensors"]).items()}
    safetensors.numpy.save_file(named, folder / "model.safetensors")
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return folder


def save_image(path, width=30, height=20):
    pixels = np.random.default_rng(3).integers(0, 256, (height, width, 3), np.uint8)
    Image.fromarray(pixels).save(path)
    return Image.fromarray(pixels)


@pytest.mark.parametrize(("kind", "prefix"), [*((kind, "") for kind in MODELS), ("CLIPVisionModel", "vision_model.")])
def test_states_equal_the_reference(tmp_path, kind, prefix):
    encoder = load_vision(write(tmp_path / "m", kind, prefix))
    pixels = np.array(GOLDEN[kind]["pixels"], np.float32).transpose(0, 2, 3, 1)
    patches = np.stack([ImageFiles(SIZE, PATCH).cut(image) for image in pixels])
    states = encoder.model.apply({"params": encoder.params}, patches)
    assert states.shape == (2, 9, WIDTH)
    np.testing.assert_allclose(states, GOLDEN[kind]["states"], atol=2e-5, rtol=0)


def test_a_whole_clip_gives_its_image_encoder(tmp_path):
    alone = load_vision(write(tmp_path / "alone", "CLIPVisionModel"))
    folder = write(tmp_path / "whole", "CLIPVisionModel", "vision_model.")
    content = {"model_type": "clip", "vision_config": GOLDEN["CLIPVisionModel"]["config"], "text_config": {}}
    (folder / "config.json").write_text(json.dumps(content))
    whole = load_vision(folder)
    assert whole.model == alone.model
    np.testing.assert_array_equal(whole.params["positions"], alone.params["positions"])


def test_images_are_prepared_as_the_folder_says(tmp_path):
    image = save_image(tmp_path / "a.png")
    plain = load_vision(write(tmp_path / "vit", "ViTModel")).preparation.read(str(tmp_path / "a.png"))
    expected = np.asarray(image.resize((SIZE, SIZE), Image.Resampling.BILINEAR), np.float32) / 127.5 - 1
    np.testing.assert_allclose(plain, expected, atol=1e-6)
    clip = load_vision(write(tmp_path / "clip", "CLIPVisionModel", processor=CLIP_PROCESSOR))
    middle = image.resize((18, SIZE), Image.Resampling.BICUBIC).crop((3, 0, 3 + SIZE, SIZE))
    expected = (np.asarray(middle, np.float64) / 255 - CLIP_PROCESSOR["image_mean"]) / CLIP_PROCESSOR["image_std"]
    np.testing.assert_allclose(clip.preparation.read(str(tmp_path / "a.png")), expected, atol=1e-5)


def test_a_narrow_image_that_would_become_too_large_is_refused(tmp_path):
    Image.new("RGB", (1, 200_000)).save(tmp_path / "a.png")
    preparation = load_vision(write(tmp_path / "clip", "CLIPVisionModel", processor=CLIP_PROCESSOR)).preparation
    with pytest.raises(UserError, match=r"a\.png: would be resized to 12 x 2,400,000 pixels, which is too large"):
        preparation.read(str(tmp_path / "a.png"))


def test_the_command_writes_sources_of_a_model(tmp_path, nmt_jax, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "vit", "ViTModel")
    for number in range(5):
        save_image(tmp_path / f"{number}.png", width=20 + number)
    pathlib.Path("images").write_text("".join(f"{number}.png\n" for number in range(5)))
    found = nmt_jax("features", "--encoder=vit", "--input=images", "--output=rows", "--batch=2")
    assert found.code == 0
    assert found.lines == [f"rows/{number}.npy" for number in range(1, 6)]
    rows = [np.load(path) for path in found.lines]
    assert {(row.shape, row.dtype) for row in rows} == {((9, WIDTH), np.dtype(np.float32))}
    alone = load_vision(tmp_path / "vit").features(["4.png"], 1)[0]
    np.testing.assert_allclose(rows[4], alone, atol=1e-5)  # whatever is beside it in its batch
    for split in ("train", "val", "test"):
        pathlib.Path(f"{split}.rows").write_text("".join(f"{path}\n" for path in found.lines))
        pathlib.Path(f"{split}.en").write_text("a b\n" * 5)
    changes = {"data.corpus": "text", "data.directory": tmp_path, "data.source": "rows", "data.target": "en"}
    changes |= {"data.kind": "features", "data.feature_width": WIDTH, "vocab.size": 300, "eval.max_segments": 0}
    changes["train.early_stopping_metric"] = "loss"
    flags = [f"--config.{name}={value}" for name, value in changes.items()]
    trained = nmt_jax("train", f"--config={ROOT}/configs/quickstart.py:smoke=true", "--workdir=w", *flags)
    assert trained.code == 0, trained.stderr


def test_an_interrupted_command_is_continued_and_another_one_refused(tmp_path, nmt_jax, mistake, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "vit", "ViTModel")
    for number in range(3):
        save_image(tmp_path / f"{number}.png", width=20 + number)
    command = ("features", "--encoder=vit", "--output=rows", "--batch=1")
    broken = nmt_jax(*command, stdin="0.png\n1.png\n3.png\n")
    assert (broken.code, broken.lines) == (2, ["rows/1.npy", "rows/2.npy"])
    made = [pathlib.Path(path).stat().st_mtime_ns for path in broken.lines]
    assert "rows: exists already and was not made" in mistake(*command, stdin="1.png\n0.png\n")
    assert "rows: exists already and was not made" in mistake(*command, "--dtype=bfloat16", stdin="0.png\n1.png\n")
    continued = nmt_jax(*command, stdin="0.png\n1.png\n2.png\n")
    assert continued.lines == ["rows/1.npy", "rows/2.npy", "rows/3.npy"]
    assert [pathlib.Path(path).stat().st_mtime_ns for path in broken.lines] == made
    pathlib.Path("other").mkdir()
    pathlib.Path("other", "a.txt").touch()
    assert "other: exists already and was not made" in mistake(*command[:2], "--output=other", stdin="0.png\n")


def test_features_are_written_to_an_object_store(tmp_path, nmt_jax, mistake, bucket, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "vit", "ViTModel")
    save_image(tmp_path / "a.png")
    command = ("features", f"--output={bucket}/rows")
    finished = nmt_jax(*command, "--encoder=vit", stdin="a.png\n")
    assert finished.lines == [f"{bucket}/rows/1.npy"]
    with path_of(finished.lines[0]).open("rb") as file:
        assert np.load(file).shape == (9, WIDTH)
    assert nmt_jax(*command, "--encoder=vit", stdin="a.png\n").lines == finished.lines
    assert "this must be a local path" in mistake("features", "--encoder=s3://a/b", "--output=new", stdin="a.png\n")


def test_an_encoder_and_an_image_in_each_line_are_needed(tmp_path, mistake, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "vit", "ViTModel")
    save_image(tmp_path / "a.png")
    assert "needs --encoder=FOLDER and --output=FOLDER" in mistake("features", "--encoder=vit", stdin="a.png\n")
    command = ("features", "--encoder=vit", "--output=rows")
    assert mistake(*command, stdin="a.png\n\n") == "stdin:2: the line is empty; it must name an image"
    assert mistake(*command, stdin="b.png\n") == "b.png: no such file"


@pytest.mark.parametrize(
    ("config", "processor", "words"),
    [
        ({"model_type": "swin"}, PROCESSOR, "model_type 'swin' is not supported; supported are vit, clip_vision_model"),
        ({"patch_size": 5}, PROCESSOR, "patch_size=5 must divide image_size=12"),
        ({"num_hidden_layers": 1}, PROCESSOR, "do not belong to the model in config.json"),
        ({"num_hidden_layers": 3}, PROCESSOR, "no tensor encoder.layer.2."),
        ({"hidden_size": 32}, PROCESSOR, "model.safetensors"),
        ({}, {"size": SIZE}, "not the settings of an image processor: 'image_mean'"),
        ({}, PROCESSOR | {"resample": 99}, "resample must be from 0 to 5, not 99"),
        ({}, PROCESSOR | {"image_mean": [0.5, 0.5]}, "image_mean and image_std must have three numbers"),
        ({}, PROCESSOR | {"image_std": [0.5, 0, 0.5]}, "image_mean and image_std must have three numbers"),
        ({}, CLIP_PROCESSOR | {"size": {"shortest_edge": 0}}, "size must have one or two positive numbers, not [0]"),
        ({}, CLIP_PROCESSOR | {"size": [12, 12, 3]}, "size must have one or two positive numbers, not [12, 12, 3]"),
        ({}, CLIP_PROCESSOR | {"crop_size": float("inf")}, "not the settings of an image processor"),
        ({}, PROCESSOR | {"size": 24}, "makes images of size 24, but the encoder reads 12 pixels"),
    ],
)
def test_folders_that_do_not_fit_together(tmp_path, config, processor, words):
    with pytest.raises(UserError, match=None) as raised:
        load_vision(write(tmp_path / "m", "ViTModel", processor=processor, **config))
    assert words in str(raised.value)
