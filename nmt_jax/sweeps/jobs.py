"""Programs, so many at a time: what one prints goes to its log, what breaks in one breaks nothing in the others."""

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
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from nmt_jax.interrupts import SIGNALS, Interrupted

POLL = 0.1  # seconds between two looks at what is running
TAIL = 65_536  # bytes of a log in which its last line is looked for


class Job(NamedTuple):
    """A program to run, what it is called, and the file that what it prints is added to."""

    name: str
    command: Sequence[str]
    log: pathlib.Path


def run_jobs(jobs: Sequence[Job], parallel: int, ended: Callable[[Job, int], None]) -> None:
    """Run all jobs, `parallel` at a time; `ended` hears of each with its exit code.

    A single one at a time shows what it prints on stderr, too. Signals that end us are passed on, nothing is started
    any more, and when all have left Interrupted is raised.
    """
    waiting = collections.deque(jobs)
    running: dict[_Running, Job] = {}
    passed_on: dict[_Running, int] = collections.Counter()
    with _received() as signals:
        while (waiting and not signals) or running:
            while waiting and not signals and len(running) < parallel:
                job = waiting.popleft()
                running[_Running(job, shown=parallel == 1)] = job
            for process in list(running):
                if (code := process.poll()) is not None:
                    ended(running.pop(process), code)
                    continue
                # Each signal once: of a second one training leaves at once, and saves nothing.
                for number in signals[passed_on[process] :]:
                    process.send_signal(number)
                    passed_on[process] += 1
            time.sleep(POLL)
    if signals:
        raise Interrupted(signals[0])


def last_line(log: pathlib.Path) -> str:
    """The last line of a log, without colours and without what every error begins with; empty where there is none."""
    if not log.is_file():
        return ""
    with log.open("rb") as file:
        file.seek(max(log.stat().st_size - TAIL, 0))
        text = file.read().decode("utf-8", errors="replace")
    lines = [line.strip() for line in re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text))]
    return next((line.removeprefix("nmt-jax: error: ") for line in reversed(lines) if line), "")


@contextlib.contextmanager
def _received() -> Iterator[list[int]]:
    """The signals that arrive meanwhile; a terminal that is closed counts as SIGTERM."""
    signals: list[int] = []
    previous = {}
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            previous[number] = signal.signal(number, lambda number, _: signals.append(number))
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # nohup ignores it
            previous[signal.SIGHUP] = signal.signal(signal.SIGHUP, lambda *_: signals.append(signal.SIGTERM))
    try:
        yield signals
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class _Running:
    """A job that runs, in a process group of its own, so that Ctrl-C reaches it through us alone."""

    def __init__(self, job: Job, shown: bool):
        job.log.parent.mkdir(parents=True, exist_ok=True)
        self._copying: threading.Thread | None = None
        if not shown:
            with job.log.open("ab") as log:
                self._process = self._popen(job, log.fileno())
            return
        # A progress bar is drawn on nothing but a terminal.
        source, sink = pty.openpty() if sys.stderr.isatty() else os.pipe()
        self._process = self._popen(job, sink)
        os.close(sink)
        self._copying = threading.Thread(target=_copy, args=(source, job.log), daemon=True)
        self._copying.start()

    def _popen(self, job: Job, output: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(job.command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, process_group=0)

    def poll(self) -> int | None:
        """The exit code, once all is over and copied."""
        code = self._process.poll()
        if code is not None and self._copying:
            self._copying.join(timeout=1.0)  # what the job has started may hold its end of the pipe for ever
        return code

    def send_signal(self, number: int) -> None:
        self._process.send_signal(number)


def _copy(source: int, log: pathlib.Path) -> None:
    """Everything from `source` to stderr and to `log`."""
    with log.open("ab", buffering=0) as file, contextlib.suppress(OSError):  # so a terminal says that it is over
        while data := os.read(source, 65_536):
            file.write(data)
            with contextlib.suppress(OSError):  # nobody looks any more
                os.write(2, data)
    os.close(source)
