"""Running several programs at a time, each with a log; a failure does not affect the others."""

import collections
import contextlib
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from nmt_jax.interrupts import SIGNALS, Interrupted, handling

POLL = 0.1  # seconds between two checks of the active jobs
TAIL = 65_536  # bytes of a log that are searched for its last line


class Job(NamedTuple):
    """A program to run, its name, and the file to which its output is appended."""

    name: str
    command: Sequence[str]
    log: pathlib.Path


def run_jobs(jobs: Sequence[Job], parallel: int, ended: Callable[[Job, int], None]) -> None:
    """Runs all jobs, `parallel` at a time; calls `ended` with each job and its exit code.

    If `parallel` is 1, output is also shown on stderr. A signal is sent on to the active jobs, no further job is
    started, and Interrupted is raised when all have exited. An error of `ended` or of starting a job ends the active
    jobs by SIGTERM, and is raised when all have exited.
    """
    signals: list[int] = []
    handlers: dict[int, Any] = dict.fromkeys(SIGNALS, lambda number, _: signals.append(number))
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # a closed terminal counts as SIGTERM; nohup ignores it
        handlers[signal.SIGHUP] = lambda *_: signals.append(signal.SIGTERM)
    waiting = collections.deque(jobs)
    running: dict[_Running, Job] = {}
    with handling(handlers):
        try:
            while (waiting and not signals) or running:
                while waiting and not signals and len(running) < parallel:
                    job = waiting.popleft()
                    running[_Running(job, shown=parallel == 1)] = job
                for process in list(running):
                    if (code := process.poll()) is not None:
                        ended(running.pop(process), code)
                    else:
                        process.pass_on(signals)
                time.sleep(POLL)
        except BaseException:
            if not signals:
                signals.append(signal.SIGTERM)
            while active := [process for process in running if process.poll() is None]:
                for process in active:
                    process.pass_on(signals)
                time.sleep(POLL)
            raise
    if signals:
        raise Interrupted(signals[0])


def last_line(log: pathlib.Path) -> str:
    """Returns the last line of a log without colours and the prefix of error messages, or "" if there is none."""
    if not log.is_file():
        return ""
    with log.open("rb") as file:
        file.seek(max(log.stat().st_size - TAIL, 0))
        text = file.read().decode("utf-8", errors="replace")
    lines = [line.strip() for line in re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text))]
    return next((line.removeprefix("nmt-jax: error: ") for line in reversed(lines) if line), "")


class _Running:
    """An active job, in its own process group, so that Ctrl-C does not reach it directly."""

    def __init__(self, job: Job, shown: bool):
        job.log.parent.mkdir(parents=True, exist_ok=True)
        self._copying: threading.Thread | None = None
        self._passed_on = 0  # number of signals
        if not shown:
            with job.log.open("ab") as log:
                self._process = self._popen(job, log.fileno())
            return
        # Programs show progress bars on terminals only.
        source, sink = pty.openpty() if sys.stderr.isatty() else os.pipe()
        self._process = self._popen(job, sink)
        os.close(sink)
        self._copying = threading.Thread(target=_copy, args=(source, job.log), daemon=True)
        self._copying.start()

    def _popen(self, job: Job, output: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(job.command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, process_group=0)

    def poll(self) -> int | None:
        """Returns the exit code when the job has exited and its output is copied, None before."""
        code = self._process.poll()
        if code is not None and self._copying:
            self._copying.join(timeout=1.0)  # programs that the job has started may keep the pipe open
        return code

    def pass_on(self, signals: Sequence[int]) -> None:
        """Sends each of the signals received so far once: after a second one, training exits without saving."""
        for number in signals[self._passed_on :]:
            self._process.send_signal(number)
            self._passed_on += 1


def _copy(source: int, log: pathlib.Path) -> None:
    """Copies `source` to stderr and to `log`."""
    with log.open("ab", buffering=0) as file, contextlib.suppress(OSError):  # raised at the end of a terminal
        while data := os.read(source, 65_536):
            file.write(data)
            with contextlib.suppress(OSError):  # our own terminal was closed
                os.write(2, data)
    os.close(source)
