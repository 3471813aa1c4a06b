"""The same command on one device and on eight, on real batches of uneven padding, with dropout."""

import json
import os
import subprocess
import sys

import numpy as np

from tests.conftest import ROOT

STEPS = 20


def train(folder, devices: int) -> list[float]:
    """The losses of a short run of the smoke-sized quickstart in a process with so many simulated devices."""
    environment = os.environ | {
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".cache" / "compilation"),
        "NMT_JAX_CACHE": str(folder / "cache"),
    }
    overrides = {"steps": STEPS, "eval_every": 1000, "checkpoint_every": 1000}
    command = [sys.executable, "-m", "nmt_jax", "train", f"--config={ROOT}/configs/quickstart.py:smoke=true"]
    command += [f"--workdir={folder / str(devices)}", "--config.eval.max_segments=0"]
    command += ["--config.train.early_stopping_metric=loss"]
    command += [f"--config.train.{key}={value}" for key, value in overrides.items()]
    finished = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert f"devices: {devices} x cpu" in finished.stderr
    rows = [json.loads(line) for line in (folder / str(devices) / "metrics.jsonl").read_text().splitlines()]
    return [row["loss"] for row in rows if "loss" in row]


def test_eight_devices_log_the_losses_of_one(tmp_path):
    one, eight = train(tmp_path, 1), train(tmp_path, 8)
    assert len(one) == STEPS
    assert one[-1] < one[0]
    np.testing.assert_allclose(eight, one, atol=1e-5, rtol=0)
