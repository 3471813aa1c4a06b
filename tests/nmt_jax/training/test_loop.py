"""The training loop: interrupted runs continue exactly, runs end when they should, errors are one line."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import numpy as np
import pytest

from nmt_jax.checkpoints.reading import load_params
from nmt_jax.checkpoints.writing import Checkpoints
from nmt_jax.errors import UserError
from nmt_jax.training import loop
from tests.fixtures import toy
from tests.fixtures.toy import ROOT


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workdir = tmp_path_factory.mktemp("uninterrupted")
    toy.train(workdir)
    return workdir


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen]]:
    """Start the toy program in a workdir; it is killed at the end of the test."""
    started = []

    def start(workdir: Path, *arguments: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "tests.fixtures.toy", str(workdir), *arguments]
        started.append(subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def wait_for_step(workdir: Path, step: int, process: subprocess.Popen) -> None:
    log = workdir / "metrics.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if log.exists() and any(json.loads(line)["step"] >= step for line in log.read_text().splitlines(True)[:-1]):
            return
        time.sleep(0.005)
    pytest.fail(f"step {step} was not reached: {process.communicate()[1]}")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_process_started_again_equals_an_uninterrupted_one(number, uninterrupted, start, tmp_path):
    process = start(tmp_path, "toy.pause=0.04")
    step = int(np.random.default_rng(number).integers(7, 22))
    wait_for_step(tmp_path, step, process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == (-9 if number == signal.SIGKILL else 128 + number), errors
    assert toy.rows(tmp_path)[-1]["step"] < 30
    if number != signal.SIGKILL:
        assert "saved at step" in errors
    toy.train(tmp_path)
    assert_same_run(tmp_path, uninterrupted)


def assert_same_run(workdir: Path, other: Path) -> None:
    """Two workdirs have the same log and the same parameters."""
    assert toy.rows(workdir) == toy.rows(other)
    for ours, theirs in zip(*(jax.tree.leaves(load_params(d, "last")) for d in (workdir, other)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


class Failing(toy.Toy):
    """The toy task, which calls a function before it makes a batch."""

    def __init__(self, config, before_batch):
        super().__init__(config)
        self.before_batch = before_batch

    def batches(self, steps):
        return FailingBatches(super().batches(steps), self.before_batch)


class FailingBatches:
    def __init__(self, source, before_batch):
        self.source, self.before_batch, self.shapes = source, before_batch, source.shapes

    def __len__(self):
        return len(self.source)

    def __getitem__(self, index):
        self.before_batch(index)
        return self.source[index]


def test_a_crashed_run_continues_from_its_last_checkpoint(uninterrupted, tmp_path):
    def crash(index):
        if index == 18:
            raise RuntimeError("crash")

    settings = toy.config()
    with pytest.raises(RuntimeError, match="crash"):
        loop.run(settings, tmp_path, Failing(settings, crash))
    assert toy.rows(tmp_path)[-1]["step"] < 19
    assert max(Checkpoints(tmp_path / "checkpoints").steps()) < 18
    toy.train(tmp_path)
    assert_same_run(tmp_path, uninterrupted)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_at_once_and_the_run_continues(number, uninterrupted, tmp_path, capsys):
    settings = toy.config()
    send = Failing(settings, lambda index: os.kill(os.getpid(), number) if index == 17 else None)
    with pytest.raises(SystemExit) as stopped:
        loop.run(settings, tmp_path, send)
    assert stopped.value.code == 128 + number
    assert 0 < toy.rows(tmp_path)[-1]["step"] < 30
    assert max(Checkpoints(tmp_path / "checkpoints").steps()) == toy.rows(tmp_path)[-1]["step"]
    assert "saved at step" in capsys.readouterr().err
    toy.train(tmp_path)
    assert_same_run(tmp_path, uninterrupted)


@pytest.mark.slow
def test_a_signal_interrupts_an_evaluation_which_is_made_up_for(uninterrupted, tmp_path):
    class Interrupted(toy.Toy):
        def evaluate(self, params):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)

    settings = toy.config()
    began = time.monotonic()
    with pytest.raises(SystemExit) as stopped:
        loop.run(settings, tmp_path, Interrupted(settings))
    assert stopped.value.code == 143
    assert time.monotonic() - began < 50
    assert max(Checkpoints(tmp_path / "checkpoints").steps()) == 8
    toy.train(tmp_path, **{"train.steps": 8})  # makes up for the evaluation, and saves it
    settings = toy.config(**{"train.steps": 8})
    task = toy.Toy(settings)
    loop.run(settings, tmp_path, task)
    assert task.evaluations == 0
    toy.train(tmp_path)
    assert toy.rows(tmp_path) == toy.rows(uninterrupted)


def test_a_finished_run_is_not_trained_further(uninterrupted, tmp_path):
    first = toy.train(tmp_path)
    before = (tmp_path / "metrics.jsonl").read_text()
    assert toy.train(tmp_path) == first
    assert (tmp_path / "metrics.jsonl").read_text() == before
    assert np.isfinite(first["loss"])
    assert first["step"] == 30


def test_training_lowers_the_loss_and_logs_every_step(uninterrupted):
    rows = [row for row in toy.rows(uninterrupted) if "loss" in row]
    assert [row["step"] for row in rows] == list(range(1, 31))
    assert np.mean([row["loss"] for row in rows[-6:]]) < np.mean([row["loss"] for row in rows[:6]]) - 0.3
    assert [row["learning_rate"] for row in rows[:5]] == pytest.approx([0.004, 0.008, 0.012, 0.016, 0.02])
    assert rows[19]["learning_rate"] == pytest.approx(0.01)
    evaluations = [row for row in toy.rows(uninterrupted) if "dev/bleu" in row]
    assert [row["step"] for row in evaluations] == [8, 16, 24, 30]


@pytest.mark.slow
def test_a_damaged_checkpoint_is_replaced_by_the_one_before(uninterrupted, tmp_path, capsys):
    toy.train(tmp_path)
    newest = max(path for path in (tmp_path / "checkpoints/30").rglob("*") if path.is_file() and "/d/" in str(path))
    os.truncate(newest, 10)
    for path in (tmp_path / "checkpoints/30/params").rglob("manifest.ocdbt"):
        path.unlink()
    capsys.readouterr()
    toy.train(tmp_path)
    assert "checkpoints/30: damaged" in capsys.readouterr().err
    assert toy.rows(tmp_path) == toy.rows(uninterrupted)


def test_early_stopping_counts_over_restarts(tmp_path):
    class Worsening(toy.Toy):
        def evaluate(self, params):
            self.evaluations += 1
            return {"dev/bleu": 10.0 - min(self.evaluations, 1), "dev/loss": 1.0}

    def run(**changes):
        settings = toy.config(**{"train.eval_every": 2, "train.patience": 3, **changes})
        task = Worsening(settings)
        return loop.run(settings, tmp_path, task), task

    run(**{"train.steps": 4})  # evaluated at 2 (best) and 4 (one without improvement)
    result, task = run()
    assert (result["step"], task.evaluations) == (8, 2)
    assert run()[0]["step"] == 8  # stays stopped
    assert 2 in Checkpoints(tmp_path / "checkpoints").steps()  # the best one is kept


@pytest.mark.slow
def test_another_metric_starts_anew(tmp_path, capsys):
    class Measured(toy.Toy):
        def evaluate(self, params):
            return {"dev/bleu": 90.0, "dev/loss": 1.0 / (1 + self.evaluations)}

    def run(steps, metric):
        changes = {"train.steps": steps, "train.eval_every": 2, "train.patience": 3, "train.keep_last": 1}
        settings = toy.config(**changes, **{"train.early_stopping_metric": metric})
        return loop.run(settings, tmp_path, Measured(settings))

    run(4, "bleu")  # 90 at step 2, and one evaluation without improvement
    assert run(12, "loss")["step"] == 12
    assert "best dev/loss 1 at step 6" in capsys.readouterr().err
    assert Checkpoints(tmp_path / "checkpoints").best_steps() == [6, 12]


@pytest.mark.slow
def test_minutes_count_over_restarts(tmp_path):
    limit = {"train.minutes": 0.05, "train.steps": 10**6, "toy.pause": 0.01}
    result = toy.train(tmp_path, **limit)
    assert 0 < result["step"] < 10**6
    assert toy.rows(tmp_path)[-1]["step"] == result["step"]
    assert "dev/bleu" in toy.rows(tmp_path)[-1]  # evaluated at its end
    assert toy.train(tmp_path, **limit)["step"] == result["step"]


def test_ten_consecutive_non_finite_steps_stop_the_run(tmp_path, capsys):
    poison = {"toy.poison": [2, *range(12, 30)]}
    with pytest.raises(
        UserError, match=r"10 consecutive steps, the last at step 22 \(source 16x3, target 16x4\).*learning_rate"
    ):
        toy.train(tmp_path, **poison)
    losses = {row["step"]: row["loss"] for row in toy.rows(tmp_path) if "loss" in row}
    assert [step for step in losses if losses[step] is None] == [3, *range(13, 22)]
    assert [row["skipped"] for row in toy.rows(tmp_path) if "loss" in row][-1] == 10  # 1 + 9 before the run stopped
    assert "step 3: loss or gradient not finite" in capsys.readouterr().err


def test_init_from_copies_the_parameters_of_another_workdir(uninterrupted, tmp_path):
    toy.train(tmp_path / "new", **{"init_from": str(uninterrupted), "train.steps": 1, "optimizer.learning_rate": 0.0})
    for ours, theirs in zip(
        *(jax.tree.leaves(load_params(workdir, "best")) for workdir in (tmp_path / "new", uninterrupted)), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_init_from_another_model_lists_the_names(uninterrupted, tmp_path):
    class Wider(toy.Toy):
        def init(self, rng):
            params = super().init(rng)
            return {
                "embeddings": params["embedding"],
                "output": {"kernel": params["output"]["kernel"][:, :5], "bias": params["output"]["bias"]},
            }

    settings = toy.config(init_from=str(uninterrupted))
    with pytest.raises(UserError) as error:
        loop.run(settings, tmp_path, Wider(settings))
    assert "missing: embeddings" in str(error.value)
    assert "unexpected: embedding/table;" in str(error.value)
    assert "of another shape: output/kernel [8, 16] instead of [8, 5]" in str(error.value)


def test_init_from_an_empty_workdir_is_an_error(tmp_path):
    with pytest.raises(UserError, match="no checkpoint; train first"):
        toy.train(tmp_path / "new", init_from=str(tmp_path / "nothing"))


def test_changed_optimizer_settings_are_not_reported_as_damage(uninterrupted, tmp_path):
    toy.train(tmp_path, **{"train.steps": 5})
    with pytest.raises(UserError, match=r"does not fit this config.*missing: ema"):
        toy.train(tmp_path, **{"optimizer.ema_decay": 0.9})
    assert Checkpoints(tmp_path / "checkpoints").steps() == [5]


@pytest.mark.parametrize("name", ["steps", "accumulate", "log_every", "eval_every", "checkpoint_every", "keep_last"])
def test_counts_must_be_positive(name, tmp_path):
    with pytest.raises(UserError, match=f"train.{name}=0"):
        toy.train(tmp_path, **{f"train.{name}": 0})


def test_an_unknown_early_stopping_metric_is_an_error(tmp_path):
    with pytest.raises(UserError, match="'chrf': must be a measure of the task: loss, bleu"):
        toy.train(tmp_path, **{"train.early_stopping_metric": "chrf"})


def test_every_shape_is_compiled_once_and_the_largest_first(tmp_path, capsys):
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, duration, **rest: (
            compiled.append(rest.get("fun_name", "")) if name.endswith("backend_compile_duration") else None
        )
    )
    try:
        toy.train(tmp_path, **{"train.steps": 12, "train.eval_every": 100})
    finally:
        jax.monitoring.clear_event_listeners()
    assert "compiled 16x3x4, the largest shape" in capsys.readouterr().err
    steps = [name for name in compiled if "train_step" in name]
    assert len(steps) == len(toy.SHAPES), compiled


@pytest.mark.slow
def test_a_full_disk_keeps_the_last_checkpoint(uninterrupted, tmp_path, monkeypatch):
    toy.train(tmp_path, **{"train.steps": 10})
    from orbax.checkpoint import v1 as ocp

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ocp, "save_checkpointables_async", full)
        with pytest.raises(
            UserError, match="checkpoints: cannot save step 15: the disk is full; the checkpoint of step 10 is intact"
        ):
            toy.train(tmp_path)
    toy.train(tmp_path)
    assert toy.rows(tmp_path)[-1] == toy.rows(uninterrupted)[-1]
