"""A watchdog that ends a hanging run and reports where it hangs, so that a scheduler can restart it."""

import faulthandler
import os
import sys
import threading
import time

HUNG = 1  # exit code


class Watchdog:
    """Context that ends the process if `alive` is not called for `minutes`; never if that is 0."""

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
