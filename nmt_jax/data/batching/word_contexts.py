"""Words in context, for training word vectors: subsampled text, cut into blocks that overlap by a window."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmt_jax.data.batching.epochs import Batch, EpochBatches
from nmt_jax.data.batching.row_slice import ALL, RowSlice
from nmt_jax.data.batching.text_blocks import rows_per_batch
from nmt_jax.data.vocabulary.words import NO_WORD

DEVIATIONS = 6  # a Gaussian variable exceeds this many standard deviations once in a billion


def kept_share(counts: np.ndarray, threshold: float) -> np.ndarray:
    """Probability of keeping an occurrence of each word, float64[V]: sqrt(t / f) + t / f, at most 1; 1 if t = 0.

    counts: float[V]. t: the threshold; f: the relative frequency of the word. Mikolov et al. (2013b), section 2.3,
    equation 5, use sqrt(t / f); their program and its successors add t / f.
    """
    if not threshold:
        return np.ones(len(counts))
    ratio = threshold * counts.sum() / np.maximum(counts, 1)
    return np.minimum(np.sqrt(ratio) + ratio, 1.0)


class _Epoch(NamedTuple):
    """The subsampled text int32[n], the first word of each block in it int64[M + 1], and the order of the blocks."""

    words: np.ndarray
    firsts: np.ndarray
    blocks: np.ndarray


class Contexts(EpochBatches[_Epoch]):
    """Batches of a text: {"words": int32[B, T + 2 W], "weights": float32[B, T]}.

    A row is at most T centre words and the W words before and after them; weight t belongs to word W + t. NO_WORD
    separates texts and pads rows. Every epoch subsamples the text again, uses every remaining word as a centre exactly
    once, and shuffles the blocks; all of this is drawn from (seed, epoch). The blocks of an epoch differ in length by
    at most one word, and every epoch has the same number of blocks, so that batch n is a pure function of n.
    """

    def __init__(
        self,
        ids: np.ndarray,
        shares: np.ndarray,
        *,
        window: int,
        block_length: int,
        batch_tokens: int,
        share: RowSlice = ALL,
        seed: int = 0,
        steps: int | None = None,
    ):
        """ids: int[N], words, with NO_WORD after each text. shares: float[V], see `kept_share`.

        batch_tokens, share, steps: as for `Blocks`.
        """
        rows = rows_per_batch(batch_tokens, block_length, share.multiple_of, "config.train.batch_tokens")
        self.ids, self.window, self.shapes = ids, window, [(rows, block_length)]
        self.shares = np.asarray(shares, np.float32).copy()
        self.shares[NO_WORD] = 1.0
        counts = np.bincount(ids, minlength=len(shares))
        expected = float(counts @ self.shares)
        self._expected_centres = int(expected - counts[NO_WORD])
        self.blocks_per_epoch = -(-int(expected + DEVIATIONS * expected**0.5) // block_length)
        super().__init__(-(-self.blocks_per_epoch // rows), share=share, seed=seed, steps=steps)

    def _usage(self) -> dict[str, tuple[int, int]]:
        rows, length = self.shapes[0]
        return {"blocks": (self._expected_centres, self.batches_per_epoch * rows * length)}

    def _batch(self, epoch: int, position: int, order: _Epoch) -> Batch:
        rows, length = self.shapes[0]
        mine = self.share.of(rows)
        first = position * rows + mine.start
        blocks = order.blocks[first : first + len(mine), None]
        start, stop = order.firsts[blocks], order.firsts[blocks + 1]
        positions = start + np.arange(-self.window, length + self.window)
        inside = (positions >= 0) & (positions < np.minimum(stop + self.window, len(order.words)))
        words = np.full((len(mine), positions.shape[1]), NO_WORD, np.int32)
        words[: len(blocks)] = np.where(inside, order.words[np.clip(positions, 0, len(order.words) - 1)], NO_WORD)
        weights = np.zeros((len(mine), length), np.float32)
        centres = slice(self.window, self.window + length)
        weights[: len(blocks)] = (positions[:, centres] < stop) & (words[: len(blocks), centres] != NO_WORD)
        return {"words": words, "weights": weights}

    def _draw_order(self, random: np.random.Generator) -> _Epoch:
        words = self.ids[random.random(len(self.ids), np.float32) < self.shares[self.ids]]
        longest = self.blocks_per_epoch * self.shapes[0][1]
        words = np.asarray(words[:longest])  # it is longer once in a billion epochs
        firsts = np.arange(self.blocks_per_epoch + 1) * len(words) // self.blocks_per_epoch
        return _Epoch(words, firsts, random.permutation(self.blocks_per_epoch))
