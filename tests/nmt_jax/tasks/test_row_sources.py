"""Sources that are not text, from files to translations: batches, the laws of text, and the command line."""

import io
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from nmt_jax import __main__ as cli
from nmt_jax import config as configs
from nmt_jax.commands import translate
from nmt_jax.data.vocabulary.vocab import EOS
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.tasks.translate import Translate
from nmt_jax.training.run import train
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir
from tests.conftest import ROOT, with_devices

WORDS = ("red", "green", "blue", "round", "big", "small")
PAGE = f"{ROOT}/configs/quickstart.py:smoke=true"


def write_features(folder, split, count):
    """Texts of one to four words, and two noisy rows for each word."""
    random = np.random.default_rng(len(split))
    prototypes, texts = np.eye(6, 5, dtype=np.float32), []
    for number in range(count):
        words = random.integers(0, 6, size=random.integers(1, 5))
        rows = np.repeat(prototypes[words], 2, axis=0)
        np.save(folder / f"{split}{number}.npy", rows + random.normal(0, 0.1, rows.shape))
        texts.append(" ".join(WORDS[word] for word in words))
    (folder / f"{split}.paths").write_text("".join(f"{split}{number}.npy\n" for number in range(count)))
    (folder / f"{split}.en").write_text("".join(f"{text}\n" for text in texts))


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """Config changes for a corpus of features."""
    folder = tmp_path_factory.mktemp("features")
    write_features(folder, "train", 60)
    write_features(folder, "val", 8)
    data = {"corpus": "text", "kind": "features", "feature_width": "5", "directory": str(folder), "num_buckets": "2"}
    data |= {"source": "paths", "target": "en", "cache": str(folder / "cache")}
    return {f"data.{key}": value for key, value in data.items()} | {
        **{"vocab.size": "290", "train.batch_tokens": "128", "train.early_stopping_metric": "loss"},
        **{"optimizer.schedule": "constant", "optimizer.warmup_steps": "1", "eval.max_segments": "0"},
    }


def test_batches_have_the_rows_of_the_files_in_buckets_by_length(settings, tmp_path):
    task = Translate(configs.load(PAGE, settings), tmp_path, sharding.make_mesh())
    folder = settings["data.directory"]
    batches = task.batches(1)
    assert len(batches.shapes) == 2
    texts = {}
    for number, text in enumerate(pathlib.Path(folder, "train.en").read_text().splitlines()):
        texts[np.load(f"{folder}/train{number}.npy").astype(np.float32).tobytes()] = text
    batch = batches[0]
    assert batch["source"].dtype == np.float32
    for rows, length, ids in zip(batch["source"], batch["source_lengths"], batch["target"], strict=True):
        if length:
            found = task.vocabularies[1].decode([int(piece) for piece in ids[ids > 0] if piece != EOS])
            assert found == texts[rows[:length].tobytes()]
        assert (rows[length:] == 0).all()
    assert [path.name for path in (tmp_path / "vocab").iterdir()] == ["target.model"]
    assert set(task.dummy_batch((2, 3, 4))) == set(batch) == {"source", "source_lengths", "target"}


def test_images_are_rows_of_patches_on_a_grid(settings, tmp_path):
    for split in ("train", "val"):
        (tmp_path / f"{split}.paths").write_text("a.png\n")
        (tmp_path / f"{split}.en").write_text("a red square\n")
    Image.new("RGB", (20, 30), (255, 0, 0)).save(tmp_path / "a.png")
    changes = {"data.directory": str(tmp_path), "data.kind": "image", "data.image_size": "12", "data.patch_size": "4"}
    task = Translate(
        configs.load(PAGE, settings | changes | {"vocab.size": "280"}), tmp_path / "w", sharding.make_mesh()
    )
    batch = task.batches(1)[0]
    assert batch["source"].shape == (len(batch["target"]), 9, 48)
    assert batch["source_lengths"].tolist() == [9] + [0] * (len(batch["target"]) - 1)
    np.testing.assert_array_equal(batch["source"][0], np.tile(np.float32([1, -1, -1]), (9, 16)))
    assert task.model.source_columns == (3,)


IMAGES = {"data.kind": "image", "data.image_size": "32"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (IMAGES | {"data.patch_size": "5"}, "config.data.patch_size=5: must divide data.image_size=32"),
        (
            IMAGES | {"data.image_size": "48", "data.patch_size": "12", "model.image_encoder": "convolution"},
            "config.data.patch_size=12: model.image_encoder='convolution' needs a power of 2",
        ),
        ({"model.image_encoder": "convolution"}, "image_encoder='convolution': has no effect on data.kind='features'"),
        ({"data.source_word_dropout": "0.1"}, "source_word_dropout=0.1: has no effect on data.kind='features'"),
        ({"loss.doubly_stochastic": "0.1"}, "config.loss.doubly_stochastic=0.1: needs model_name='rnn' with soft"),
        (IMAGES | {"data.patch_size": "2"}, "config.data.max_length=64: an image has 256 patches; set it to that or"),
        ({"data.feature_width": "0"}, "config.data.feature_width=0: set it to the width of the rows"),
        ({"data.corpus": "grammar"}, "config.data.source='paths': must be en or de"),
        ({"data.corpus": "tfds"}, "config.data.kind='features': the corpus 'tfds' has text only"),
        ({"data.kind": "features,image"}, "'features,image': 2 kinds, but data.source='paths' names 1 sources"),
        ({"data.kind": "features,sound", "data.source": "a,b"}, "use text, features, image, audio, not 'sound'"),
        ({"data.corpus": "scenes"}, "the corpus 'scenes' has text and images"),
        (IMAGES | {"data.corpus": "vqa"}, "config.data.kind='image': the corpus 'vqa' needs data.kind=text,image"),
        (IMAGES | {"data.corpus": "scenes", "data.name": "odd"}, "config.data.name='odd': the families of scenes are"),
        (
            IMAGES | {"data.corpus": "scenes", "data.kind": "text,image", "data.source": "fr,scenes"},
            "config.data.source='fr': the texts of these scenes are en and de",
        ),
        (
            IMAGES | {"data.corpus": "scenes", "data.name": "questions", "data.target": "en"},
            "config.data.target='en': the texts of these scenes are question and answer",
        ),
        ({"data.packing": "true"}, "config.data.packing=True: needs a source of text, but data.kind='features'; set"),
        ({"data.filters": '["duplicates"]'}, "config.data.filters=.*: needs a source of text"),
        ({"data.curriculum.difficulty": "rarity"}, "rows have no words; use length or none"),
        ({"vocab.sampling_alpha": "0.1"}, "config.vocab.sampling_alpha=0.1: needs a source of text"),
    ],
)
def test_settings_for_text_are_errors(changes, message, settings):
    with pytest.raises(UserError, match=message):
        configs.load(PAGE, settings | changes)


def test_a_bad_file_ends_training_with_one_line(settings, tmp_path, capsys):
    for split in ("train", "val"):
        (tmp_path / f"{split}.paths").write_text("a.npy\n")
        (tmp_path / f"{split}.en").write_text("red\n")
    np.save(tmp_path / "a.npy", np.ones((2, 4)))
    flags = [f"--config.{key}={value}" for key, value in (settings | {"data.directory": str(tmp_path)}).items()]
    assert cli.main(["train", f"--config={PAGE}", f"--workdir={tmp_path}/w", *flags, "--config.vocab.size=264"]) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith(f"nmt-jax: error: {tmp_path}/a.npy: rows of 4 features, but config.data.feature_width=5")


# The laws of text, with real trainings


def losses(workdir):
    rows = map(json.loads, (workdir / "metrics.jsonl").read_text().splitlines())
    return {row["step"]: row["loss"] for row in rows if "loss" in row}


@pytest.fixture(scope="module")
def workdir(settings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("work") / "w"
    steps = {"train.steps": "4", "train.log_every": "1", "train.eval_every": "4", "train.checkpoint_every": "4"}
    train(PAGE, folder, settings | steps | {"data.num_buckets": "1"})
    return folder


@pytest.mark.slow
def test_eight_devices_and_an_interruption_change_nothing(settings, workdir, tmp_path):
    for steps in (2, 4):
        changes = settings | {"train.log_every": "1", "train.eval_every": "2", "train.checkpoint_every": "2"}
        changes |= {"train.steps": str(steps), "data.num_buckets": "1"}
        flags = [f"--config.{key}={value}" for key, value in changes.items()]
        command = [sys.executable, "-m", "nmt_jax", "train", f"--config={PAGE}", f"--workdir={tmp_path}/w", *flags]
        finished = subprocess.run(command, env=with_devices(8), cwd=ROOT, capture_output=True, text=True, check=False)
        assert finished.returncode == 0, finished.stderr
        assert "devices: 8 x cpu" in finished.stderr
    one, eight = losses(workdir), losses(tmp_path / "w")
    assert sorted(one) == sorted(eight) == [1, 2, 3, 4]
    np.testing.assert_allclose([eight[step] for step in one], list(one.values()), atol=2e-5)


@pytest.mark.slow
def test_translations_of_paths_do_not_depend_on_other_lines(settings, workdir, monkeypatch, capfdbinary):
    folder = settings["data.directory"]
    lines = [f"{folder}/val0.npy", "", f"{folder}/val1.npy", f"{folder}/val2.npy"]
    together = [best[0] for best in translate.run(workdir, lines, beam_size=2, with_attention=True)]
    alone = [best[0] for line in lines for best in translate.run(workdir, [line], beam_size=2)]
    assert [best.ids for best in together] == [best.ids for best in alone]
    for one, other in zip(together, alone, strict=True):
        assert one.score == pytest.approx(other.score, rel=1e-5)
    assert together[1].text == ""
    count = len(np.load(lines[0]))
    assert together[0].scored.source_pieces == [f"▁{row}" for row in range(count)]
    np.testing.assert_allclose(together[0].scored.attention.sum(axis=1), 1, rtol=1e-5)
    stdin = "".join(f"{line}\n" for line in lines).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    assert cli.main(["translate", f"--workdir={workdir}", "--beam_size=2"]) == 0
    assert capfdbinary.readouterr().out.decode() == "".join(f"{best.text}\n" for best in together)


@pytest.mark.slow
def test_a_bad_path_ends_translation_with_its_line(settings, workdir, tmp_path, capsys):
    (tmp_path / "paths").write_text(f"{settings['data.directory']}/val0.npy\nmissing.npy\n")
    (tmp_path / "given").write_text("a\nb\n")
    command = ["translate", f"--workdir={workdir}", f"--input={tmp_path}/paths"]
    for flags in (["--beam_size=2"], [f"--given={tmp_path}/given"]):
        assert cli.main([*command, *flags]) == 2
        assert capsys.readouterr().err.strip() == f"nmt-jax: error: {tmp_path}/paths:2: missing.npy: no such file"


@pytest.mark.slow
def test_a_recurrent_model_is_trained_and_another_width_is_another_model(settings, tmp_path):
    changes = settings | {"train.steps": "1", "data.num_buckets": "1"}
    page = f"{ROOT}/configs/rnn_luong.py:smoke=true"
    assert np.isfinite(train(page, tmp_path / "w", changes)["dev/loss"])
    found = list(translate.run(tmp_path / "w", [f"{settings['data.directory']}/val0.npy"], beam_size=2))
    assert len(found) == 1
    with pytest.raises(UserError, match=r"data\.feature_width was 5, now 6"):
        train(page, tmp_path / "w", changes | {"data.feature_width": "6"})


@pytest.mark.slow
def test_a_text_and_an_image_are_read_together(tmp_path):
    page, changes = f"{ROOT}/configs/multimodal_translation.py:smoke=true", {"eval.max_segments": "0"}
    changes |= {"train.early_stopping_metric": "loss", "data.cache": str(tmp_path / "cache"), "data.size": "40"}
    assert np.isfinite(train(page, tmp_path / "w", changes)["dev/loss"])
    lines = ["a small red bow on the left\tscenes:ambiguous:test:1", "", "a nut\tscenes:ambiguous:test:2"]
    found = [best[0] for best in translate.run(tmp_path / "w", lines, beam_size=2)]
    assert [bool(best.ids) for best in found] == [True, False, True]
    task, params = open_trained(Workdir(tmp_path / "w"), "translate")
    weights = task.attention(params, lines[0], "ein kleiner roter Bogen links")
    (picture,) = weights["pictures"]
    assert picture.start == weights["source_pieces"].index("</s>") + 1
    assert weights["source_pieces"][picture.start :] == [f"▁{row}" for row in range(36)]
    assert weights["cross"].shape[2:] == (len(weights["target_pieces"]), picture.start + 36)
    np.testing.assert_allclose(weights["cross"].sum(axis=-1), 1, rtol=1e-5)
