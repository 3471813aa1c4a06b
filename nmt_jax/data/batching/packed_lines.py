"""Several lines of a text in each row of a batch, for language models that read every line on its own."""

from __future__ import annotations

import numpy as np

from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.batching.packing import PackedBatches, fill_rows
from nmt_jax.data.batching.row_slice import ALL, RowSlice
from nmt_jax.data.batching.text_blocks import check_context
from nmt_jax.data.prepared import difficulty
from nmt_jax.data.vocabulary.vocab import EOS


class PackedLines(PackedBatches):
    """Batches of a text: {"inputs", "labels", "packing": int32[B, T], "weights": float32[B, T]}.

    A row is several lines, each ended by EOS, then PAD. The input at a token is the token before it; for the first
    token of a line, this is EOS. "packing" has the number of each token's line in its row, from 1; 0 is padding. A line
    of more than `block_length` tokens is cut into parts, which take places of their own.
    """

    def __init__(
        self,
        ids: np.ndarray,
        *,
        block_length: int,
        batch_tokens: int,
        context: int = 0,
        share: RowSlice = ALL,
        seed: int = 0,
        steps: int | None = None,
        key: str = "config.train.batch_tokens",
    ):
        """ids: int[N], the text. block_length: places of a row. batch_tokens, share, steps: as for `Blocks`.

        context: the number of tokens that a part repeats from the part before it; they have weight 0. key: the config
        key of `batch_tokens`.
        """
        check_context(context, block_length)
        self.ids, self.context = ids, context
        ends = np.unique(np.append(np.flatnonzero(np.asarray(ids) == EOS) + 1, len(ids)))
        starts = np.append(0, ends[:-1])
        stride = block_length - context
        parts = 1 + np.maximum(0, -(-(ends - starts - block_length) // stride))
        number = np.arange(parts.sum()) - np.repeat(parts.cumsum() - parts, parts)  # of each part in its line
        self._line_starts, self._line_of_part = starts, np.repeat(np.arange(len(starts)), parts)
        self._starts_in_text = np.repeat(starts, parts) + number * stride
        self._lengths = np.minimum(np.repeat(ends, parts) - self._starts_in_text, block_length)
        self._continues = number > 0
        super().__init__(
            self._lengths[:, None],
            block_length,
            {"blocks": len(ids)},
            batch_tokens=batch_tokens,
            share=share,
            seed=seed,
            steps=steps,
            keys=(key, "config.data.block_length"),
        )

    def difficulty(self, measure: str) -> np.ndarray:
        """The difficulty float64[N] of the whole line of each part; measure: "length" or "rarity"."""
        return difficulty.of_texts(np.asarray(self.ids), self._line_starts, measure)[self._line_of_part]

    def _arrays(self, epoch: int, position: int, rows: list[np.ndarray], count: int) -> Batch:
        shape = (count, self.shapes[0][1])
        labels, packing = fill_rows([[self._part(item) for item in row] for row in rows], shape)
        inputs, _ = fill_rows([[self._part(item, shift=1) for item in row] for row in rows], shape)
        weights, _ = fill_rows([[self._predicted(item) for item in row] for row in rows], shape)
        return {"inputs": inputs, "labels": labels, "packing": packing, "weights": weights.astype(np.float32)}

    def _part(self, item: int, shift: int = 0) -> np.ndarray:
        """The tokens of a part of the text, or of the same number of places before it."""
        first = int(self._starts_in_text[item]) - shift
        last = first + int(self._lengths[item])
        return np.append(EOS, self.ids[:last]) if first < 0 else np.asarray(self.ids[first:last])

    def _predicted(self, item: int) -> np.ndarray:
        """Which tokens of a part have weight 1."""
        return np.arange(self._lengths[item]) >= self.context * self._continues[item]
