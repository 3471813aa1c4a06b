import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from nmt_jax.sweeps.jobs import Job, last_line, run_jobs
from tests.conftest import ROOT


def job(folder: pathlib.Path, name: str, program: str) -> Job:
    return Job(name, [sys.executable, "-c", program], folder / name / "log.txt")


def test_a_failed_job_does_not_stop_the_others_and_leaves_a_log(tmp_path):
    programs = {"good": "print('one'); print('two')", "bad": "import sys; print('started'); sys.exit('it broke')"}
    codes = {}
    run_jobs([job(tmp_path, *pair) for pair in programs.items()], 2, lambda job, code: codes.update({job.name: code}))
    assert codes == {"good": 0, "bad": 1}
    assert (tmp_path / "good" / "log.txt").read_text() == "one\ntwo\n"
    assert last_line(tmp_path / "bad" / "log.txt") == "it broke"


@pytest.mark.parametrize("parallel", [1, 3])
def test_the_number_of_jobs_at_a_time_is_limited(tmp_path, parallel):
    program = (
        "import pathlib, sys, time, os\n"
        f"folder = pathlib.Path({str(tmp_path)!r})\n"
        "mine = folder / f'running{os.getpid()}'; mine.touch()\n"
        "time.sleep(0.4); print(len(list(folder.glob('running*')))); mine.unlink()\n"
    )
    names = []
    run_jobs([job(tmp_path, f"j{k}", program) for k in range(6)], parallel, lambda job, code: names.append(job.name))
    assert sorted(names) == [f"j{k}" for k in range(6)]
    most = max(int(last_line(tmp_path / name / "log.txt")) for name in names)
    assert most == parallel if parallel == 1 else 1 < most <= parallel


def test_the_output_of_a_single_job_is_shown(tmp_path, capfd):
    run_jobs([job(tmp_path, "j", "import sys; print('out'); print('err', file=sys.stderr)")], 1, lambda *_: None)
    shown = capfd.readouterr().err
    assert sorted(shown.split()) == ["err", "out"]
    assert (tmp_path / "j" / "log.txt").read_text() == shown


def test_on_a_terminal_the_job_has_a_terminal(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    run_jobs([job(tmp_path, "j", "import sys; print(sys.stderr.isatty())")], 1, lambda *_: None)
    assert capfd.readouterr().err.strip() == "True"
    assert last_line(tmp_path / "j" / "log.txt") == "True"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_sent_on_once_and_no_further_job_is_started(tmp_path, number):
    child = (
        "import pathlib, signal, sys, time\n"
        "got = []\n"
        "for one in (signal.SIGINT, signal.SIGTERM): signal.signal(one, lambda n, _: got.append(n))\n"
        "print('ready', flush=True)\n"
        "while not got: time.sleep(0.02)\n"
        "time.sleep(0.4 + 0.6 * (sys.argv[1] == 'b')); print('saved', *got, flush=True); sys.exit(128 + got[0])\n"
    )
    parent = (
        "import pathlib, signal, sys\n"
        "from nmt_jax.sweeps.jobs import Job, run_jobs\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # under nohup it is ignored
        f"jobs = [Job(n, [sys.executable, '-c', {child!r}, n], pathlib.Path({str(tmp_path)!r}) / n) for n in 'abc']\n"
        "run_jobs(jobs, 2, lambda job, code: print(job.name, code))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    until = time.monotonic() + 20
    while not all((tmp_path / n).exists() and "ready" in (tmp_path / n).read_text() for n in "ab"):
        assert time.monotonic() < until
        time.sleep(0.05)
    os.killpg(process.pid, number)  # as a terminal does it: to all of the group
    out, _ = process.communicate(timeout=20)
    sent = signal.SIGTERM if number == signal.SIGHUP else number
    assert process.returncode == 128 + sent
    assert sorted(out.splitlines()) == [f"a {128 + sent}", f"b {128 + sent}"]
    assert not (tmp_path / "c").exists()
    for name in "ab":
        assert last_line(tmp_path / name) == f"saved {int(sent)}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("a\n\n  \n", "a"),
        ("step 1\nnmt-jax: error: config.model: odd\n", "config.model: odd"),
        ("\x1b[2K 50% ━━\r\x1b[?25hdone\r\n", "done"),
        ("Traceback\nValueError: x\n", "ValueError: x"),
    ],
)
def test_the_last_line_of_a_log(tmp_path, text, line):
    log = tmp_path / "log.txt"
    log.write_bytes(b"\xff" * 70_000 + b"\n" + text.encode() if text else b"")
    assert last_line(log) == line
    assert last_line(tmp_path / "none") == ""


def test_an_error_of_the_callback_ends_the_active_jobs(tmp_path):
    saves = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit('saved'))\n"
        "print('ready', flush=True); time.sleep(30)\n"
    )
    log = tmp_path / "a" / "log.txt"
    waits = f"import pathlib, time\nwhile not pathlib.Path({str(log)!r}).read_text(): time.sleep(0.02)\n"

    def ended(job, code):
        raise ValueError(job.name)

    with pytest.raises(ValueError, match="b"):
        run_jobs([job(tmp_path, "a", saves), job(tmp_path, "b", waits), job(tmp_path, "c", "")], 2, ended)
    assert last_line(log) == "saved"
    assert not (tmp_path / "c").exists()
