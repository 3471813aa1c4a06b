"""Rows for a pretrained encoder: one or two texts with the special tokens of its tokenizer, and their batches.

An item is a dict of the content of one row: "ids" and "segments", int32[S] each, and the targets. For texts that are
encoded separately, "ids" and "segments" are tuples.
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
    """The token ids of a text, int32[S], and the character range [start, end) of each token, int32[S, 2]."""

    ids: np.ndarray
    spans: np.ndarray


class RowLimits(NamedTuple):
    """The largest number of tokens in a row, and whether the encoder uses segment ids."""

    max_length: int
    segments: bool = False


class RowReader:
    """Tokenizes texts, and builds rows of at most `max_length` tokens with the tokenizer's own template.

    tokenizer: the content of a tokenizer.json file. segments: whether the encoder uses segment ids.
    """

    def __init__(self, tokenizer: str, max_length: int, segments: bool):
        self.max_length, self.segments = max_length, segments
        self._tokenizer = tokenizers.Tokenizer.from_str(tokenizer)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._templates = {count: self._template(count) for count in (1, 2)}

    def _template(self, count: int) -> tuple[list[np.ndarray], list[np.ndarray], list[int]]:
        """Special tokens before, between and after `count` texts, their segment ids, and those of the texts."""
        probe = self._tokenizer.encode("a", add_special_tokens=False)
        probe.truncate(1)
        whole = self._tokenizer.post_process(probe, probe if count == 2 else None)
        ids, types = np.array(whole.ids, np.int32), np.array(whole.type_ids, np.int32)
        texts = [position for position, special in enumerate(whole.special_tokens_mask) if not special]
        cuts = [-1, *texts, len(ids)]
        between = [slice(start + 1, end) for start, end in itertools.pairwise(cuts)]
        return [ids[cut] for cut in between], [types[cut] for cut in between], types[texts].tolist()

    def pieces(self, texts: Sequence[str]) -> list[Pieces]:
        """The tokens of texts of any length."""
        # A lone surrogate cannot be encoded as UTF-8.
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        return [
            Pieces(np.array(encoding.ids, np.int32), np.array(encoding.offsets, np.int32).reshape(-1, 2))
            for encoding in self._tokenizer.encode_batch(clean, add_special_tokens=False)
        ]

    def capacity(self, count: int) -> int:
        """Maximum total number of tokens of `count` texts in a row."""
        return self.max_length - sum(map(len, self._templates[count][0]))

    def fit(self, texts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Truncates texts int32[S] so that they fit into a row: the longest text loses its last token, repeatedly.

        Of two equally long texts the second is truncated, as in BERT (Devlin et al., 2019) and BLEURT (Sellam et al.,
        2020).
        """
        capacity = self.capacity(len(texts))
        lengths = [min(len(ids), capacity) for ids in texts]
        while sum(lengths) > capacity:
            lengths[max(range(len(lengths)), key=lambda text: (lengths[text], text))] -= 1
        return [ids[:length] for ids, length in zip(texts, lengths, strict=True)]

    def row(self, *texts: np.ndarray) -> tuple[Item, list[int]]:
        """A row of one or two texts that fit: its "ids" and "segments", and the position where each text begins."""
        special, special_segments, segments = self._templates[len(texts)]
        ids, types, starts = [special[0]], [special_segments[0]], []
        following = zip(texts, segments, special[1:], special_segments[1:], strict=True)
        for text, segment, after, after_segments in following:
            starts.append(sum(map(len, ids)))
            ids += [text, after]
            types += [np.full(len(text), segment, np.int32), after_segments]
        item = {"ids": np.concatenate(ids)}
        if self.segments:
            item["segments"] = np.concatenate(types)
        return item, starts


class RowCorpus:
    """Random access to items in memory; `lengths` int32[N, 2]: number of tokens, and 1, as rows have one length."""

    def __init__(self, name: str, items: Sequence[Item], max_length: int):
        """Raises UserError if there are no items."""
        if not items:
            raise UserError(f"{name}: no text to train on")
        self.name, self.items, self.max_length = name, items, max_length
        self.lengths = np.array([(num_pieces(item), 1) for item in items], np.int32)

    def __len__(self) -> int:
        return len(self.items)

    def __getitems__(self, indices: Indices) -> list[Item]:
        return [self.items[int(index)] for index in indices]


def num_pieces(item: Item) -> int:
    """Number of tokens of an item; of the longest text if texts are encoded separately."""
    return max(map(len, _parts(item["ids"])))


def _parts(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


class Field(NamedTuple):
    """An array of a batch: its type, its padding value, and whether it has one value per token."""

    dtype: Any
    padding: float = 0
    per_token: bool = False


class RowLayout:
    """Layout of items: "ids" int32[B, S], "mask" bool[B, S], which is False at padding, and the other `fields`.

    An empty row is all padding. The budget counts all tokens and padding. For N > 1 texts that are encoded separately,
    "ids" is int32[B, N, S], and so on.
    """

    longest = "tokens of the longest row"
    remedy = "config.data.max_length"

    def __init__(self, fields: Mapping[str, Field], segments: bool, num_texts: int = 1):
        self.num_texts = num_texts
        token = Field(np.int32, per_token=True)
        self.fields = {"ids": token, **({"segments": token} if segments else {}), **fields}

    def budget(self, length: Any, one: Any) -> Any:
        return length * one * self.num_texts

    cost = budget

    def arrays(self, items: Sequence[Item], shape: Shape) -> Batch:
        per_token = (shape.rows, self.num_texts, shape.first)
        batch = {
            name: np.full(per_token if field.per_token else shape.rows, field.padding, field.dtype)
            for name, field in self.fields.items()
        }
        batch["mask"] = np.zeros(per_token, bool)
        for row, item in enumerate(items):
            for text, ids in enumerate(_parts(item["ids"])):
                batch["mask"][row, text, : len(ids)] = True
            for name, field in self.fields.items():
                if field.per_token:
                    for text, part in enumerate(_parts(item[name])):
                        batch[name][row, text, : len(part)] = part
                else:
                    batch[name][row] = item[name]
        if self.num_texts > 1:
            return batch
        return {name: array[:, 0] if array.ndim > 1 else array for name, array in batch.items()}

    def tokens(self, corpus: RowCorpus) -> dict[str, int]:
        return {"rows": sum(len(part) for item in corpus.items for part in _parts(item["ids"]))}

    def places(self, length: Any, one: Any) -> dict[str, Any]:
        return {"rows": length * one * self.num_texts}
