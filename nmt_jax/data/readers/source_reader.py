"""The sources of a line as a model reads them: token ids, rows of features, or several sources of different kinds.

An example of text alone is token ids int[S], where EOS ends each source. One source of rows is an array [S, F]. Sources
of different kinds are a tuple with one array for each source. Rows are stored as their reader reads them, and given to
a model as features.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nmt_jax.data.readers import rows, sources
from nmt_jax.data.readers.images import ImageFiles, Picture
from nmt_jax.data.readers.rows import RowReader
from nmt_jax.data.vocabulary.vocab import EOS, UNK
from nmt_jax.errors import UserError


@dataclasses.dataclass(frozen=True)
class SourceReader:
    """Reads the sources of a line; readers: of each source, None for text."""

    readers: tuple[RowReader | None, ...]

    @classmethod
    def of(cls, data: Any) -> SourceReader:
        """The reader of the sources that `config.data` describes."""
        return cls(tuple(rows.row_reader(kind, data) for kind in sources.kinds(data)))

    @property
    def only_text(self) -> bool:
        """Whether all sources are text."""
        return not any(self.readers)

    @property
    def has_text(self) -> bool:
        """Whether a source is text."""
        return None in self.readers

    @property
    def columns(self) -> tuple[int, ...]:
        """Of each source, the columns of the grid that its rows are, such as patches of an image; 0 = a sequence."""
        return tuple(reader.columns if reader else 0 for reader in self.readers)

    def texts(self, line: str) -> list[str]:
        """The texts among the sources of a line."""
        parts = zip(sources.split(line, len(self.readers)), self.readers, strict=True)
        return [text for text, reader in parts if not reader]

    def read(self, line: str, encode_text: Callable[[str], list[int]]) -> Any:
        """The example of a line, as it is stored. Raises UserError if a source is missing, or a file is bad.

        An empty line has empty sources.
        """
        texts = sources.split(line, len(self.readers))
        missing = [text for text, reader in zip(texts, self.readers, strict=True) if reader and not text.strip()]
        if missing and any(text.strip() for text in texts):
            raise UserError(f"{line!r}: a source that is not text is empty; name its file")
        parts = [
            rows.read_line(reader, text) if reader else np.array([*encode_text(text), EOS], np.int32)
            for text, reader in zip(texts, self.readers, strict=True)
        ]
        return np.concatenate(parts) if self.only_text else self._example(parts)

    def features(self, example: Any) -> Any:
        """A stored example as models read it: ids int32, features float32."""
        if self.only_text:
            return example.astype(np.int32)
        parts = zip(self._parts(example), self.readers, strict=True)
        return self._example([reader.features(part) if reader else part.astype(np.int32) for part, reader in parts])

    def lengths(self, example: Any) -> np.ndarray:
        """Number of tokens, EOS included, or of rows of each source."""
        return sources.lengths(example) if self.only_text else np.array([len(part) for part in self._parts(example)])

    def empty(self, example: Any) -> bool:
        """Whether there is nothing to read."""
        if self.only_text:
            return bool((np.asarray(example) == EOS).all())
        parts = zip(self._parts(example), self.readers, strict=True)
        return all(not len(part) if reader else bool((np.asarray(part) == EOS).all()) for part, reader in parts)

    def store(self, example: Any, dtype: str) -> bytes:
        """An example as bytes; dtype: of token ids."""
        parts = self._parts(example)
        types = self._types(dtype)
        content = b"".join(np.asarray(part, kind).tobytes() for part, kind in zip(parts, types, strict=True))
        return (np.array([len(part) for part in parts], "<i4").tobytes() if len(parts) > 1 else b"") + content

    def load(self, stored: bytes, dtype: str) -> Any:
        """The features of an example that `store` made."""
        types = self._types(dtype)
        if len(types) == 1:  # a row, or texts
            return self.features(self._shaped(np.frombuffer(stored, types[0]), self.readers[0]))
        header = 4 * len(types)
        lengths, parts, offset = np.frombuffer(stored[:header], "<i4"), [], header
        for length, kind, reader in zip(lengths, types, self.readers, strict=True):
            count = int(length) * (reader.width if reader else 1)
            parts.append(self._shaped(np.frombuffer(stored, kind, count, offset), reader))
            offset += count * np.dtype(kind).itemsize
        return self.features(tuple(parts))

    def fill(self, examples: Sequence[Any], shape: tuple[int, int]) -> dict[str, np.ndarray]:
        """At most B examples, as features, in the arrays of a batch, padded to S places.

        {"source": int32[B, S]} of one text, int32[B, N, S] of several; for one source of rows see `rows.fill`. Several
        sources of different kinds are "source0", "source1", ..., and "source1_lengths" beside each of rows.
        """
        if self.only_text:
            return {"source": sources.fill(examples, shape, len(self.readers))}
        arrays: dict[str, np.ndarray] = {}
        for number, reader in enumerate(self.readers):
            parts = [self._parts(example)[number] for example in examples]
            filled = rows.fill(parts, shape, reader.width) if reader else {"source": sources.fill(parts, shape, 1)}
            suffix = str(number) if len(self.readers) > 1 else ""
            arrays |= {name.replace("source", f"source{suffix}"): array for name, array in filled.items()}
        return arrays

    def dummy(self, length: int) -> Any:
        """An example whose sources have this length, as features."""
        text = np.array([*[UNK] * (length - 1), EOS], np.int32)
        if self.only_text:
            return np.tile(text, len(self.readers))
        return self._example(
            [np.zeros((length, reader.width), np.float32) if reader else text for reader in self.readers]
        )

    def pieces(self, example: Any, text_pieces: Callable[[np.ndarray], list[str]], reduction: int = 1) -> list[str]:
        """The pieces of all sources; of rows, the numbers of the states that a model makes of them, from 0 on.

        reduction: rows for each state.
        """
        if self.only_text:
            return text_pieces(example)
        parts = zip(self._parts(example), self.readers, strict=True)
        named = (
            [f"▁{state}" for state in range(-(-len(part) // reduction))] if reader else text_pieces(part)
            for part, reader in parts
        )
        return list(itertools.chain.from_iterable(named))

    def pictures(self, line: str, lengths: Sequence[int]) -> list[Picture]:
        """The images among the sources of a line, whose sources have these lengths."""
        texts = sources.split(line, len(self.readers))
        starts = itertools.accumulate(lengths[:-1], initial=0)
        return [
            Picture(reader.pixels(reader.read(text)), reader.columns, int(start))
            for text, reader, start in zip(texts, self.readers, starts, strict=True)
            if isinstance(reader, ImageFiles)
        ]

    def _parts(self, example: Any) -> tuple[Any, ...]:
        return example if isinstance(example, tuple) else (example,)

    def _example(self, parts: Sequence[Any]) -> Any:
        return tuple(parts) if len(parts) > 1 else parts[0]

    def _types(self, dtype: str) -> list[str]:
        """Of the arrays of a stored example."""
        return [dtype] if self.only_text else [reader.dtype if reader else dtype for reader in self.readers]

    def _shaped(self, values: np.ndarray, reader: RowReader | None) -> np.ndarray:
        return values.reshape(-1, reader.width) if reader else values


TEXT = SourceReader((None,))  # one text
