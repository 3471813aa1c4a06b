import io
import os
import pty
import subprocess
import sys

import pytest

from nmt_jax import progress
from tests.conftest import ROOT


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_displayed_on_a_terminal_only(monkeypatch):
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr("sys.stderr", stream)
        for total in (None, 3):
            assert list(progress.track(iter("abc"), "letters", total)) == ["a", "b", "c"]
        assert ("letters" in stream.getvalue()) == stream.isatty()
        assert ("0:00:00" in stream.getvalue()) == stream.isatty()  # the time left


def test_a_run_prints_plain_lines_without_a_terminal(capsys, monkeypatch):
    progress.print_table([("devices", "8 x cpu"), ("corpus [x]", "20,000 pairs")])
    assert capsys.readouterr().err == "devices: 8 x cpu\ncorpus [x]: 20,000 pairs\n"
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    with progress.RunProgress(100, 50, "dev/bleu") as bar:
        bar.begin()
        bar.evaluated(50, {"dev/loss": 1.25, "dev/bleu": 31.25}, improved=True)
        bar.update(60, 1.5, "1,234 tokens/s")
    captured = capsys.readouterr()
    assert captured.out == ""
    first, second = captured.err.splitlines()
    assert first == "step 50/100  dev/loss 1.25  dev/bleu 31.25  (best so far)"
    assert second.startswith("step 60/100  loss 1.5000  dev/bleu 31.25  1,234 tokens/s  0:00:00 left")


def test_plain_lines_are_rare(capsys):
    with progress.RunProgress(10_000, 0, "dev/bleu") as bar:
        for step in range(1000):
            bar.update(step, 1.0, "1 tokens/s")
    assert capsys.readouterr().err == ""


def test_time_left_is_limited_by_steps_and_minutes(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    bars = [progress.RunProgress(110, 10, "dev/bleu"), progress.RunProgress(110, 10, "dev/bleu", seconds_left=100.0)]
    clock[0] = 40.0
    assert [bar._time_left(30) for bar in bars] == ["0:02:40", "0:01:00"]


def test_a_run_shows_a_bar_on_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    progress.print_table([("corpus", "none [x]")])
    with progress.RunProgress(30, 0, "dev/bleu") as bar:
        bar.begin()
        bar.update(29, 1.5, "1,234 tokens/s")
        bar.evaluated(30, {"dev/bleu": 31.25}, improved=True)
    for expected in ("none [x]", "100%", "step 30/30", "dev/bleu 31.25", "1,234 tokens/s", "left"):
        assert expected in terminal.getvalue()


def test_a_quiet_run_prints_nothing(capsys):
    with progress.RunProgress(2, 0, "dev/bleu", quiet=True) as bar:
        bar.evaluated(1, {"dev/bleu": 1.0}, improved=True)
        bar.note("done")
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_the_program_shows_a_bar_on_a_pseudo_terminal(tmp_path):
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
    for expected in (
        "tokens per batch",
        "none [toy]",
        "\x1b[?25l",
        "100%",
        "step 30/30",
        "dev/bleu",
        "tokens/s",
        "left",
    ):
        assert expected in text, text
