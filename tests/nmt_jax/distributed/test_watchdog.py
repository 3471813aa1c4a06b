"""A run that hangs ends itself."""

import subprocess
import sys

from tests.fixtures.toy import ROOT

PROGRAM = """
import time
from nmt_jax.distributed.watchdog import Watchdog
with Watchdog({minutes}) as watchdog:
    watchdog.alive("step 3")
    time.sleep({seconds})
"""


def run(minutes, seconds):
    program = PROGRAM.format(minutes=minutes, seconds=seconds)
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)


def test_what_hangs_is_ended_and_says_where():
    finished = run(0.005, 50)
    assert finished.returncode == 1
    assert "nmt-jax: error: step 3: nothing was finished in 0.005 minutes since" in finished.stderr
    assert "time.sleep" in finished.stderr or 'File "<string>", line 6' in finished.stderr


def test_what_goes_on_is_left_alone():
    assert run(1, 0.1).returncode == 0
    assert run(0, 0.1).returncode == 0
