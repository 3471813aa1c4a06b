"""Static word vectors, read from the file formats of GloVe and word2vec."""

import dataclasses
import functools
import hashlib
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from metrics_jax.embedding.encoder import Encoder
from metrics_jax.embedding.vector_files import read, repeated
from metrics_jax.surface.tokenizers import check_tokenizer
from metrics_jax.surface.tokenizers import tokenize as split


@dataclasses.dataclass(frozen=True, eq=False)
class Vectors:
    """Vectors of V words, matrix float[V, D]; two objects with the same fingerprint are equal.

    Raises ValueError if a word occurs twice or a number is not finite.
    """

    words: tuple[str, ...]
    matrix: np.ndarray

    def __post_init__(self) -> None:
        words, matrix = tuple(self.words), np.asarray(self.matrix)
        if matrix.dtype.kind != "f" or matrix.flags.writeable:
            matrix = np.array(matrix, matrix.dtype if matrix.dtype.kind == "f" else np.float64)
            matrix.flags.writeable = False
        if matrix.ndim != 2 or len(matrix) != len(words) or not matrix.size:
            raise ValueError(f"{len(words)} words need a matrix of shape ({len(words)}, D), not {matrix.shape}")
        if not np.isfinite(matrix).all():
            row = int(np.isfinite(matrix).all(axis=1).argmin())
            raise ValueError(f"the vector of {words[row]!r} contains NaN or infinity")
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "matrix", matrix)
        if len(self._rows) < len(words):
            first, second = repeated(words)
            raise ValueError(f"rows {first} and {second} are both for {words[first]!r}: keep one of them")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Vectors":
        """Read float32 vectors from a file of GloVe or word2vec (text or binary), plain or gzipped.

        A line of a text file holds a word and D numbers, separated by spaces; the word itself may contain spaces. A
        file of word2vec begins with a line of two numbers, V and D. Raises ValueError with `FILE:LINE` if a row has
        another length than the first, a field is not a finite number, a word occurs twice, or the file is truncated.
        """
        words, matrix = read(path)
        matrix.flags.writeable = False
        return cls(tuple(words), matrix)

    def rows(self, words: Iterable[str]) -> np.ndarray:
        """The row of each word in the matrix, int64[n]; -1 for a word without a vector."""
        row = self._rows.get
        return np.fromiter((row(word, -1) for word in words), np.int64)

    def encoder(self, tokenize: str = "intl", lowercase: bool = True) -> Encoder:
        """An encoder for BERTScore, MoverScore and YiSi-1 that looks up each word's vector, without context.

        tokenize, lowercase: as for `WMD`; words without a vector are skipped. The encoder has one layer, no special
        tokens and no maximum length.
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
        """Ids, mask and special of the known words of B texts, as `Encoder.tokenize` returns them."""
        rows = [self.rows(words) for words in split(texts, tokenizer, lowercase)]
        known = [some[some >= 0] for some in rows]
        lengths = np.array([len(some) for some in known], int)
        mask = np.arange(lengths.max(initial=0))[None] < lengths[:, None]
        ids = np.zeros(mask.shape, np.int32)
        ids[mask] = np.concatenate([np.zeros(0, np.int64), *known])
        return ids, mask, np.zeros(mask.shape, bool)

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the words and numbers."""
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
    """Rows of matrix float[V, D] for ids int[B, S], as one hidden state: float[1, B, S, D]."""
    return matrix[ids][None]


def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors float[..., D] scaled to length 1; zero vectors stay zero."""
    norm = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(norm > 0, norm, 1.0)
