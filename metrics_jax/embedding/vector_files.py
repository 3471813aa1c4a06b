"""Files of word vectors: the text and binary formats of GloVe and word2vec."""

import codecs
import contextlib
import gzip
import os
import pathlib
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, cast

import numpy as np

TEXT, BINARY = "vectors.txt", "vectors.bin"  # the files that `write` makes
_BLOCK = 2**24  # bytes read at a time
_SAMPLE = 2**12  # bytes inspected to distinguish text from binary numbers
_BOM = codecs.BOM_UTF8


def read(path: str | os.PathLike[str]) -> tuple[list[str], np.ndarray]:
    """The words and the matrix float32[V, D] of a file; formats and errors as for `Vectors.load`."""
    try:
        with _open(path) as file:
            first = file.readline().removeprefix(_BOM).split()
            header = [int(field) for field in first] if len(first) == 2 and all(map(bytes.isdigit, first)) else []
            text = not header or _is_text(file.read(_SAMPLE))
        with _open(path) as file:
            if header:
                file.readline()
            line = 2 if header else 1
            words, matrix = _read_text(file, path, line) if text else _read_binary(file, path, *header)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: damaged gzip file ({error}); download it again") from error
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror or error}") from error
    if header and matrix.shape != tuple(header):
        expected, found = (f"{rows} words of {width} numbers" for rows, width in (header, matrix.shape))
        raise ValueError(f"{path}:1: the header says {expected}, but the file has {found}; download it again")
    if len(set(words)) < len(words):
        known, again = repeated(words)
        where = f"{path}:{again + line}" if text else f"{path}: row {again + 1}"
        raise ValueError(
            f"{where}: {words[again]!r} occurs twice, also {again - known} rows before: remove one of the rows"
        )
    return words, matrix


def repeated(words: Sequence[str]) -> tuple[int, int]:
    """The rows of the first word that occurs twice."""
    seen: dict[str, int] = {}
    return next((seen[word], row) for row, word in enumerate(words) if seen.setdefault(word, row) != row)


def write(words: Sequence[str], matrix: np.ndarray, folder: pathlib.Path) -> None:
    """Writes FOLDER/vectors.txt and FOLDER/vectors.bin, word2vec's formats; `read` reads both.

    Both begin with a line "V D". A line of the text file has a word and D decimal numbers with enough digits to restore
    the float32 values exactly. A row of the binary file has a word, a space, D little-endian float32 and a line end.
    """
    with open(folder / TEXT, "wb") as text, open(folder / BINARY, "wb") as binary:
        for file in (text, binary):
            file.write("{} {}\n".format(*matrix.shape).encode())
        for word, row in zip(words, np.asarray(matrix, "<f4"), strict=True):
            text.write(f"{word} {' '.join(map(str, row))}\n".encode())
            binary.write(f"{word} ".encode() + row.tobytes() + b"\n")


@contextlib.contextmanager
def _open(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Opens a plain file, or the content of a gzipped one, which its first two bytes tell."""
    with open(path, "rb") as plain:
        packed = plain.read(2) == b"\x1f\x8b"
        plain.seek(0)
        if not packed:
            yield plain
            return
        with gzip.open(plain) as unpacked:
            yield cast(IO[bytes], unpacked)


def _is_text(sample: bytes) -> bool:
    """Whether bytes are the beginning of UTF-8 text; binary numbers are not."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return False
    return b"\0" not in sample


def _read_text(file: IO[bytes], path: str | os.PathLike[str], number: int) -> tuple[list[str], np.ndarray]:
    """Words and matrix of a text file from line `number` on."""
    words: list[str] = []
    blocks: list[np.ndarray] = []
    width = 0
    while lines := file.readlines(_BLOCK):
        lines[0] = lines[0] if blocks else lines[0].removeprefix(_BOM)
        rows = [line.rstrip() for line in lines]
        width = width or rows[0].count(b" ")
        try:
            found = _parse(rows, width)
        except ValueError:  # either a word contains a space, or a row is wrong: parse row by row
            parsed = [_parse_row(row, width, f"{path}:{number + k}") for k, row in enumerate(rows)]
            found = [word for word, _ in parsed], np.stack([numbers for _, numbers in parsed])
        words += found[0]
        blocks.append(found[1])
        number += len(lines)
    if not blocks:
        raise ValueError(f"{path}: the file contains no vectors")
    return words, np.concatenate(blocks)


def _parse(rows: Sequence[bytes], width: int) -> tuple[list[str], np.ndarray]:
    """Words and numbers of rows of equal length, parsed all at once. Raises ValueError if that fails."""
    if not width or any(row.count(b" ") != width for row in rows):
        raise ValueError("rows of different lengths")
    fields = b" ".join(rows).split(b" ")
    words = b" ".join(fields[:: width + 1]).decode("utf-8").split(" ")
    del fields[:: width + 1]
    with np.errstate(over="ignore"):
        numbers = np.array(fields).astype(np.float32).reshape(len(rows), width)
    if not np.isfinite(numbers).all():
        raise ValueError("NaN or infinity")
    return words, numbers


def _parse_row(row: bytes, width: int, where: str) -> tuple[str, np.ndarray]:
    """The word and numbers float32[D] of one row. Raises ValueError that names what is wrong."""
    fields = row.split(b" ")
    split = max(len(fields) - width, 1)
    if not width or len(fields) <= width or any(map(_is_number, fields[1:split])):
        raise ValueError(
            f"{where}: {len(fields) - 1} numbers after the word, but {width} in the first row: fix or remove this row"
        )
    try:
        word = b" ".join(fields[:split]).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{where}: the word is not UTF-8 ({error.reason}); convert the file to UTF-8") from None
    if wrong := [field for field in fields[split:] if not _is_number(field)]:
        raise ValueError(f"{where}: {wrong[0].decode('utf-8', 'replace')!r} is not a number: fix or remove this row")
    with np.errstate(over="ignore"):
        numbers = np.array([float(field) for field in fields[split:]]).astype(np.float32)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{where}: the vector of {word!r} contains NaN or infinity: fix or remove this row")
    return word, numbers


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _read_binary(file: IO[bytes], path: str | os.PathLike[str], count: int, width: int) -> tuple[list[str], np.ndarray]:
    """Reads rows of a word, a space and `width` little-endian float32, with or without line ends between rows."""
    words: list[str] = []
    numbers: list[bytes] = []
    buffer, start = b"", 0
    while len(words) < count:
        space = buffer.find(b" ", start)
        end = space + 1 + 4 * width
        if space < 0 or len(buffer) < end:
            if not (more := file.read(_BLOCK)):
                raise ValueError(f"{path}: truncated in row {len(words) + 1} of {count}; download it again")
            buffer, start = buffer[start:] + more, 0
            continue
        try:
            words.append(buffer[start:space].lstrip(b"\n").decode("utf-8"))
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: row {len(words) + 1}: the word is not UTF-8 ({error.reason})") from None
        numbers.append(buffer[space + 1 : end])
        start = end
    matrix = np.frombuffer(b"".join(numbers), "<f4").astype(np.float32).reshape(count, width)
    if not np.isfinite(matrix).all():
        row = int(np.isfinite(matrix).all(axis=1).argmin())
        raise ValueError(f"{path}: row {row + 1}: the vector of {words[row]!r} contains NaN or infinity")
    return words, matrix
