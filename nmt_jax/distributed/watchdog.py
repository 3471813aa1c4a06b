"""A run that hangs ends itself and says where, so that what started it can start it again."""

import faulthandler
import os
import sys
import threading
import time
from types import TracebackType

HUNG = 1  # exit code


class Watchdog:
    """While entered, ends the process when `alive` was not called for so many minutes; never if they are 0."""

    def __init__(self, minutes: float):
        self._seconds = minutes * 60
        self._last, self._where = time.monotonic(), "start"
        self._leaving = threading.Event()

    def __enter__(self) -> "Watchdog":
        self._last = time.monotonic()
        if self._seconds > 0:
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaving.set()

    def alive(self, where: str) -> None:
        """`where` is reached."""
        self._last, self._where = time.monotonic(), where

    def _watch(self) -> None:
        while not self._leaving.wait(min(self._seconds / 10, 10.0)):
            if time.monotonic() - self._last < self._seconds:
                continue
            faulthandler.dump_traceback(file=sys.stderr)
            print(
                f"nmt-jax: error: {self._where}: nothing was finished in {self._seconds / 60:g} minutes since; what "
                "each thread waits for is above: start again with the same command, and a higher "
                "config.train.watchdog_minutes where a step, an evaluation or compiling may take longer",
                file=sys.stderr,
                flush=True,
            )
            os._exit(HUNG)
