"""Several local processes end together."""

import os
import sys
import time

from nmt_jax.launchers import local
from nmt_jax.launchers.local import ProcessGroup, process_arguments

WAIT = "import time; time.sleep(60)"


def run(*programs):
    return ProcessGroup([[sys.executable, "-c", program] for program in programs], dict(os.environ)).run()


def test_arguments_of_each_process():
    assert process_arguments(["train"], 1, 5) == [["train"]]
    common = ["train", "--coordinator=127.0.0.1:5", "--processes=2"]
    assert process_arguments(["train"], 2, 5) == [[*common, "--process=0"], [*common, "--process=1"]]


def test_output_of_other_processes_has_their_number(capfd):
    assert run("pass", "import sys; print('hello', file=sys.stderr)") == 0
    assert capfd.readouterr().err == "[1] hello\n"


MISTAKE = "import sys; print('nmt-jax: error: x', file=sys.stderr); raise SystemExit(2)"


def test_a_mistake_that_all_processes_find_is_one_line(capfd):
    assert run(MISTAKE, MISTAKE, MISTAKE) == 2
    assert capfd.readouterr().err == "nmt-jax: error: x\n"
    assert run("pass", MISTAKE) == 2
    assert capfd.readouterr().err == "[1] nmt-jax: error: x\n"


def test_invalid_input_of_one_process_is_the_reason_why_others_exit():
    assert run("raise SystemExit(1)", "import time; time.sleep(0.3); raise SystemExit(2)") == 2


def test_the_exit_code_is_that_of_the_first_failure_and_the_others_are_killed(monkeypatch, capfd):
    monkeypatch.setattr(local, "LEAVE_SECONDS", 0.2)
    began = time.monotonic()
    assert run(WAIT, "raise SystemExit(3)") == 3
    assert run(WAIT, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)") == 128 + 9
    assert "nmt-jax: error: process 1 of 2 was killed by SIGKILL; continue" in capfd.readouterr().err
    assert time.monotonic() - began < 30
