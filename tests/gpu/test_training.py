"""A training step on a GPU equals that on the CPU, for every task; runs that are killed go on; several GPUs are one."""

import json
import pathlib
import signal
import time

import numpy as np
import pytest

from nmt_jax import config as configs
from tests.conftest import ROOT
from tests.test_configs import TRAINED

pytestmark = pytest.mark.gpu

STEPS = 3
TOLERANCE = 1e-2  # of losses
BFLOAT16 = {"model.dtype": "bfloat16"}
CASES = [(page, {}) for page in TRAINED] + [
    ("quickstart", BFLOAT16),
    ("quickstart", BFLOAT16 | {"data.packing": True}),
    ("quickstart", BFLOAT16 | {"model.scan_layers": True, "model.remat": "dots"}),
]
SHARED = {"data": {}, "model": {"mesh.model": 2}, "fsdp": {"mesh.fsdp": True}}


def losses(workdir: pathlib.Path) -> list[tuple[int, str, float]]:
    """The logged losses, as (step, name, value)."""
    rows = map(json.loads, (workdir / "metrics.jsonl").read_text().splitlines())
    return [(row["step"], name, row[name]) for row in rows for name in ("loss", "dev/loss") if name in row]


def assert_close(one: list[tuple[int, str, float]], other: list[tuple[int, str, float]], tolerance: float) -> None:
    assert [row[:2] for row in one] == [row[:2] for row in other]
    np.testing.assert_allclose([row[2] for row in other], [row[2] for row in one], rtol=0, atol=tolerance)


def without_dropout(page: str) -> dict[str, object]:
    """The changes that turn dropout off: the CPU and a GPU draw different masks."""
    config = configs.flatten(configs.load(f"{ROOT}/configs/{page}.py:smoke=true"))
    return {key: 0.0 for key in config if key.endswith("dropout") and not isinstance(config[key], bool)}


@pytest.mark.parametrize(("page", "changes"), CASES, ids=["-".join([page, *map(str, c.values())]) for page, c in CASES])
def test_steps_equal_those_of_the_cpu(page, changes, commands, tmp_path):
    changes = without_dropout(page) | {"train.steps": STEPS, "train.eval_every": STEPS} | changes
    smoke = f"{page}.py:smoke=true"
    commands.finish(*(commands.train(smoke, tmp_path / str(count), changes, count) for count in (0, 1)))
    cpu, gpu = losses(tmp_path / "0"), losses(tmp_path / "1")
    assert [step for step, name, _ in cpu if name == "loss"] == [1, 2, 3]
    assert cpu[-1][1] == "dev/loss"
    assert_close(cpu, gpu, TOLERANCE)


LONG = {"train.steps": 120, "train.checkpoint_every": 10, "train.eval_every": 120, "train.keep_last": 2}
FLOAT32 = {"JAX_DEFAULT_MATMUL_PRECISION": "highest"}  # or other sums and kernels would show: products are in TF32


def kill_at(process, workdir: pathlib.Path, step: int) -> None:
    """Kill a run as soon as it has logged a step."""
    log, deadline = workdir / "metrics.jsonl", time.monotonic() + 300
    while not (log.exists() and log.read_text().count('"loss"') >= step):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "it had ended before the signal came"


def test_a_killed_and_restarted_run_logs_the_same_losses(commands, tmp_path):
    page, whole, killed = "quickstart.py:smoke=true", tmp_path / "whole", tmp_path / "killed"
    commands.finish(commands.train(page, whole, LONG, 1, **FLOAT32))
    kill_at(commands.train(page, killed, LONG, 1, **FLOAT32), killed, 12)
    commands.finish(commands.train(page, killed, LONG, 1, **FLOAT32))
    assert [step for step, name, _ in losses(killed) if name == "loss"] == [*range(1, 121)]
    assert_close(losses(whole), losses(killed), 1e-3)  # sums over threads of a GPU have no fixed order


@pytest.mark.parametrize("name", SHARED)
def test_several_devices_log_the_losses_of_one(name, commands, tmp_path):
    count = 1 << min(commands.found.count.bit_length() - 1, 3)  # batches are the same for 1, 2, 4 and 8 devices
    if count == 1:
        pytest.skip("there is one device")
    page, changes = "quickstart.py:smoke=true", {"train.steps": 8, "train.eval_every": 8}  # dropout included
    commands.finish(commands.train(page, tmp_path / "one", changes, 1, **FLOAT32))
    commands.finish(commands.train(page, tmp_path / "several", changes | SHARED[name], count, **FLOAT32))
    assert_close(losses(tmp_path / "one"), losses(tmp_path / "several"), 1e-3)
