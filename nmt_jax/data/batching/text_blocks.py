"""One long text as blocks of equal length: in random or running order for training, overlapping for evaluation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nmt_jax.data.batching.epochs import Batch, EpochBatches
from nmt_jax.data.batching.row_slice import ALL, RowSlice
from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.errors import UserError


class Blocks(EpochBatches[tuple[int, np.ndarray]]):
    """Batches of a text: {"tokens": int32[B, T + 1], "weights": float32[B, T]}.

    A row is T tokens and the token after them; weight t belongs to the prediction of token t + 1. The text is treated
    as circular, and each epoch predicts every token once: the text is cut into blocks from a random offset, and the
    blocks are shuffled. Both are drawn from (seed, epoch).
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
        """ids: int[N], the text; its last token is EOS.

        batch_tokens: maximum number of tokens of a batch; but there are at least `share.multiple_of` rows, and a
        multiple of it. share: the rows that this process builds. steps: number of batches; None for one epoch. Raises
        UserError if a block has more than `batch_tokens` tokens.
        """
        rows = rows_per_batch(batch_tokens, block_length, share.multiple_of, "config.train.batch_tokens")
        self.ids, self.shapes = ids, [(rows, block_length)]
        self.blocks_per_epoch = -(-len(ids) // block_length)
        super().__init__(-(-self.blocks_per_epoch // rows), share=share, seed=seed, steps=steps)

    def _usage(self) -> dict[str, tuple[int, int]]:
        rows, length = self.shapes[0]
        return {"blocks": (len(self.ids), self.batches_per_epoch * rows * length)}

    def _batch(self, epoch: int, position: int, order: tuple[int, np.ndarray]) -> Batch:
        offset, blocks = order
        rows, length = self.shapes[0]
        mine = self.share.of(rows)
        first = position * rows + mine.start
        starts = blocks[first : first + len(mine), None] * length
        positions = starts + np.arange(length + 1)
        batch = _filler(len(mine), length)
        # The token before the first one is the last one, EOS.
        batch["tokens"][: len(starts)] = self.ids[(offset + positions - 1) % len(self.ids)]
        # The last block wraps around into the first.
        batch["weights"][: len(starts)] = positions[:, :-1] < len(self.ids)
        return batch

    def _draw_order(self, random: np.random.Generator) -> tuple[int, np.ndarray]:
        """The offset of the epoch, and the order of its blocks."""
        return int(random.integers(self.shapes[0][1])), random.permutation(self.blocks_per_epoch)


class ContinuedBlocks:
    """Batches as those of `Blocks`, in which every row continues the same row of the batch before it.

    The text is a ring, on which the rows start at equal distances from an offset drawn from the seed. So no token is
    left out, none is padding, and the blocks of later rounds begin elsewhere unless their length divides the distance.
    """

    def __init__(
        self,
        ids: np.ndarray,
        *,
        block_length: int,
        batch_tokens: int,
        share: RowSlice = ALL,
        seed: int = 0,
        steps: int,
    ):
        """Arguments and errors as for `Blocks`."""
        rows = rows_per_batch(batch_tokens, block_length, share.multiple_of, "config.train.batch_tokens")
        self.ids, self.share, self.steps, self.shapes = ids, share, steps, [(rows, block_length)]
        offset = np.random.default_rng(seed).integers(len(ids))
        self.starts = (offset + np.arange(rows) * len(ids) // rows)[share.of(rows)]

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, n: int) -> Batch:
        if not 0 <= n < self.steps:
            raise IndexError(f"batch {n} of {self.steps}")
        length = self.shapes[0][1]
        positions = self.starts[:, None] + int(n) * length + np.arange(length + 1)
        tokens = self.ids[(positions - 1) % len(self.ids)].astype(np.int32)
        return {"tokens": tokens, "weights": np.ones((len(tokens), length), np.float32)}


def windows(ids: np.ndarray, *, block_length: int, context: int, rows: int, start: int = EOS) -> Iterator[Batch]:
    """Batches of overlapping windows of a text int[N], as in `Blocks`, that predict every token exactly once.

    The first `context` predictions of a window have weight 0, except in the first window, so every other prediction
    sees at least `context` preceding tokens. `start` is prepended to the text. The windows do not depend on `rows`, the
    batch size. Raises UserError immediately if `context` is negative or leaves nothing to predict.
    """
    check_context(context, block_length)
    stride = block_length - context
    count = 1 + max(0, -(-(len(ids) - block_length) // stride))

    def batches() -> Iterator[Batch]:
        for first in range(0, count, rows):
            batch = _filler(rows, block_length)
            for row, window in enumerate(range(first, min(first + rows, count))):
                first_id = window * stride
                piece = ids[max(first_id - 1, 0) : first_id + block_length]
                tokens = [start, *piece] if window == 0 else piece
                batch["tokens"][row, : len(tokens)] = tokens
                batch["weights"][row, context if window else 0 : len(tokens) - 1] = 1.0
            yield batch

    return batches()


def check_context(context: int, block_length: int) -> None:
    """Raise UserError if `context` is negative or leaves nothing of a block to predict."""
    if not 0 <= context < block_length:
        raise UserError(
            f"config.eval.context={context} must be at least 0 and less than config.data.block_length={block_length}"
        )


def rows_per_batch(batch_tokens: int, block_length: int, multiple_of: int, key: str) -> int:
    """Number of blocks in a batch of at most `batch_tokens` tokens, the value of the config key `key`.

    Raises UserError if not even one block fits.
    """
    if block_length < 2:
        raise UserError(f"config.data.block_length={block_length} must be at least 2")
    if batch_tokens < block_length:
        raise UserError(f"{key}={batch_tokens} is less than config.data.block_length={block_length}")
    return max(batch_tokens // block_length // multiple_of, 1) * multiple_of


def _filler(rows: int, length: int) -> Batch:
    """Rows of PAD with weight 0."""
    return {"tokens": np.full((rows, length + 1), PAD, np.int32), "weights": np.zeros((rows, length), np.float32)}
