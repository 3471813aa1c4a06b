"""Static word vectors, as GloVe and word2vec write them."""

import codecs
import contextlib
import dataclasses
import functools
import gzip
import hashlib
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, cast

import numpy as np

from metrics_jax.embedding.encoder import Encoder
from metrics_jax.surface.tokenizers import check_tokenizer
from metrics_jax.surface.tokenizers import tokenize as split

_BLOCK = 2**24  # bytes read at a time
_SAMPLE = 2**12  # bytes that tell text from numbers
_MARK = codecs.BOM_UTF8


@dataclasses.dataclass(frozen=True, eq=False)
class Vectors:
    """A vector for each of V words; equal to another with the same fingerprint.

    matrix: float[V, D]. ValueError for a word that is there twice and for numbers that are not finite.
    """

    words: tuple[str, ...]
    matrix: np.ndarray

    def __post_init__(self) -> None:
        words, matrix = tuple(self.words), np.asarray(self.matrix)
        if matrix.dtype.kind != "f" or matrix.flags.writeable:
            matrix = np.array(matrix, matrix.dtype if matrix.dtype.kind == "f" else np.float64)
            matrix.flags.writeable = False
        if matrix.ndim != 2 or len(matrix) != len(words) or not matrix.size:
            raise ValueError(f"{len(words)} words want a matrix float[{len(words)}, D], not {matrix.shape}")
        if not np.isfinite(matrix).all():
            row = int(np.isfinite(matrix).all(axis=1).argmin())
            raise ValueError(f"the vector of {words[row]!r} holds NaN or infinity")
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "matrix", matrix)
        if len(self._rows) < len(words):
            first, second = _twice(words)
            raise ValueError(f"rows {first} and {second} are both of {words[first]!r}: keep one of them")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Vectors":
        """Float32 vectors of a file of GloVe's or word2vec's (text or binary), plain or gzipped.

        Text is a word and its D numbers a line, with blanks between; a word may hold blanks itself. word2vec's begins
        with a line of two numbers, V and D. ValueError `FILE:LINE: ...` for a row of another length than the first, for
        what is no number, NaN or infinity, for a word that is there twice, and for a file cut short.
        """
        try:
            with _open(path) as file:
                first = file.readline().removeprefix(_MARK).split()
                header = [int(field) for field in first] if len(first) == 2 and all(map(bytes.isdigit, first)) else []
                text = not header or _is_text(file.read(_SAMPLE))
            with _open(path) as file:
                if header:
                    file.readline()
                line = 2 if header else 1
                words, matrix = _read_text(file, path, line) if text else _read_binary(file, path, *header)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path}: not a whole gzip file ({error}); fetch it again") from error
        except OSError as error:
            raise ValueError(f"{path}: cannot read it: {error.strerror or error}") from error
        if header and matrix.shape != tuple(header):
            wanted, found = (f"{rows} words of {width} numbers" for rows, width in (header, matrix.shape))
            raise ValueError(f"{path}:1: the file should hold {wanted}, it has {found}; fetch it again")
        if len(set(words)) < len(words):
            known, again = _twice(words)
            where = f"{path}:{again + line}" if text else f"{path}: row {again + 1}"
            raise ValueError(f"{where}: {words[again]!r} is there already, {again - known} rows before: remove one")
        matrix.flags.writeable = False
        return cls(tuple(words), matrix)

    def rows(self, words: Iterable[str]) -> np.ndarray:
        """-> int64[n], each word's row of the matrix, -1 where it has none."""
        row = self._rows.get
        return np.fromiter((row(word, -1) for word in words), np.int64)

    def encoder(self, tokenize: str = "intl", lowercase: bool = True) -> Encoder:
        """What BERTScore, MoverScore and YiSi-1 read text with: each word's vector, whatever stands beside it.

        tokenize, lowercase: as of `WMD`; as there, words without a vector are passed over. One layer, no special
        tokens, texts of any length.
        """
        import jax

        check_tokenizer(tokenize)
        return Encoder(
            tokenize=functools.partial(self._tokenized, tokenizer=tokenize, lowercase=lowercase),
            embed=jax.tree_util.Partial(_look_up, jax.numpy.asarray(self.matrix, np.float32)),
            pieces=lambda ids: [self.words[one] for one in ids],
            max_length=sys.maxsize,
            fingerprint=hashlib.sha256(f"{self.fingerprint} {tokenize} {lowercase}".encode()).hexdigest(),
            dtype="float32",
        )

    def _tokenized(
        self, texts: Sequence[str], tokenizer: str, lowercase: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ids, mask and special of the known words of B texts, as of `Encoder`."""
        rows = [self.rows(words) for words in split(texts, tokenizer, lowercase)]
        known = [some[some >= 0] for some in rows]
        lengths = np.array([len(some) for some in known], int)
        mask = np.arange(lengths.max(initial=0))[None] < lengths[:, None]
        ids = np.zeros(mask.shape, np.int32)
        ids[mask] = np.concatenate([np.zeros(0, np.int64), *known])
        return ids, mask, np.zeros(mask.shape, bool)

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of words and numbers."""
        digest = hashlib.sha256("\n".join(self.words).encode("utf-8", "surrogatepass"))
        kind = self.matrix.dtype.newbyteorder("<")
        digest.update(f"\n{kind.str} {self.matrix.shape}\n".encode("ascii"))
        digest.update(np.ascontiguousarray(self.matrix, kind).data)
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vectors) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"Vectors({len(self.words)} words, {self.matrix.shape[1]} numbers each, {self.fingerprint[:16]})"

    @functools.cached_property
    def _rows(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words)}


def _look_up(matrix: Any, ids: Any, mask: Any) -> Any:
    """Matrix float[V, D], ids int[B, S] -> float[1, B, S, D]."""
    return matrix[ids][None]


def _twice(words: Sequence[str]) -> tuple[int, int]:
    """The places of a word that is there twice."""
    seen: dict[str, int] = {}
    return next((seen[word], place) for place, word in enumerate(words) if seen.setdefault(word, place) != place)


@contextlib.contextmanager
def _open(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A plain file or, by its first two bytes, what a gzipped one holds."""
    with open(path, "rb") as plain:
        packed = plain.read(2) == b"\x1f\x8b"
        plain.seek(0)
        if not packed:
            yield plain
            return
        with gzip.open(plain) as unpacked:
            yield cast(IO[bytes], unpacked)


def _is_text(sample: bytes) -> bool:
    """Whether bytes are the beginning of UTF-8 text; the numbers of a binary file are not."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return False
    return b"\0" not in sample


def _read_text(file: IO[bytes], path: str | os.PathLike[str], number: int) -> tuple[list[str], np.ndarray]:
    """The rows from line `number` on."""
    words: list[str] = []
    blocks: list[np.ndarray] = []
    width = 0
    while lines := file.readlines(_BLOCK):
        lines[0] = lines[0] if blocks else lines[0].removeprefix(_MARK)
        rows = [line.rstrip() for line in lines]
        width = width or rows[0].count(b" ")
        try:
            found = _parse(rows, width)
        except ValueError:  # a word with blanks in it, or a mistake: which, and where?
            parsed = [_parse_row(row, width, f"{path}:{number + k}") for k, row in enumerate(rows)]
            found = [word for word, _ in parsed], np.stack([numbers for _, numbers in parsed])
        words += found[0]
        blocks.append(found[1])
        number += len(lines)
    if not blocks:
        raise ValueError(f"{path}: the file holds no vectors")
    return words, np.concatenate(blocks)


def _parse(rows: Sequence[bytes], width: int) -> tuple[list[str], np.ndarray]:
    """Words and numbers of rows that are all alike, else ValueError."""
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
    """Word and numbers float32[D] of one row, or what is wrong with it."""
    fields = row.split(b" ")
    split = max(len(fields) - width, 1)
    if not width or len(fields) <= width or any(map(_is_number, fields[1:split])):
        raise ValueError(
            f"{where}: {len(fields) - 1} numbers after the word, the first row has {width}: mend the row or remove it"
        )
    try:
        word = b" ".join(fields[:split]).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{where}: the word is not UTF-8 ({error.reason}); convert the file to UTF-8") from None
    if wrong := [field for field in fields[split:] if not _is_number(field)]:
        raise ValueError(f"{where}: {wrong[0].decode('utf-8', 'replace')!r} is no number: mend the row or remove it")
    with np.errstate(over="ignore"):
        numbers = np.array([float(field) for field in fields[split:]]).astype(np.float32)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{where}: the vector of {word!r} holds NaN or infinity: mend the row or remove it")
    return word, numbers


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _read_binary(file: IO[bytes], path: str | os.PathLike[str], count: int, width: int) -> tuple[list[str], np.ndarray]:
    """Rows of a word, a blank and `width` little-endian float32, with or without a line end between them."""
    words: list[str] = []
    numbers: list[bytes] = []
    buffer, start = b"", 0
    while len(words) < count:
        blank = buffer.find(b" ", start)
        end = blank + 1 + 4 * width
        if blank < 0 or len(buffer) < end:
            if not (more := file.read(_BLOCK)):
                raise ValueError(f"{path}: cut short in row {len(words) + 1} of {count}; fetch it again")
            buffer, start = buffer[start:] + more, 0
            continue
        try:
            words.append(buffer[start:blank].lstrip(b"\n").decode("utf-8"))
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: row {len(words) + 1}: the word is not UTF-8 ({error.reason})") from None
        numbers.append(buffer[blank + 1 : end])
        start = end
    matrix = np.frombuffer(b"".join(numbers), "<f4").astype(np.float32).reshape(count, width)
    if not np.isfinite(matrix).all():
        row = int(np.isfinite(matrix).all(axis=1).argmin())
        raise ValueError(f"{path}: row {row + 1}: the vector of {words[row]!r} holds NaN or infinity")
    return words, matrix
