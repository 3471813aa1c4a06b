"""The same command on one device and on eight, on real batches of uneven padding, with dropout; also that program.

python -m tests.nmt_jax.tasks.test_devices FOLDER NAME … trains variants in FOLDER/NAME and prints bytes a device.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nmt_jax.training.run import train
from tests.conftest import ROOT, with_devices

STEPS = 12
SETTINGS = {"train.steps": STEPS, "train.log_every": 1, "train.eval_every": 1000, "train.checkpoint_every": 1000}
SETTINGS |= {"eval.max_segments": 0, "train.early_stopping_metric": "loss"}
TOGETHER = {"train.accumulate": 2, "model.remat": True}
VARIANTS = {
    "data": {},
    "tensor": {"mesh.model": 2},
    "fsdp": {"mesh.fsdp": True},
    "accumulated": TOGETHER,
    "all": {**TOGETHER, "mesh.model": 2, "mesh.fsdp": True},
}


if __name__ == "__main__":
    for name in sys.argv[2:]:
        changes = {key: str(value) for key, value in {**SETTINGS, **VARIANTS[name]}.items()}
        train(f"{ROOT}/configs/quickstart.py:smoke=true", Path(sys.argv[1]) / name, changes)


def losses(folder, devices, names):
    """Of a process with so many simulated devices, by variant."""
    environment = with_devices(devices) | {"NMT_JAX_CACHE": str(folder / "cache")}
    command = [sys.executable, "-m", "tests.nmt_jax.tasks.test_devices", str(folder / str(devices)), *names]
    finished = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert f"devices: {devices} x cpu" in finished.stderr
    logs = {name: (folder / str(devices) / name / "metrics.jsonl").read_text().splitlines() for name in names}
    return {name: [row["loss"] for row in map(json.loads, log) if "loss" in row] for name, log in logs.items()}


@pytest.fixture(scope="module")
def eight(tmp_path_factory):
    """The losses of each variant on eight devices, and those of one device."""
    folder = tmp_path_factory.mktemp("devices")
    return losses(folder, 8, VARIANTS), losses(folder, 1, ["data", "accumulated"])


@pytest.mark.parametrize("name", VARIANTS)
def test_eight_devices_log_the_losses_of_one(eight, name):
    ours = eight[0][name]
    theirs = eight[1]["accumulated" if name in ("accumulated", "all") else "data"]
    assert len(ours) == STEPS
    assert ours[-1] < ours[0]
    np.testing.assert_allclose(ours, theirs, atol=1e-5, rtol=0)
