"""What ends a run early: signals (SIGUSR1 is sent by schedulers before a time limit), and a watchdog."""

import contextlib
import faulthandler
import os
import select
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

HUNG = 1  # exit code of a hanging run
GRACE = 10.0  # seconds that a hanging run has to report itself
PATIENCE = 1.0  # seconds to wait for room in a full pipe
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)

_LEAVING = threading.RLock()
_RECEIVED: list[int] = []  # the last signal


class Interrupted(SystemExit):
    """Raised when a signal ends the run. The exit code is 128 + its number, as in shells: 130 Ctrl-C, 143 SIGTERM."""

    def __init__(self, number: int):
        super().__init__(128 + number)
        self.signal = signal.Signals(number)


def start() -> None:
    """Begin to handle signals, in a process that runs nothing but the program.

    Ctrl-C raises KeyboardInterrupt. During an import, which may swallow it, and at a second signal, which may arrive
    while a compiler runs, the process exits at once.
    """
    signal.signal(signal.SIGINT, _interrupt)
    source, sink = os.pipe()
    os.set_blocking(sink, False)
    signal.set_wakeup_fd(sink, warn_on_full_buffer=False)
    threading.Thread(target=_leave_at_second, args=(source,), daemon=True).start()


def end() -> None:
    """Let Ctrl-C kill the process: from here on there is nothing to save. Without effect unless `start` was called."""
    if signal.getsignal(signal.SIGINT) is _interrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def leave(number: int) -> None:
    """Exit at once; files are complete or marked as incomplete at any time."""
    _LEAVING.acquire()  # of two threads, one exits and the other waits
    cursor = b"\x1b[?25h\n" if os.isatty(2) else b""  # a progress bar hides it
    _report(cursor + b"nmt-jax: interrupted\n")
    os._exit(128 + number)


def _report(message: bytes) -> None:
    """Write to stderr, or give up if that would block.

    Python's stream cannot be used in a signal handler: the code that the signal interrupts may be writing to it.
    """
    with contextlib.suppress(OSError):
        if select.select([], [2], [], PATIENCE)[1]:
            os.write(2, message)


def _interrupt(number: int, frame: FrameType | None) -> None:
    received, _RECEIVED[:] = bool(_RECEIVED), [number]
    while frame:
        if received or frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            leave(number)
        frame = frame.f_back
    raise KeyboardInterrupt


def _leave_at_second(source: int) -> None:
    """Exit at the second signal that arrives at `source`; the interpreter writes the number of each to it."""
    received: list[int] = []
    while len(received) < 2:
        received += [number for number in os.read(source, 1) if number in SIGNALS]
    leave(received[-1])


@contextlib.contextmanager
def handling(handlers: Mapping[int, Callable[[int, FrameType | None], Any]]) -> Iterator[None]:
    """Context with these signal handlers, which also get a second signal; see `_set_handlers`."""
    main = threading.current_thread() is threading.main_thread()
    wakeup = signal.set_wakeup_fd(-1) if main else -1
    try:
        with _set_handlers(handlers):
            yield
    finally:
        if main:
            signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)


@contextlib.contextmanager
def _set_handlers(handlers: Mapping[int, Callable[[int, FrameType | None], Any]]) -> Iterator[None]:
    """Context with these signal handlers; without effect outside the main thread, the only one that gets signals."""
    previous = {}
    if threading.current_thread() is threading.main_thread():
        previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class Interrupts:
    """Context manager that defers the first signal until `check()`; a second signal has its usual effect."""

    def __init__(self) -> None:
        self.number = 0  # of the received signal
        self._immediate = False
        self._handling = contextlib.ExitStack()

    def __enter__(self) -> "Interrupts":
        self._handling.enter_context(_set_handlers(dict.fromkeys(SIGNALS, self._receive)))
        return self

    def __exit__(self, *error: object) -> None:
        self._handling.close()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        _RECEIVED[:] = [number]
        self._handling.close()
        name = signal.Signals(number).name
        _report(f"\n{name}: saving; send it again to exit without saving\n".encode())
        if self._immediate:
            self.check()

    def check(self) -> None:
        """Raises Interrupted if a signal was received."""
        if self.number:
            raise Interrupted(self.number)

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Within this context a signal raises Interrupted immediately: for code that may stop anywhere."""
        self.check()
        self._immediate = True
        try:
            yield
        finally:
            self._immediate = False


class Watchdog:
    """Context that ends the process, so that a scheduler can restart it, if `alive` is not called for `minutes` > 0."""

    def __init__(self, minutes: float):
        self._seconds = minutes * 60
        self._last, self._stage = time.monotonic(), "start"
        self._leaving = threading.Event()

    def __enter__(self) -> "Watchdog":
        self._last = time.monotonic()
        if self._seconds > 0:
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._leaving.set()

    def alive(self, stage: str) -> None:
        """Restarts the timer; `stage` appears in the error message."""
        self._last, self._stage = time.monotonic(), stage

    def _watch(self) -> None:
        while not self._leaving.wait(min(self._seconds / 10, 10.0)):
            if time.monotonic() - self._last < self._seconds:
                continue
            leaving = threading.Timer(GRACE, os._exit, [HUNG])  # if stderr is blocked, too
            leaving.daemon = True
            leaving.start()
            # Into a file first, since faulthandler stops all threads while it writes.
            with contextlib.suppress(OSError), tempfile.TemporaryFile() as file:
                faulthandler.dump_traceback(file)
                file.seek(0)
                sys.stderr.write(file.read().decode("utf-8", "replace"))
            print(
                f"nmt-jax: error: {self._stage}: no progress for {self._seconds / 60:g} minutes since then; the stack "
                "of each thread is above; continue with the same command, and increase "
                "config.train.watchdog_minutes if a step, an evaluation or compilation may take longer",
                file=sys.stderr,
                flush=True,
            )
            os._exit(HUNG)
