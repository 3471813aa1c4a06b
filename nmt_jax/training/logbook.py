"""The log of a run: `metrics.jsonl`, one JSON object per line, and the same numbers for TensorBoard."""

import json
import math
import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path

import jax
from tensorboardX import SummaryWriter

from nmt_jax.storage.files import remove_folder, upload, whole_file
from nmt_jax.storage.paths import is_remote
from nmt_jax.workdir import parse_row


class Logbook:
    """Appends rows to `workdir/metrics.jsonl` and `workdir/tensorboard/`; only process 0 writes.

    Rows after `step`, where the run continues, are removed first, so that the log of a run that was killed and resumed
    equals that of an uninterrupted run. In an object store, nothing can be appended: the log is written to a local
    folder, and copied by `sync` and at the end.
    """

    def __init__(self, workdir: Path, step: int = 0):
        self._writes = jax.process_index() == 0
        if not self._writes:
            return
        workdir.mkdir(parents=True, exist_ok=True)
        path = workdir / "metrics.jsonl"
        truncate(path, step)
        self._workdir, self._local = workdir, workdir
        if is_remote(workdir):
            self._local = Path(tempfile.mkdtemp(prefix="nmt-jax-"))
            (self._local / path.name).write_bytes(path.read_bytes() if path.exists() else b"")
        self._file = (self._local / path.name).open("a", encoding="utf-8")
        # With purge_step, TensorBoard ignores the events that will be written again.
        self._events = SummaryWriter(str(self._local / "tensorboard"), purge_step=step + 1)

    def __enter__(self) -> "Logbook":
        return self

    def __exit__(self, *error: object) -> None:
        if self._writes:
            self._file.close()
            self._events.close()
            if self._local != self._workdir:
                try:
                    upload(self._local, self._workdir)
                finally:
                    remove_folder(self._local)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Append a row; values that are not finite become null, as JSON cannot represent them."""
        if not self._writes:
            return
        row = {"step": step, **{name: value if math.isfinite(value) else None for name, value in values.items()}}
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()
        for name, value in values.items():
            self._events.add_scalar(name if "/" in name else f"train/{name}", value, step)

    def sync(self) -> None:
        """Flush the rows to disk; called before a checkpoint is saved, which must not be ahead of its log."""
        if self._writes:
            os.fsync(self._file.fileno())
            self._events.flush()
            if self._local != self._workdir:
                upload(self._local, self._workdir)


def truncate(path: Path, step: int) -> None:
    """Remove the rows of `path` after `step`, and an incomplete last line.

    If any other line is not a row, it is removed with a warning, and `path`.damaged keeps the old file.
    """
    if not path.exists():
        return
    lines = [line.strip() for line in path.read_text(encoding="utf-8", errors="replace").split("\n")]
    kept, damaged = [], []
    for number, line in enumerate(lines, start=1):
        row, rest = parse_row(line)
        if row is not None and row["step"] <= step:
            kept.append(line[: len(line) - len(rest)])
        if rest and number < len(lines):
            damaged.append(number)
    if damaged:
        copy = path.with_name(f"{path.name}.damaged")
        with path.open("rb") as old, whole_file(copy) as file:
            shutil.copyfileobj(old, file)
        more = f" and {len(damaged) - 1} more lines" if len(damaged) > 1 else ""
        warnings.warn(f"{path}:{damaged[0]}{more}: not rows of the log, removed; {copy} keeps them", stacklevel=2)
    with whole_file(path) as file:
        file.writelines(f"{line}\n".encode() for line in kept)
