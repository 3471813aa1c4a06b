"""Handling of Ctrl-C, SIGTERM and SIGUSR1 (sent by schedulers before a time limit): finish the step, save, exit."""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

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
