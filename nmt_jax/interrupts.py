"""Ctrl-C, SIGTERM and SIGUSR1, by which schedulers warn: leave between two steps, with everything saved."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Interrupted(SystemExit):
    """A signal ended the run; the exit code is 128 + its number, as shells have it (130 Ctrl-C, 143 SIGTERM)."""

    def __init__(self, number: int):
        super().__init__(128 + number)
        self.signal = signal.Signals(number)


class Interrupts:
    """While entered, signals wait for `check()`; a second one acts as it would have without us.

    Signals reach the main thread only, so entered elsewhere this does nothing.
    """

    def __init__(self) -> None:
        self.number = 0  # of the signal that has arrived
        self._at_once = False
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._arrived) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        self._restore()
        print(f"\n{signal.Signals(number).name}: saving; a second one leaves at once", file=sys.stderr, flush=True)
        if self._at_once:
            self.check()

    def check(self) -> None:
        """Raise Interrupted if a signal has arrived."""
        if self.number:
            raise Interrupted(self.number)

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """A stretch that is safe to leave anywhere, for example an evaluation: do not wait for the end of it."""
        self.check()
        self._at_once = True
        try:
            yield
        finally:
            self._at_once = False
