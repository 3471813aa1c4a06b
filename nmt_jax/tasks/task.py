"""The interface between the training loop and what is trained, and what all tasks share."""

import abc
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import jax
import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.data.batching.batches import Batches, Corpus, Layout
from nmt_jax.data.batching.curriculum import Competence, CurriculumBatches, Drawable
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.batching.row_slice import RowSlice
from nmt_jax.distributed import sharding
from nmt_jax.distributed.evaluation import Evaluator
from nmt_jax.errors import UserError
from nmt_jax.losses.step import Step
from nmt_jax.models.registry import model_class
from nmt_jax.platforms import compiled
from nmt_jax.storage.paths import path_of


class BatchSource(Protocol):
    """Batches by number: batch n is a pure function of (corpus, settings, seed, n).

    A source may also have `padding`, the share of padding in an epoch by what is padded, which is printed at the start.
    """

    @property
    def shapes(self) -> Sequence[tuple[int, ...]]:
        """The shapes of all batches, one compiled program each."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Batch: ...


def in_order(source: BatchSource) -> Iterator[Batch]:
    """All batches, from the first to the last."""
    return (source[number] for number in range(len(source)))


class Task(abc.ABC):
    """What is trained in one workdir: its batches, loss and evaluation.

    Corpora are read, and vocabularies built, only when training or evaluation needs them.

    measures: names of the values that `evaluate` returns, without "dev/".
    unit: what the weight of the loss counts, such as "tokens"; the log reports its number per second.
    next_command: shell command that uses the trained workdir; "{workdir}" is filled in.
    """

    measures: tuple[str, ...]
    unit: str
    next_command: str

    def __init__(self, config: ConfigDict, workdir: Path, mesh: Mesh) -> None:
        self.config = config
        self.workdir = path_of(workdir)
        self.mesh, self.evaluator = mesh, Evaluator(mesh)

    # What each task defines

    @abc.abstractmethod
    def summary(self) -> list[tuple[str, str]]:
        """Return the rows (name, value) of the table printed at the start: corpora, vocabulary, encoder."""

    @abc.abstractmethod
    def batches(self, steps: int) -> BatchSource:
        """Return the training batches of `steps` steps."""

    @abc.abstractmethod
    def dummy_batch(self, shape: tuple[int, ...]) -> Batch:
        """Return a batch of this shape without padding, to compile with."""

    @abc.abstractmethod
    def init(self, rng: jax.Array) -> Any:
        """Return randomly initialised parameters; a pure function."""

    @abc.abstractmethod
    def loss_fn(self, params: Any, batch: Any, step: Step | None) -> tuple[Any, ...]:
        """Return the (sum, weight) of the loss over a batch; a pure function. `step` is None in evaluation.

        A task with a carry returns (sum, weight, carry) in training: `step.carry` is that of the batch before.
        """

    @abc.abstractmethod
    def evaluate(self, params: Any) -> dict[str, float]:
        """Return `dev/loss` and the task's other measures on the development set."""

    # What `nmt-jax plan` needs

    @property
    def on_host(self) -> tuple[str, ...]:
        """The config keys of functions that a training step calls on the host; plans are without them."""
        return ()

    def stand_in(self) -> None:
        """Assume the sizes in the config for what is read from data.

        Then `model`, `init`, `dummy_batch` and `loss_fn` need no data, and nothing is written; there are no batches.
        """
        raise UserError(f"config.task={self.config.task!r}: its sizes are not known without data")

    def row_lengths(self, share: float) -> tuple[int, ...]:
        """Return the lengths of a row, such as (S, T), at this share of the limits in the config, if rows differ."""
        raise UserError(f"config.task={self.config.task!r}: the lengths of its rows are not known without data")

    def num_tokens(self, shape: tuple[int, ...]) -> int:
        """Return how many tokens a batch of this shape counts towards `batch_tokens`."""
        return math.prod(shape)

    def model_sizes(self) -> dict[str, Any]:
        """Return the fields of the model that are not in `config.model`, such as the size of the vocabulary."""
        return {}

    def init_carry(self, rows: int) -> Any:
        """Return what the first training batch reads in place of what a batch leaves to the next; a pure function.

        A tree of arrays [B, ...] for B = `rows` of a batch; () if batches do not depend on each other.
        """
        return ()

    def warm_start(self, params: Any) -> Any:
        """Return the parameters that training starts with: `params` from `init`, with pretrained ones put in."""
        return params

    # What tasks share

    @functools.cached_property
    def model(self) -> Any:
        """The linen module that `config.model_name` and `config.model` describe; its fields are the schema."""
        return configs.build_model(model_class(self.config.model_name), self.config.model, **self.model_sizes())

    def _assume(self, **values: Any) -> None:
        """Set attributes that are otherwise computed from data when they are first used."""
        vars(self).update(values)

    @property
    def packing(self) -> bool:
        """Whether a row of the training batches holds several items; False in workdirs of older versions."""
        return bool(self.config.data.get("packing"))

    @property
    def _train_rows(self) -> RowSlice:
        """The rows of each training batch that this process builds."""
        return sharding.share(self.mesh, self.config.train.accumulate)

    @property
    def _row_shards(self) -> int:
        """Number of devices over which the rows of a batch are divided."""
        return int(self.mesh.shape["data"])

    def _train_batches(
        self, corpus: Corpus, steps: int, layout: Layout, *, num_buckets: int | None = None, sampling_alpha: float = 0.0
    ) -> Batches:
        """The training batches of a corpus of items, sorted into buckets by length."""
        tokens, num_buckets = self.config.train.batch_tokens, num_buckets or self.config.data.num_buckets
        options: dict[str, Any] = {
            "share": self._train_rows,
            "seed": self.config.seed,
            "steps": steps,
            "layout": layout,
        }
        options["sampling_alpha"] = sampling_alpha
        return Batches(corpus, batch_tokens=tokens, num_buckets=num_buckets, **options)

    def _with_curriculum(self, batches: Drawable, difficulty: Callable[[str], np.ndarray]) -> BatchSource:
        """The batches in the order that `config.data.curriculum` describes, if it is on.

        difficulty: returns the difficulty float[N] of all examples, by the name of the measure.
        """
        settings = self.config.data.get("curriculum")  # workdirs of older versions have none
        if not settings or settings.difficulty == "none":
            return batches
        competence = Competence(settings.schedule, settings.growth_steps, settings.initial_competence)
        return CurriculumBatches(batches, difficulty(settings.difficulty), competence)

    def _dev_batches(self, corpus: Corpus, layout: Layout) -> Batches:
        """One epoch of a development corpus."""
        tokens, num_buckets = self.config.eval.batch_tokens, self.config.data.num_buckets
        rows, key = self.evaluator.rows, "config.eval.batch_tokens"
        return Batches(corpus, batch_tokens=tokens, num_buckets=num_buckets, share=rows, layout=layout, key=key)

    @compiled()
    def _eval_loss(self, params: Any, batch: Batch) -> Any:
        """The loss without dropout and smoothing."""
        return self.loss_fn(params, batch, None)

    def _totals(
        self, program: Callable[..., Sequence[jax.Array]], params: Any, batches: Iterable[Batch], count: int = 2
    ) -> list[float]:
        """Sum the `count` scalars that a compiled program returns, over all batches."""
        totals = [0.0] * count
        for batch in batches:
            values = self.evaluator.run(program, params, batch)
            totals = [total + float(value) for total, value in zip(totals, values, strict=True)]
        return totals
