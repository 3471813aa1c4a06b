"""The record of a run: `metrics.jsonl`, one JSON object a line, and the same numbers for TensorBoard."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import jax
from tensorboardX import SummaryWriter

from nmt_jax.files import whole_file


class Logbook:
    """Appends rows to `workdir/metrics.jsonl` and `workdir/tensorboard/`; only process 0 writes.

    Rows past `step`, the step the run continues from, are cut off, so that the log of a run that was killed and
    started again reads like that of a run that never was.
    """

    def __init__(self, workdir: Path, step: int = 0):
        self._writes = jax.process_index() == 0
        if not self._writes:
            return
        workdir.mkdir(parents=True, exist_ok=True)
        path = workdir / "metrics.jsonl"
        truncate(path, step)
        self._file = path.open("a", encoding="utf-8")
        # purge_step makes TensorBoard forget the events that will be written again.
        self._events = SummaryWriter(str(workdir / "tensorboard"), purge_step=step + 1 if step else None)

    def __enter__(self) -> "Logbook":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writes:
            self._file.close()
            self._events.close()

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Add one row; a value that is not finite is written as null, as JSON has no name for it."""
        if not self._writes:
            return
        row = {"step": step, **{name: value if math.isfinite(value) else None for name, value in values.items()}}
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()
        for name, value in values.items():
            self._events.add_scalar(name if "/" in name else f"train/{name}", value, step)

    def sync(self) -> None:
        """Make the rows safe on disk; called before a checkpoint, which must never be ahead of its log."""
        if self._writes:
            os.fsync(self._file.fileno())
            self._events.flush()


def truncate(path: Path, step: int) -> None:
    """Drop the rows of `path` past `step`, and a last line that a kill cut short."""
    if not path.exists():
        return
    with path.open("rb") as old, whole_file(path) as new:
        for line in old:
            try:
                if json.loads(line)["step"] > step:
                    continue
            except (ValueError, KeyError, TypeError):  # half a line
                continue
            new.write(line if line.endswith(b"\n") else line + b"\n")
