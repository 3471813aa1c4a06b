"""Batches of one long text cut into blocks of equal length: in random order to train on, overlapping to measure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nmt_jax.data.batching.epochs import Batch, EpochBatches
from nmt_jax.data.batching.row_slice import ALL, RowSlice
from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.errors import UserError


class Blocks(EpochBatches[tuple[int, np.ndarray]]):
    """Batches of a text: {"tokens": int32[B, T + 1], "weights": float32[B, T]}.

    A row is T tokens and the one after them; weight t belongs to the prediction of token t + 1. The text is a ring of
    which each epoch predicts every token once: it is cut from an offset on, and the blocks are shuffled; both are drawn
    from (seed, epoch).
    """

    def __init__(
        self,
        ids: np.ndarray,
        *,
        block_length: int,
        batch_tokens: int,
        share: RowSlice = ALL,
        seed: int = 0,
        steps: int | None = None,
    ):
        """ids int[N]: the text, its last token EOS.

        A batch has at most `batch_tokens` tokens, but its rows are a multiple of `share.multiple_of`, and at least
        that; of them the `share` is made. `steps` None: one epoch. Raises UserError where a block does not fit into
        batch_tokens.
        """
        rows = rows_of(batch_tokens, block_length, share.multiple_of, "config.train.batch_tokens")
        self.ids, self.shapes = ids, [(rows, block_length)]
        self.blocks_per_epoch = -(-len(ids) // block_length)
        super().__init__(-(-self.blocks_per_epoch // rows), share=share, seed=seed, steps=steps)

    def _batch(self, epoch: int, position: int, order: tuple[int, np.ndarray]) -> Batch:
        offset, blocks = order
        rows, length = self.shapes[0]
        own = self.share.of(rows)
        first = position * rows + own.start
        starts = blocks[first : first + len(own), None] * length
        places = starts + np.arange(length + 1)
        batch = _filler(len(own), length)
        # The token before the first is the last one, an EOS.
        batch["tokens"][: len(starts)] = self.ids[(offset + places - 1) % len(self.ids)]
        batch["weights"][: len(starts)] = places[:, :-1] < len(self.ids)  # the last block reaches into the first
        return batch

    def _draw_order(self, random: np.random.Generator) -> tuple[int, np.ndarray]:
        """The epoch's offset, and the order of its blocks."""
        return int(random.integers(self.shapes[0][1])), random.permutation(self.blocks_per_epoch)


def windows(ids: np.ndarray, *, block_length: int, context: int, rows: int) -> Iterator[Batch]:
    """A text int[N] in overlapping windows, batches as of `Blocks`, that predict every token exactly once.

    The first `context` predictions of a window, the first window excepted, have weight 0: those with weight see at
    least `context` tokens before them. An EOS stands before the text. What a token's window is does not depend on
    `rows`. Raises UserError at once where context is negative or leaves a window nothing to predict.
    """
    if not 0 <= context < block_length:
        raise UserError(
            f"config.eval.context={context} must be at least 0 and less than config.data.block_length={block_length}"
        )
    stride = block_length - context
    count = 1 + max(0, -(-(len(ids) - block_length) // stride))

    def batches() -> Iterator[Batch]:
        for first in range(0, count, rows):
            batch = _filler(rows, block_length)
            for row, window in enumerate(range(first, min(first + rows, count))):
                start = window * stride
                piece = ids[max(start - 1, 0) : start + block_length]
                tokens = [EOS, *piece] if window == 0 else piece
                batch["tokens"][row, : len(tokens)] = tokens
                batch["weights"][row, context if window else 0 : len(tokens) - 1] = 1.0
            yield batch

    return batches()


def rows_of(batch_tokens: int, block_length: int, multiple_of: int, key: str) -> int:
    """How many blocks a batch of at most `batch_tokens` has, the value of the config's `key`; UserError for none."""
    if block_length < 2:
        raise UserError(f"config.data.block_length={block_length} must be at least 2")
    if batch_tokens < block_length:
        raise UserError(f"{key}={batch_tokens} is less than a block: config.data.block_length={block_length}")
    return max(batch_tokens // block_length // multiple_of, 1) * multiple_of


def _filler(rows: int, length: int) -> Batch:
    """Rows of PAD, without weight."""
    return {"tokens": np.full((rows, length + 1), PAD, np.int32), "weights": np.zeros((rows, length), np.float32)}
