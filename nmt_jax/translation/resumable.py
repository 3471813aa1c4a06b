"""A file that is written line by line and, after a crash, gone on with: nothing missing, nothing twice."""

import json
import os
import pathlib
from types import TracebackType

from nmt_jax.errors import UserError


class ResumableFile:
    """Lines into `path`; `path`.progress says how far they are safe, and of which job, until all are written."""

    def __init__(self, path: pathlib.Path, job: dict[str, object]) -> None:
        """job: what makes the lines what they are; UserError where the file there is another job's, or whole."""
        self.path, self.marker = path, path.with_name(path.name + ".progress")
        self.job = json.loads(json.dumps(job))
        self.num_inputs = 0  # how many lines of the input are done
        size = 0
        if self.marker.exists():
            try:
                state = json.loads(self.marker.read_text(encoding="utf-8"))
                theirs, self.num_inputs, size = state["job"], int(state["inputs"]), int(state["bytes"])
            except (ValueError, KeyError, TypeError):
                raise UserError(f"{self.marker}: not a marker of progress; delete it to begin anew") from None
            differ = [name for name in sorted({*theirs, *self.job}) if theirs.get(name) != self.job.get(name)]
            if differ:
                raise UserError(
                    f"{path} was begun with another {', '.join(differ)}: give the same, or delete {self.marker} and it"
                )
            if not path.exists() or path.stat().st_size < size:
                raise UserError(f"{path}: shorter than {self.marker} says; delete both to begin anew")
        elif path.exists():
            raise UserError(f"{path}: exists and is whole; delete it, or give another --output")
        try:
            self._file = open(path, "r+b" if size else "wb")  # noqa: SIM115  closed by __exit__
        except OSError as error:
            raise UserError(f"{path}: cannot write it: {error.strerror or error}") from None
        self._file.truncate(size)
        self._file.seek(size)
        self._mark()

    def write(self, data: bytes) -> None:
        """Append what comes of the next line of the input."""
        self._file.write(data)
        self.num_inputs += 1

    def save(self) -> None:
        """From now on a restart goes on from here."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._mark()

    def _mark(self) -> None:
        state = {"inputs": self.num_inputs, "bytes": self._file.tell(), "job": self.job}
        temporary = self.marker.with_name(self.marker.name + ".new")
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.marker)

    def __enter__(self) -> "ResumableFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.save()
        self._file.close()
        if kind is None:
            self.marker.unlink()
        elif not self.num_inputs:  # nothing to go on with
            self.marker.unlink()
            self.path.unlink()
