"""An output file that is written line by line and can be resumed after a crash without missing or repeated lines."""

import hashlib
import itertools
import json
import os
import pathlib
from collections.abc import Sequence

from nmt_jax.data.lines import read_lines
from nmt_jax.errors import UserError
from nmt_jax.files import naming


class _Fingerprint:
    """The SHA-256 of the first lines of text files."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self._lines, self._num_read = [read_lines(name) for name in names], 0
        self._digest = hashlib.sha256()

    def first(self, count: int) -> str:
        """The digest of the first `count` lines of each file; `count` never decreases."""
        for row in itertools.islice(itertools.zip_longest(*self._lines), count - self._num_read):
            self._digest.update(json.dumps(row).encode())
        self._num_read = count
        return self._digest.hexdigest()


class ResumableFile:
    """Writes lines to `path`; until all are written, `path`.progress records the job and how many lines are safe."""

    def __init__(
        self, path: pathlib.Path, job: dict[str, object], overwrite: bool = False, inputs: Sequence[str] = ()
    ) -> None:
        """Open the file, or resume it.

        job: the settings that determine the lines. overwrite: replace a complete file, from the first line on. inputs:
        the text files that are read. Raises UserError if the file belongs to another job, if lines of the inputs that
        are done have changed, or if the file is complete and `overwrite` is not set.
        """
        self.path, self.marker = path, path.with_name(path.name + ".progress")
        self._inputs = _Fingerprint(inputs)
        self.job = json.loads(json.dumps(job))
        self.num_inputs = 0  # lines of the input that are done
        size = self._read_marker() if self.marker.exists() else 0
        self._replaced = path.exists() and not self.marker.exists()
        if self._replaced and not overwrite:
            raise UserError(
                f"{path}: exists and is complete; delete it, use another --output, or replace it with --overwrite"
            )
        try:
            self._file = open(path, "r+b" if path.exists() else "wb")  # noqa: SIM115  closed by __exit__
        except OSError as error:
            raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None
        self._file.seek(size)
        self._write_marker()

    def _read_marker(self) -> int:
        """Set `num_inputs` and return the number of bytes of the output that are safe."""
        try:
            state = json.loads(self.marker.read_text(encoding="utf-8"))
            job, self.num_inputs, size = state["job"], int(state["inputs"]), int(state["bytes"])
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{self.marker}: not a progress file; delete it to start again") from None
        differing = [name for name in sorted({*job, *self.job}) if job.get(name) != self.job.get(name)]
        if differing:
            raise UserError(
                f"{self.path} was started with a different {', '.join(differing)}: use the same value, or delete it "
                f"and {self.marker}"
            )
        if state.get("fingerprint") not in (None, self._inputs.first(self.num_inputs)):
            raise UserError(
                f"{self.path}: the first {self.num_inputs} lines of {', '.join(self._inputs.names)} have changed since "
                f"they were translated: restore them, or delete it and {self.marker}"
            )
        if not self.path.exists() or self.path.stat().st_size < size:
            raise UserError(f"{self.path}: shorter than {self.marker} says; delete both to start again")
        return size

    def write(self, data: bytes) -> None:
        """Append the output for the next line of the input."""
        with naming(self.path):
            self._file.write(data)
        self.num_inputs += 1

    def save(self) -> None:
        """Make the lines safe: a restart continues after them."""
        with naming(self.path):
            self._file.truncate()
            os.fsync(self._file.fileno())
        self._write_marker()

    def _write_marker(self) -> None:
        state = {"inputs": self.num_inputs, "bytes": self._file.tell(), "job": self.job}
        state["fingerprint"] = self._inputs.first(self.num_inputs)
        temporary = self.marker.with_name(self.marker.name + ".new")
        with naming(self.marker), open(temporary, "w", encoding="utf-8") as file:
            json.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.marker)

    def __enter__(self) -> "ResumableFile":
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        failed = kind is not None and not self.num_inputs  # nothing to resume
        if not failed:
            self.save()
        self._file.close()
        if kind is None or failed:
            self.marker.unlink()
        if failed and not self._replaced:
            self.path.unlink()
