"""The watchdog ends a hanging run."""

import subprocess
import sys

from tests.fixtures.toy import ROOT

PROGRAM = """
import time
from nmt_jax.interrupts import Watchdog
with Watchdog({minutes}) as watchdog:
    watchdog.alive("step 3")
    time.sleep({seconds})
"""


def run(minutes, seconds):
    program = PROGRAM.format(minutes=minutes, seconds=seconds)
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)


def test_a_hanging_run_is_ended_and_its_stage_reported():
    finished = run(0.005, 50)
    assert finished.returncode == 1
    assert "nmt-jax: error: step 3: no progress for 0.005 minutes since then" in finished.stderr
    assert "time.sleep" in finished.stderr or 'File "<string>", line 6' in finished.stderr


def test_a_run_with_progress_is_not_ended():
    assert run(1, 0.1).returncode == 0
    assert run(0, 0.1).returncode == 0
