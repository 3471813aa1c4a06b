"""Handling of Ctrl-C, SIGTERM and SIGUSR1 (sent by schedulers before a time limit): finish the step, save, exit."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Interrupted(SystemExit):
    """Raised when a signal ends the run. The exit code is 128 + its number, as in shells: 130 Ctrl-C, 143 SIGTERM."""

    def __init__(self, number: int):
        super().__init__(128 + number)
        self.signal = signal.Signals(number)


class Interrupts:
    """Context manager that defers the first signal until `check()`; a second signal has its usual effect.

    Python delivers signals to the main thread only; in other threads this does nothing.
    """

    def __init__(self) -> None:
        self.number = 0  # of the received signal
        self._immediate = False
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._receive) for number in SIGNALS}
        return self

    def __exit__(self, *error: object) -> None:
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        self._restore()
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
