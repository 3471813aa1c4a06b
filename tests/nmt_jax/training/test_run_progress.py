"""What the user sees: plain lines without a terminal, a bar on one; and the log file."""

import json
import math
import os
import pty
import subprocess
import sys

import pytest

from nmt_jax.training import run_progress as progress
from nmt_jax.training.logbook import Logbook, truncate
from nmt_jax.training.run_progress import Progress, print_table
from tests.fixtures.toy import ROOT


def test_plain_lines_without_a_terminal(capsys, monkeypatch):
    print_table([("devices", "8 x cpu"), ("corpus [x]", "20,000 pairs")])
    assert capsys.readouterr().err == "devices: 8 x cpu\ncorpus [x]: 20,000 pairs\n"
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    with Progress(100, 50, "dev/bleu") as bar:
        bar.begin()
        bar.evaluated(50, {"dev/loss": 1.25, "dev/bleu": 31.25}, improved=True)
        bar.update(60, 1.5, "1,234 tokens/s")
    captured = capsys.readouterr()
    assert captured.out == ""
    first, second = captured.err.splitlines()
    assert first == "step 50/100  dev/loss 1.25  dev/bleu 31.25  (best so far)"
    assert second.startswith("step 60/100  loss 1.5000  dev/bleu 31.25  1,234 tokens/s  0:00:00 left")


def test_lines_are_rare(capsys):
    with Progress(10_000, 0, "dev/bleu") as bar:
        for step in range(1000):
            bar.update(step, 1.0, "1 tokens/s")
    assert capsys.readouterr().err == ""


def test_time_left_is_that_of_the_steps_or_of_the_limit(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    bars = [Progress(110, 10, "dev/bleu"), Progress(110, 10, "dev/bleu", seconds_left=100.0)]
    clock[0] = 40.0
    assert [bar._time_left(30) for bar in bars] == ["0:02:40", "0:01:00"]


def test_a_bar_on_a_terminal(tmp_path):
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"}
    command = [sys.executable, "-m", "tests.fixtures.toy", str(tmp_path), "toy.pause=0.02"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    seen = b""
    while True:
        try:
            block = os.read(leader, 4096)
        except OSError:  # the other side is closed
            break
        if not block:
            break
        seen += block
    os.close(leader)
    assert process.wait() == 0, seen.decode()
    text = seen.decode()
    for expected in ("tokens a batch", "none [toy]", "\x1b[?25l", "100%", "step 30/30", "dev/bleu", "tokens/s", "left"):
        assert expected in text, text


def test_the_log_holds_what_was_written_and_null_for_nan(tmp_path):
    with Logbook(tmp_path) as logbook:
        logbook.write(1, {"loss": 0.1 + 0.2})
        logbook.write(2, {"loss": math.nan, "dev/bleu": 3.0})
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert rows == [{"step": 1, "loss": 0.1 + 0.2}, {"step": 2, "loss": None, "dev/bleu": 3.0}]
    assert any(path.name.startswith("events") for path in (tmp_path / "tensorboard").iterdir())


@pytest.mark.parametrize(("step", "kept"), [(0, 0), (1, 2), (2, 3), (9, 3)])
def test_rows_past_the_step_and_half_lines_are_cut_off(step, kept, tmp_path):
    path = tmp_path / "metrics.jsonl"
    lines = ['{"step": 1, "loss": 2}\n', '{"step": 1, "dev/loss": 2}\n', '{"step": 2, "loss": 1}\n', '{"step": 3, "lo']
    path.write_text("".join(lines))
    truncate(path, step)
    assert path.read_text() == "".join(lines[:kept])
