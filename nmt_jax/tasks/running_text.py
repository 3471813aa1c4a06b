"""What the tasks over running text share: blocks to train on and overlapping windows to evaluate on."""

from collections.abc import Iterator

import numpy as np

from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.batching.text_blocks import Blocks, rows_per_batch, windows
from nmt_jax.tasks.task import Task


class RunningText(Task):
    """A task that reads a corpus as one long text."""

    measures = ("loss", "perplexity")
    unit = "tokens"

    def _blocks(self, ids: np.ndarray, steps: int) -> Blocks:
        """The training batches of a text int[N]."""
        config = self.config
        return Blocks(
            ids,
            block_length=config.data.block_length,
            batch_tokens=config.train.batch_tokens,
            share=self._train_rows,
            seed=config.seed,
            steps=steps,
        )

    def _windows(self, ids: np.ndarray) -> Iterator[Batch]:
        """Batches in which every token of a text int[N] is predicted once, after at least `eval.context` others.

        Raises UserError at once, not at the first batch, if the settings are invalid.
        """
        settings, length = self.config.eval, self.config.data.block_length
        rows = rows_per_batch(settings.batch_tokens, length, self.local_mesh.shape["data"], "config.eval.batch_tokens")
        return windows(ids, block_length=length, context=settings.context, rows=rows)
