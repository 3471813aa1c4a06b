"""`nmt-jax train` on a Transformer with dropout: a run that is killed and restarted logs the same losses."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from nmt_jax import __main__ as cli
from tests.fixtures.toy import ROOT

STEPS = 24


def start(workdir: Path) -> subprocess.Popen:
    settings = {
        "data.cache": workdir.parent / "cache",
        "train.steps": STEPS,
        "train.checkpoint_every": 5,
        "train.eval_every": 8,
        "train.keep_last": 2,
        "model.dropout": 0.2,
    }
    flags = [f"--config.{name}={value}" for name, value in settings.items()]
    command = [sys.executable, "-m", "nmt_jax", "train", "--config=configs/quickstart.py:smoke=true", *flags]
    return subprocess.Popen([*command, f"--workdir={workdir}"], cwd=ROOT, stderr=subprocess.PIPE)


def finish(workdir: Path) -> None:
    """Run the command to its end."""
    process = start(workdir)
    errors = process.communicate()[1].decode()
    assert process.returncode == 0, errors


def rows(workdir: Path) -> list[dict]:
    """The logged rows without times."""
    timed = ("tokens_per_second", "seconds")
    lines = (workdir / "metrics.jsonl").read_text().splitlines()
    return [{name: value for name, value in json.loads(line).items() if name not in timed} for line in lines]


def stop_at(workdir: Path, step: int, number: int) -> None:
    """Start the command and send it a signal when `step` is logged."""
    process, log = start(workdir), workdir / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not (log.exists() and any(f'"step": {n},' in log.read_text() for n in range(step, STEPS + 1))):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()[1].decode()
        time.sleep(0.002)
    process.send_signal(number)
    process.communicate()
    assert process.returncode, "it had ended before the signal came"


@pytest.mark.slow
def test_a_killed_and_restarted_run_logs_the_same_losses(tmp_path):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    finish(whole)
    first = int(np.random.default_rng(0).integers(6, 12))
    stop_at(stopped, first, signal.SIGKILL)
    stop_at(stopped, first + 6, signal.SIGTERM)
    finish(stopped)
    assert rows(stopped) == rows(whole), f"killed after step {first}"
    assert [row["step"] for row in rows(whole) if "loss" in row] == list(range(1, STEPS + 1))


def test_a_model_that_does_not_fit_the_memory_is_refused_before_it_is_made(nmt_jax, tmp_path):
    page = f"--config={ROOT}/configs/quickstart.py:smoke=true"
    finished = nmt_jax("train", page, f"--workdir={tmp_path / 'w'}", "--config.model.d_model=262144")
    assert finished.code == 2
    assert "nmt-jax: error: the model, its gradients and the state of the optimizer need " in finished.stderr
    assert not list(tmp_path.glob("w/checkpoints/*"))


@pytest.mark.parametrize("change", ["batch_tokens", "accumulate"])
def test_a_batch_that_does_not_fit_the_memory_is_refused_before_it_is_made(change, nmt_jax, tmp_path):
    page = f"--config={ROOT}/configs/quickstart.py:smoke=true"
    finished = nmt_jax("train", page, f"--workdir={tmp_path / 'w'}", f"--config.train.{change}={2**31 - 1}")
    assert finished.code == 2
    assert "does not fit the memory of a device (needs more than" in finished.stderr
    assert "(now 2147483647)" in finished.stderr
    assert not list(tmp_path.glob("w/checkpoints/*"))


@pytest.mark.parametrize("name", ["x" * 300, "vocab", "file"])
def test_a_workdir_that_cannot_be_made(name, nmt_jax, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "vocab" / "vocab").parent.mkdir()
    (tmp_path / "vocab" / "vocab").touch()
    page = f"--config={ROOT}/configs/quickstart.py:smoke=true"
    finished = nmt_jax("train", page, f"--workdir={tmp_path / name}")
    assert finished.code == 2
    assert finished.stderr.count("\n") == 1
    assert "Traceback" not in finished.stderr
    assert {"x": "File name too long", "v": "vocab/vocab: ", "f": "file: "}[name[0]] in finished.stderr


def test_help_prints_the_keys_of_the_config(capsys):
    assert cli.main(["train", "--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Keys of the config for model transformer, task translate" in out
    assert (
        "--config.optimizer.beta1 Decay of the mean of gradients; not for adagrad. "
        "(a number, at least 0 and less than 1) [0.9]" in out
    )
    page = ROOT / "configs" / "gpt.py"
    assert cli.main(["train", "--bogus", "--help"]) == 0
    assert cli.main(["train", f"--config={page}", "--config.model.d_model=96", "--help"]) == 0
    assert "Width of every layer. (an integer, at least 1 and at most 262,144) [96]" in " ".join(
        capsys.readouterr().out.split()
    )
