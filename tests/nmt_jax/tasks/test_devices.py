"""Eight devices log the losses of one, for every kind of sharding and for tasks with random draws of their own.

python -m tests.nmt_jax.tasks.test_devices FOLDER NAME … trains variants in FOLDER/NAME.
"""

import json
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from nmt_jax.training.run import train
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir
from tests.conftest import ROOT, with_devices

ALWAYS = {"train.log_every": 1, "train.eval_every": 12, "train.checkpoint_every": 1000, "train.steps": 6}
LOSS_ONLY = {"eval.max_segments": 0, "train.early_stopping_metric": "loss"}
TOGETHER = {**LOSS_ONLY, "train.accumulate": 2, "model.remat": "full", "model.scan_layers": True}
TOGETHER |= {"model.num_decoder_layers": 2, "optimizer.warmup_steps": 40, "train.steps": 12}
FLOAT32 = {"train.accumulate": 2, "model.remat": "full", "model.dtype": "float32"}
CURRICULUM = {"data.curriculum.difficulty": "length", "data.curriculum.growth_steps": 4}
COPIED = {**LOSS_ONLY, "model.copying": "pointer", "loss.coverage": 1.0, "loss.label_smoothing": 0.0, "train.steps": 5}
READ = {**COPIED, "model.copying": "copynet", "model.selective_read": True, "model.coverage": True}
VARIANTS = {
    "data": ("quickstart", LOSS_ONLY),
    "tensor": ("quickstart", {**LOSS_ONLY, "mesh.model": 2}),
    "accumulated": ("quickstart", TOGETHER),
    "all": ("quickstart", {**TOGETHER, "mesh.model": 2, "mesh.fsdp": True}),
    "curriculum": ("quickstart", {**LOSS_ONLY, **CURRICULUM, "data.packing": True}),
    "copied": ("quickstart", COPIED),
    "read": ("copy_summarize", READ),
    "carried": ("awd_lstm", {"train.accumulate": 2}),
    "pretrain": ("bert_tiny", FLOAT32),
    "bidirectional": ("elmo", {"loss.num_sampled": 32, "train.steps": 3}),
    "soft_attention": ("captioning:model=soft", {**LOSS_ONLY, "loss.doubly_stochastic": 0.1, "train.steps": 3}),
    "hard_attention": ("captioning:model=hard", {**LOSS_ONLY, "train.steps": 3}),
    "word_vectors": ("fasttext", {"optimizer.schedule": "constant"}),
}
BASELINES = {"tensor": "data", "all": "accumulated"}  # on one device


def train_variant(folder: Path, name: str) -> None:
    page, changes = VARIANTS[name]
    page, _, argument = page.partition(":")
    settings = {key: str(value) for key, value in {**ALWAYS, **changes}.items()}
    train(f"{ROOT}/configs/{page}.py:{argument},smoke=true", folder / name, settings)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        train_variant(Path(sys.argv[1]), name)


def losses(folder: Path) -> list[float]:
    rows = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [row[name] for row in rows for name in ("loss", "dev/loss") if name in row]


class Runs:
    """Short runs: on one device in this process, on eight simulated devices in one other process."""

    def __init__(self, folder: Path, names: tuple[str, ...]):
        self.folder = folder
        for name in {BASELINES.get(name, name) for name in names}:
            train_variant(folder / "1", name)
        command = [sys.executable, "-m", "tests.nmt_jax.tasks.test_devices", str(folder / "8"), *names]
        finished = subprocess.run(command, env=with_devices(8), cwd=ROOT, capture_output=True, text=True, check=False)
        assert finished.returncode == 0, finished.stderr
        assert finished.stderr.count("devices: 8 x cpu") == len(names)

    def check(self, name: str) -> None:
        one, eight = losses(self.folder / "1" / BASELINES.get(name, name)), losses(self.folder / "8" / name)
        assert len(one) == {**ALWAYS, **VARIANTS[name][1]}["train.steps"] + 1  # one evaluation
        # The examples of a curriculum become harder; a few steps with much dropout teach nothing yet.
        if name not in ("pretrain", "curriculum", "carried", "soft_attention", "hard_attention"):
            assert eight[-2] < eight[0]
        np.testing.assert_allclose(eight, one, atol=2e-5, rtol=1e-5 if name == "word_vectors" else 0)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("runs"), tuple(VARIANTS))


@pytest.mark.slow
def test_eight_devices_log_the_losses_of_one(runs):
    for name in VARIANTS:
        runs.check(name)


@pytest.mark.slow
def test_a_model_trained_on_eight_devices_is_opened_on_one(runs):
    folder = Workdir(runs.folder / "8" / "all")
    assert folder.config().mesh.model == 2
    _, params = open_trained(folder, "translate", checkpoint="last")
    assert {len(leaf.sharding.device_set) for leaf in jax.tree.leaves(params)} == {1}
