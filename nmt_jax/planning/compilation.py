"""Compiled programs as far as planning needs them: their memory and text, kept on disk."""

import gzip
import hashlib
import importlib.metadata
import json
import math
import re
import time
from pathlib import Path
from typing import Any, NamedTuple

from nmt_jax.errors import UserError, one_line
from nmt_jax.storage.files import whole_file

COMPILERS = ("jax", "jaxlib", "libtpu", "jax-cuda13-pjrt")


class Compiled(NamedTuple):
    """The bytes of arguments, outputs, temporaries, donated arguments and code on each device; the program's text."""

    arguments: int
    outputs: int
    temporaries: int
    donated: int
    code: int
    text: str

    @property
    def peak(self) -> int:
        """Bytes that the program needs on each device; outputs take the place of donated arguments."""
        return self.arguments + self.temporaries + max(self.outputs - self.donated, 0) + self.code

    @classmethod
    def of(cls, executable: Any) -> "Compiled":
        """What a compiled program of JAX tells."""
        memory = executable.memory_analysis()
        return cls(
            int(memory.argument_size_in_bytes),
            int(memory.output_size_in_bytes),
            int(memory.temp_size_in_bytes),
            int(memory.alias_size_in_bytes),
            int(memory.generated_code_size_in_bytes),
            executable.as_text(),
        )


class TooLargeError(Exception):
    """The compiler refuses a program because a device has too little memory; needed: bytes, inf if it does not tell."""

    def __init__(self, message: str):
        super().__init__(message)
        used = re.search(r"(?:Used |temporaries \()([\d.]+)([KMGT])", message)
        self.needed = float(used[1]) * 1024.0 ** (1 + "KMGT".index(used[2])) if used else math.inf


def compile_or_read(lowered: Any, target: str, folder: Path) -> tuple[Compiled, float]:
    """Return a lowered program, compiled for `target` or read from `folder`, and the seconds of the compilation.

    Raises TooLargeError if the compiler finds that memory does not suffice, and UserError if it fails otherwise.
    """
    path = folder / f"{_key(lowered.as_text(), target)}.json.gz"
    if path.is_file():
        with gzip.open(path, "rt", encoding="utf-8") as file:
            stored = json.load(file)
        if "too_large" in stored:
            raise TooLargeError(stored["too_large"])
        return Compiled(**stored), 0.0
    start = time.monotonic()
    try:
        compiled = Compiled.of(lowered.compile())
    except Exception as error:  # compilers raise many types
        text = one_line(str(error))
        if "RESOURCE_EXHAUSTED" not in text and "Ran out of memory" not in text:
            raise UserError(f"{target}: the program cannot be compiled: {text[:300]}") from error
        _write(path, {"too_large": text[:1000]})
        raise TooLargeError(text[:1000]) from error
    _write(path, compiled._asdict())
    return compiled, time.monotonic() - start


def _write(path: Path, content: dict[str, Any]) -> None:
    with whole_file(path) as file:
        file.write(gzip.compress(json.dumps(content).encode(), compresslevel=3))


def _key(program: str, target: str) -> str:
    versions = [" ".join(Compiled._fields)]
    for name in COMPILERS:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return hashlib.sha256("\n".join([target, *versions, program]).encode()).hexdigest()[:32]
