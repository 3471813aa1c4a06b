"""The interface between the training loop and what is trained: a task makes batches, a loss and predictions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import jax
from jax.sharding import Mesh
from ml_collections import ConfigDict

from nmt_jax.data.batching.epochs import Batch
from nmt_jax.losses.step import Step


class BatchSource(Protocol):
    """Training batches by number: batch n is a pure function of (corpus, settings, seed, n)."""

    shapes: Sequence[tuple[int, ...]]

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Batch: ...


class Task(Protocol):
    """All that a training run needs to know of what is learned.

    measures: what `evaluate` reports, without "dev/". unit: what the weight of a loss counts, tokens or texts.
    next_command: what a trained workdir is used with.
    """

    measures: tuple[str, ...]
    unit: str
    next_command: str

    def __init__(self, config: ConfigDict, workdir: Path, mesh: Mesh) -> None: ...

    def summary(self) -> list[tuple[str, str]]:
        """Rows for the table printed at the start: what, and how much of it."""

    def batches(self, steps: int) -> BatchSource:
        """The batches of `steps` steps."""

    def dummy_batch(self, shape: tuple[int, ...]) -> Batch:
        """A batch of this shape, to compile with."""

    def init(self, rng: jax.Array) -> Any:
        """-> parameters; pure."""

    def warm_start(self, params: Any) -> Any:
        """-> what training begins with: `params` as `init` drew them, or some of them made elsewhere."""

    def loss_fn(self, params: Any, batch: Any, step: Step | None) -> tuple[jax.Array, jax.Array]:
        """-> (sum, weight) of the loss; pure; `step` is None when not training."""

    def evaluate(self, params: Any) -> dict[str, float]:
        """-> `dev/loss` and the task's own measures."""
