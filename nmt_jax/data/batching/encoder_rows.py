"""Rows of pieces for an encoder: one or two texts among the special pieces of its tokenizer, and their batches.

An item is a dict of what one row of a batch holds: "ids" and "segments", int32[S] each, and what is to be learned.
Of texts that are read apart, it holds tuples of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tokenizers

from nmt_jax.data.batching.batches import Shape
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.prepared.parallel import Indices
from nmt_jax.errors import UserError

Item = dict[str, Any]


class Pieces(NamedTuple):
    """The pieces of a text, int32[S], and the characters [from, to) of it that each stands for, int32[S, 2]."""

    ids: np.ndarray
    spans: np.ndarray


class RowReader:
    """Texts into pieces, and pieces into rows of at most `max_length`, as the tokenizer's own template puts them.

    tokenizer: the content of a tokenizer.json. segments: whether the encoder tells the first text from the second.
    """

    def __init__(self, tokenizer: str, max_length: int, segments: bool):
        self.max_length, self.segments = max_length, segments
        self._tokenizer = tokenizers.Tokenizer.from_str(tokenizer)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._templates = {count: self._template(count) for count in (1, 2)}

    def _template(self, count: int) -> tuple[list[np.ndarray], list[np.ndarray], list[int]]:
        """Special pieces before, between and after `count` texts, their segments, and the segments of the texts."""
        probe = self._tokenizer.encode("a", add_special_tokens=False)
        probe.truncate(1)
        whole = self._tokenizer.post_process(probe, probe if count == 2 else None)
        ids, types = np.array(whole.ids, np.int32), np.array(whole.type_ids, np.int32)
        texts = [place for place, special in enumerate(whole.special_tokens_mask) if not special]
        cuts = [-1, *texts, len(ids)]
        between = [slice(start + 1, end) for start, end in itertools.pairwise(cuts)]
        return [ids[cut] for cut in between], [types[cut] for cut in between], [int(types[place]) for place in texts]

    def pieces(self, texts: Sequence[str]) -> list[Pieces]:
        """Texts, of any length, -> their pieces."""
        # Half of a surrogate pair is no character and cannot be written as UTF-8.
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        return [
            Pieces(np.array(encoding.ids, np.int32), np.array(encoding.offsets, np.int32).reshape(-1, 2))
            for encoding in self._tokenizer.encode_batch(clean, add_special_tokens=False)
        ]

    def room(self, count: int) -> int:
        """How many pieces `count` texts can have together."""
        return self.max_length - sum(map(len, self._templates[count][0]))

    def fit(self, texts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The beginnings of texts int32[S] that fit into a row together: piece by piece, the longest loses its last.

        Of two equally long the second does, as in BERT (Devlin et al., 2019) and BLEURT (Sellam et al., 2020).
        """
        room = self.room(len(texts))
        lengths = [min(len(ids), room) for ids in texts]
        while sum(lengths) > room:
            lengths[max(range(len(lengths)), key=lambda text: (lengths[text], text))] -= 1
        return [ids[:length] for ids, length in zip(texts, lengths, strict=True)]

    def row(self, *texts: np.ndarray) -> tuple[Item, list[int]]:
        """The pieces of one or two texts, which fit, -> "ids" and "segments", and where each text begins in them."""
        special, special_segments, segments = self._templates[len(texts)]
        ids, types, starts = [special[0]], [special_segments[0]], []
        for text, segment, after, after_segments in zip(
            texts, segments, special[1:], special_segments[1:], strict=True
        ):
            starts.append(sum(map(len, ids)))
            ids += [text, after]
            types += [np.full(len(text), segment, np.int32), after_segments]
        item = {"ids": np.concatenate(ids)}
        if self.segments:
            item["segments"] = np.concatenate(types)
        return item, starts


class RowCorpus:
    """Random access to items in memory; `lengths` int32[N, 2]: pieces, and 1, as a row has one length only."""

    def __init__(self, name: str, items: Sequence[Item], max_length: int):
        """UserError where there is no item."""
        if not items:
            raise UserError(f"{name}: no text is left to learn from")
        self.name, self.items, self.max_length = name, items, max_length
        self.lengths = np.array([(num_pieces(item), 1) for item in items], np.int32)

    def __len__(self) -> int:
        return len(self.items)

    def __getitems__(self, indices: Indices) -> list[Item]:
        """The items of those numbers."""
        return [self.items[int(index)] for index in indices]


def num_pieces(item: Item) -> int:
    """The pieces of an item; of the longest of texts that are read apart."""
    return max(map(len, _parts(item["ids"])))


def _parts(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


class Field(NamedTuple):
    """An array of a batch: its type, what stands where there is nothing, and whether every piece has one."""

    dtype: Any
    nothing: float = 0
    of_pieces: bool = False


class Rows:
    """Items in rows: "ids" int32[B, S], "mask" bool[B, S], False where there is no piece, and the other `fields`.

    A row of nothing has no piece. All pieces, padding included, are counted. Of N > 1 texts that are read apart:
    "ids" int32[B, N, S] and so on.
    """

    longest = "pieces of the longest row"
    remedy = "config.data.max_length"

    def __init__(self, fields: Mapping[str, Field], segments: bool, num_texts: int = 1):
        self.num_texts = num_texts
        piece = Field(np.int32, of_pieces=True)
        self.fields = {"ids": piece, **({"segments": piece} if segments else {}), **fields}

    def budget(self, length: Any, one: Any) -> Any:
        """Pieces."""
        return length * one * self.num_texts

    cost = budget

    def arrays(self, items: Sequence[Item], shape: Shape) -> Batch:
        """-> the fields, and mask."""
        of_pieces = (shape.rows, self.num_texts, shape.first)
        batch = {
            name: np.full(of_pieces if field.of_pieces else shape.rows, field.nothing, field.dtype)
            for name, field in self.fields.items()
        }
        batch["mask"] = np.zeros(of_pieces, bool)
        for row, item in enumerate(items):
            for text, ids in enumerate(_parts(item["ids"])):
                batch["mask"][row, text, : len(ids)] = True
            for name, field in self.fields.items():
                if field.of_pieces:
                    for text, part in enumerate(_parts(item[name])):
                        batch[name][row, text, : len(part)] = part
                else:
                    batch[name][row] = item[name]
        if self.num_texts > 1:
            return batch
        return {name: array[:, 0] if array.ndim > 1 else array for name, array in batch.items()}
