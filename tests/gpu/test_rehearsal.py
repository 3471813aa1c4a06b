"""Some tests of this folder, with the programs made for GPUs executed on the CPU."""

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

SOME = "gpt or (scores and float32 and tiny)"


@pytest.mark.slow
def test_some_tests_are_rehearsed_without_a_gpu():
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-k", SOME, "tests/gpu"]
    environment = os.environ | {"NMT_JAX_TEST_DEVICE": "cpu"}
    finished = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout
    assert "2 passed" in finished.stdout
