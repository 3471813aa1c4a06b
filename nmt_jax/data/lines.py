r"""Text files as lines: UTF-8, plain or gzip, split at \n only."""

import gzip
import hashlib
import io
import itertools
import os
import pathlib
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, TypeVar

from nmt_jax.errors import UserError
from nmt_jax.storage.paths import path_of

Item = TypeVar("Item")
MOST_BYTES = 1 << 26  # in a line: a stream without line ends, such as /dev/zero, must not fill the memory


def find(path: str | os.PathLike[str]) -> pathlib.Path:
    """The path itself, or with .gz appended if only that file exists. Raises UserError if neither is a file."""
    if not os.fspath(path):
        raise UserError("the name of an input file is empty")
    for candidate in (path_of(path), path_of(f"{os.fspath(path)}.gz")):
        if candidate.exists() and not candidate.is_dir():
            return candidate
    what = "is a folder, not a file" if path_of(path).is_dir() else "no such file, plain or with .gz"
    raise UserError(f"{path}: {what}")


def read_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """The lines of a file, plain or .gz, as `decode_lines` returns them.

    Raises UserError, naming the line, if the file is missing, empty, truncated or not UTF-8.
    """
    path = find(path)
    number = 0
    try:
        with path.open("rb") as file, gzip.open(file) if path.suffix == ".gz" else file as text:
            for number, line in enumerate(decode_lines(text, str(path)), start=1):  # noqa: B007  used in the errors
                yield line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path}:{number + 1}: damaged gzip file ({error}); obtain it again") from error
    except OSError as error:
        raise UserError(f"{path}: cannot read the file: {error.strerror or error}") from error
    if not number:
        raise UserError(f"{path}: the file is empty")


def parallel_lines(paths: Sequence[str | os.PathLike[str]]) -> Iterator[tuple[str, ...]]:
    """Line n of all files together, read as `read_lines` does. Raises UserError with all counts if they differ."""
    files = [read_lines(path) for path in paths]
    for number, lines in enumerate(itertools.zip_longest(*files), start=1):
        if None in lines:
            rests = [sum(1 for _ in file) for file in files]
            counts = [number - (line is None) + rest for line, rest in zip(lines, rests, strict=True)]
            first, *others = (f"{path} has {count}" for path, count in zip(paths, counts, strict=True))
            raise UserError(
                f"{paths[counts.index(max(counts))]}:{number}: this line has no counterpart: "
                f"{' and '.join([first + ' lines', *others])}; parallel files must have equally many lines"
            )
        yield lines


def decode_lines(stream: IO[bytes] | io.BufferedIOBase, name: str, first: int = 1) -> Iterator[str]:
    r"""The lines of a byte stream, without line ends and byte-order mark; `first` is the number of its first line.

    Only \n (or \r\n) ends a line; U+2028, U+0085, a lone \r, \v and \f are ordinary characters.
    Raises UserError `name:LINE` if a line is not UTF-8 or longer than 64 MiB.
    """
    for number, line in enumerate(iter(lambda: stream.readline(MOST_BYTES + 1), b""), start=first):
        if len(line) > MOST_BYTES:
            raise UserError(f"{name}:{number}: a line of more than {MOST_BYTES >> 20} MiB; the input must be text")
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        try:
            yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            where = f"byte 0x{error.object[error.start]:02x} at column {error.start + 1}"
            raise UserError(f"{name}:{number}: not UTF-8 ({where}); convert the text to UTF-8") from None


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of up to `size` items. Items read before a UserError are yielded before the error is raised."""
    chunk: list[Item] = []
    try:
        for item in items:
            chunk.append(item)
            if len(chunk) == size:
                yield chunk
                chunk = []
    except UserError:
        if chunk:
            yield chunk
        raise
    if chunk:
        yield chunk


def sha256_of(path: pathlib.Path) -> str:
    """SHA-256 of the bytes of a file, in hexadecimal. Raises UserError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path}: cannot read the file: {error.strerror}") from error


def count_lines(file: IO[bytes]) -> int | None:
    """Number of lines of an open plain file, from its beginning; the position in the file does not change.

    Returns None if the number cannot be known in advance: for a pipe, a terminal or a compressed file.
    """
    try:
        descriptor = file.fileno()
    except OSError:  # not a file of the operating system
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode) or os.pread(descriptor, 2, 0) == b"\x1f\x8b":
        return None
    lines, offset, last = 0, 0, b"\n"
    while block := os.pread(descriptor, 2**20, offset):
        lines, offset, last = lines + block.count(b"\n"), offset + len(block), block[-1:]
    return lines + (last != b"\n")


def num_lines(name: str | None) -> int | None:
    """Number of lines of a file, or of stdin if `name` is None; None if `count_lines` cannot know it."""
    if name is None:
        return count_lines(sys.stdin.buffer)
    path = find(name)
    if not path.is_file():  # a pipe can be opened only once
        return None
    with path.open("rb") as file:
        return count_lines(file)


def split_long(line: str, encode: Callable[[str], Sequence[int]], limit: int) -> list[str]:
    """Splits `line` into parts of fewer than `limit` pieces: near the middle, after a sentence, or else at a space.

    In training, the model saw no sequence longer than `limit` (EOS included), and the time and memory of attention grow
    with the square of the length.
    """
    if len(encode(line)) < limit or len(line) < 2:
        return [line]
    middle = len(line) // 2
    for border in (r"[.!?;:] ", " "):
        cuts = [match.end() for match in re.finditer(border, line) if middle / 2 <= match.end() <= middle * 3 / 2]
        if cuts:
            middle = min(cuts, key=lambda cut: abs(cut - middle))
            break
    return [part for half in (line[:middle], line[middle:]) for part in split_long(half, encode, limit)]
