"""What ends a run early: signals (SIGUSR1 is sent by schedulers before a time limit), and a watchdog."""

import contextlib
import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

HUNG = 1  # exit code of a hanging run
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Interrupted(SystemExit):
    """Raised when a signal ends the run. The exit code is 128 + its number, as in shells: 130 Ctrl-C, 143 SIGTERM."""

    def __init__(self, number: int):
        super().__init__(128 + number)
        self.signal = signal.Signals(number)


@contextlib.contextmanager
def handling(handlers: Mapping[int, Callable[[int, FrameType | None], Any]]) -> Iterator[None]:
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
        self._handling.enter_context(handling(dict.fromkeys(SIGNALS, self._receive)))
        return self

    def __exit__(self, *error: object) -> None:
        self._handling.close()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        self._handling.close()
        name = signal.Signals(number).name
        print(f"\n{name}: saving; send it again to exit without saving", file=sys.stderr, flush=True)
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
            faulthandler.dump_traceback(file=sys.stderr)
            print(
                f"nmt-jax: error: {self._stage}: no progress for {self._seconds / 60:g} minutes since then; the stack "
                "of each thread is above; continue with the same command, and increase "
                "config.train.watchdog_minutes if a step, an evaluation or compilation may take longer",
                file=sys.stderr,
                flush=True,
            )
            os._exit(HUNG)
