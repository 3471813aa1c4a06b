"""Memory that is kept: in a process of its own, as the setting is the process's."""

import platform
import subprocess
import sys

import pytest

from tests.conftest import ROOT

PROGRAM = """
import resource
import numpy as np
from nmt_jax import allocation

def faults(repeats=5, size=64 << 20):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(repeats):
        np.ones(size, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

assert allocation.keep_freed_memory()
first, again = faults(1), faults()
assert again < first / 10, (first, again)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="not the GNU C library: its allocator is not set")
def test_large_blocks_come_back_without_new_pages():
    finished = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
