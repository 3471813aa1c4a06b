"""Masked pieces of sentences, filled in with samples from a pretrained masked language model."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nmt_jax.data.batching.encoder_rows import RowReader
from nmt_jax.data.batching.masking import MAX_MASKS, Masked, choose_masked
from nmt_jax.tasks.pretrain import Pretrain

ROWS = 16  # sentences per batch


def fill_masks(
    task: Pretrain, params: Any, sentences: Sequence[str], random: Sequence[np.random.Generator]
) -> list[str]:
    """Return the sentences with some of their pieces masked and sampled anew, all masks of a sentence at once.

    random: a generator per sentence, so that the result does not depend on other sentences. The end of a sentence that
    is too long for the model is not masked.
    """
    reader = RowReader(task.tokenizer.model, task.config.data.max_length, segments=True)
    masked = []
    for sentence, pieces, generator in zip(sentences, reader.pieces(sentences), random, strict=True):
        length = min(len(pieces.ids), reader.capacity(1))
        masked.append(Masked(sentence, pieces, choose_masked(length, generator) if length else np.zeros(0, int)))
    texts = []
    for first in range(0, len(masked), ROWS):
        batch = masked[first : first + ROWS]
        logits = _mask_logits(task, params, reader, batch)
        for one, scores, generator in zip(batch, logits, random[first : first + ROWS], strict=True):
            sampled = (scores + generator.gumbel(size=scores.shape)).argmax(axis=-1)[: len(one.positions)]
            texts.append(one.filled(task.tokenizer.pieces(sampled)))
    return texts


def _mask_logits(task: Pretrain, params: Any, reader: RowReader, batch: Sequence[Masked]) -> np.ndarray:
    """Return the logits of the masks, float64[B, P, V]; those of special pieces are -inf."""
    shape = (ROWS, task.config.data.max_length)  # always the same, so that samples do not depend on other sentences
    ids, positions = np.zeros(shape, np.int32), np.zeros((ROWS, MAX_MASKS), np.int32)
    special = np.flatnonzero(task.masking().special)
    for row, one in enumerate(batch):
        item, (begin,) = reader.row(*reader.fit([one.pieces.ids]))
        ids[row, : len(item["ids"])] = item["ids"]
        positions[row, : len(one.positions)] = begin + one.positions
        ids[row, begin + one.positions] = task.masking().mask_id
    logits = np.array(_program(task)(params, ids, positions), np.float64)
    logits[:, :, special] = -np.inf
    return logits[: len(batch)]


@functools.cache
def _program(task: Pretrain) -> Any:
    """Return the compiled function that computes the logits of a task's model."""

    def logits(params: Any, ids: jax.Array, positions: jax.Array) -> jax.Array:
        return task.model.apply({"params": params}, ids, ids != 0, jnp.zeros_like(ids), positions)[0]

    return jax.jit(logits)
