"""An output file that is written in parts, by one process or several, and resumed after a crash.

The folder OUTPUT.parts holds `job.json`, the settings that determine the output, and a file for each finished block of
the input. Blocks are independent of the number of processes. When all are there, they are joined in order.
"""

import contextlib
import hashlib
import json
import pathlib
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from nmt_jax.errors import UserError
from nmt_jax.storage.files import remove_folder, whole_file
from nmt_jax.storage.paths import is_remote

JOB = "job.json"


class Part(NamedTuple):
    """What was computed for one block: `digest` identifies its input, `summary` is a JSON value."""

    data: bytes
    digest: str = ""
    summary: Any = None


class Parts:
    """The parts of the file `output`, which belong to the settings `job`, a JSON object."""

    def __init__(self, output: pathlib.Path, job: Mapping[str, Any]):
        self.output = output
        if not output.name:  # "/", ".", ""
            raise UserError(f"{output}: cannot be written: it is a folder, not a file")
        self.folder = output.with_name(output.name + ".parts")
        self.job: dict[str, Any] = json.loads(json.dumps(job))

    def check(self, overwrite: bool = False) -> None:
        """Raise UserError if the output is complete, unless `overwrite` is set, or the parts belong to another job."""
        if not (is_remote(self.output) or self.output.parent.is_dir()):
            raise UserError(f"{self.output}: cannot be written: {self.output.parent} is not a folder")
        if self.output.exists() and not self.output.is_file():
            raise UserError(f"{self.output}: cannot be written: it is a folder or a device, not a file")
        if (self.folder / JOB).exists():
            self._check_job()
        elif self.is_complete() and not overwrite:
            raise UserError(
                f"{self.output}: exists and is complete; delete it, use another --output, or replace it with "
                "--overwrite"
            )

    def is_complete(self) -> bool:
        """Return whether the output is there, and no job that was started."""
        return (self.output.exists() or self.output.is_symlink()) and not (self.folder / JOB).exists()

    def _check_job(self) -> None:
        path = self.folder / JOB
        try:
            job = json.loads(path.read_text(encoding="utf-8"))
            differing = differing_settings(job, self.job)
        except (ValueError, TypeError, AttributeError):
            raise UserError(f"{path}: damaged; delete the folder to start again") from None
        if differing:
            raise UserError(
                f"{self.output} was started with a different {', '.join(differing)}: use the same, or delete "
                f"{self.folder} to start again"
            )

    def start(self) -> None:
        """Make the folder and write the job, if they are not there."""
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise UserError(f"{self.output}: cannot be written: {error.strerror or error}") from None
        if not (self.folder / JOB).exists():
            try:
                with whole_file(self.folder / JOB) as file:
                    file.write(json.dumps(self.job).encode())
            except OSError:
                with contextlib.suppress(OSError):
                    self.folder.rmdir()
                raise

    def finished(self) -> set[int]:
        """Return the numbers of the finished blocks."""
        return {int(path.stem) for path in self.folder.glob("*.part") if path.stem.isdecimal()}

    def write(self, block: int, part: Part) -> None:
        """Write the part of a block; readers see all of it or nothing."""
        header = {"digest": part.digest, "summary": part.summary, "checksum": zlib.crc32(part.data)}
        with whole_file(self._path(block)) as file:
            file.write(json.dumps(header).encode() + b"\n" + part.data)

    def read(self, block: int) -> Part:
        """Return the part of a block; raises UserError if it is damaged."""
        header, _, data = self._path(block).read_bytes().partition(b"\n")
        try:
            values = json.loads(header)
            if values["checksum"] == zlib.crc32(data):
                return Part(data, values["digest"], values["summary"])
        except (ValueError, KeyError, TypeError):
            pass
        raise UserError(f"{self._path(block)}: damaged; delete it and run the same command again")

    def check_input(self, block: int, digest: str) -> None:
        """Raise UserError if a finished block was made from another input."""
        if self.read(block).digest != digest:
            raise UserError(
                f"{self._path(block)} was made from another input: restore the input, or delete {self.folder} to "
                "start again"
            )

    def join(self, num_blocks: int, heading: bytes = b"", ending: bytes = b"") -> None:
        """Write the output, all parts in order, and delete the parts."""
        with whole_file(self.output) as file:
            file.write(heading)
            for block in range(num_blocks):
                file.write(self.read(block).data)
            file.write(ending)
        self.discard()

    def discard(self) -> None:
        """Delete the parts."""
        remove_folder(self.folder)

    def _path(self, block: int) -> pathlib.Path:
        return self.folder / f"{block:08}.part"


def differing_settings(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the names of the settings that differ between two jobs."""
    return [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]


def digest(items: Iterable[Any]) -> str:
    """Return a hash of the items of a block, whose `repr` must be the same in every process."""
    return hashlib.sha256("\n".join(map(repr, items)).encode("utf-8", "surrogatepass")).hexdigest()[:32]
