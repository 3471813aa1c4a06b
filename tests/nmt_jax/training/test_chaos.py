"""A run that is killed again and again, also while it saves, ends in the parameters of one that never was."""

import os
import random
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

from nmt_jax.checkpoints.reading import load_params
from tests.fixtures import toy
from tests.fixtures.toy import ROOT

KILLS = int(os.environ.get("NMT_JAX_KILLS", "8"))
SETTINGS = ["train.steps=120", "train.checkpoint_every=1", "train.eval_every=10", "toy.pause=0.01"]


def start(workdir):
    command = [sys.executable, "-m", "tests.fixtures.toy", str(workdir), *SETTINGS]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)


def steps_done(workdir):
    try:
        return max((row["step"] for row in toy.rows(workdir)), default=0)
    except (OSError, ValueError):  # half a line
        return 0


@pytest.mark.slow
def test_kills_do_not_change_the_log(tmp_path):
    assert start(tmp_path / "whole").wait() == 0
    chance, workdir = random.Random(7), tmp_path / "killed"
    for kill in range(KILLS):
        process = start(workdir)
        # One in five before it has begun, the others while it steps and saves; all before the end.
        goal = steps_done(workdir) + chance.randint(1, 2 * 110 // KILLS - 1) if kill % 5 else 0
        while goal and steps_done(workdir) < min(goal, 115) and process.poll() is None:
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.1 if goal else 2.0))
        process.send_signal(chance.choice([signal.SIGTERM, signal.SIGKILL]))
        assert process.wait(timeout=60) in (-signal.SIGKILL, -signal.SIGTERM, 128 + signal.SIGTERM)
    assert steps_done(workdir) < 120
    assert start(workdir).wait() == 0
    assert toy.rows(workdir) == toy.rows(tmp_path / "whole")
    one, other = (load_params(folder, "last") for folder in (workdir, tmp_path / "whole"))
    jax.tree.map(np.testing.assert_array_equal, one, other)
