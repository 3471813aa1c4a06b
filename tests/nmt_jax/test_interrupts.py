"""Ctrl-C ends the program with one line, a second signal ends it at once, and the watchdog ends a hanging run."""

import signal
import subprocess
import sys
import time

import pytest

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


BLOCKED = """
import os
from nmt_jax import interrupts
interrupts.GRACE = 0.3
os.set_blocking(2, False)
try:
    while True: os.write(2, bytes(4096))
except BlockingIOError:
    os.set_blocking(2, True)
with interrupts.Watchdog(0.005):
    os.write(2, b"x")
"""


def test_a_run_that_cannot_write_to_stderr_is_ended():
    with subprocess.Popen([sys.executable, "-c", BLOCKED], cwd=ROOT, stderr=subprocess.PIPE) as process:
        try:
            assert process.wait(timeout=30) == 1
        finally:
            process.kill()


def test_a_run_with_progress_is_not_ended():
    assert run(1, 0.1).returncode == 0
    assert run(0, 0.1).returncode == 0


PREPARED = """
import ctypes, os, sys, time
from nmt_jax import __main__ as cli
from nmt_jax.commands import score
from nmt_jax.interrupts import Interrupts
def ready():
    print("ready", flush=True)
{work}
score.main = work
sys.exit(cli.main())
"""
WORK = {
    "python": """
def work(*_):
    ready()
    while True: time.sleep(0.01)
""",
    "import": """
def work(*_):
    sys.path.insert(0, {folder!r})
    import swallows
""",
    "destructor": """
class Waits:
    def __del__(self):
        ready()
        while True: time.sleep(0.01)
def work(*_):
    Waits()
    while True: time.sleep(0.01)
""",
    "compiled code": """
def work(*_):
    ready()
    ctypes.CDLL(None).sleep(30) or ctypes.CDLL(None).sleep(30)
""",
    "training": """
def work(*_):
    with Interrupts():
        ready()
        while True: time.sleep(0.01)
""",
    "writing": """
def work(*_):
    with Interrupts() as interrupts:
        ready()
        print("." * 100_000, file=sys.stderr)  # more than a pipe holds
        interrupts.check()
""",
}


def interrupted(work, folder, signals, wait=0.0):
    """Start a program, send it signals when it is ready, and return its exit code and what it wrote to stderr."""
    program = PREPARED.format(work=WORK[work].replace("{folder!r}", repr(str(folder))))
    (folder / "swallows.py").write_text(
        "import time\nprint('ready', flush=True)\nwhile True:\n"
        "    try: time.sleep(0.01)\n    except BaseException: pass\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, "score"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    for number in signals:
        time.sleep(wait)
        process.send_signal(number)
    try:
        _, errors = process.communicate(timeout=15)
    finally:
        process.kill()
    return process.returncode, errors


@pytest.mark.parametrize("work", ["python", "import", "destructor"])
def test_ctrl_c_ends_with_one_line(work, tmp_path):
    assert interrupted(work, tmp_path, [signal.SIGINT], 0.05) == (130, "nmt-jax: interrupted\n")


@pytest.mark.parametrize("work", ["python", "compiled code"])
def test_a_second_ctrl_c_ends_at_once_even_while_compiled_code_runs(work, tmp_path):
    code, errors = interrupted(work, tmp_path, [signal.SIGINT, signal.SIGINT], 0.03)
    assert (code, errors) in [(130, "nmt-jax: interrupted\n"), (-2, "nmt-jax: interrupted\n")]


def test_a_second_signal_ends_a_training_that_saves(tmp_path):
    code, errors = interrupted("training", tmp_path, [signal.SIGINT, signal.SIGINT], 0.05)
    assert code == 130
    assert errors == "\nSIGINT: saving; send it again to exit without saving\nnmt-jax: interrupted\n"


def test_a_signal_may_arrive_while_stderr_is_written(tmp_path):
    code, errors = interrupted("writing", tmp_path, [signal.SIGTERM], 0.3)
    assert code == 143
    assert errors.replace(".", "") == "\nSIGTERM: saving; send it again to exit without saving\n\n"
