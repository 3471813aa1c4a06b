"""The programs that a config runs on the devices of a mesh, with shapes in the place of arrays."""

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from ml_collections import ConfigDict

from nmt_jax.checkpoints.train_state import new_state
from nmt_jax.decoding.beam_search import SearchRequest
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses.step import Step
from nmt_jax.models.layers.features import batch_source
from nmt_jax.tasks.registry import make_task
from nmt_jax.tasks.task import Task
from nmt_jax.training.optimizers import make_optimizer, make_schedule
from nmt_jax.training.train_step import make_train_step

KINDS = ("train", "eval", "decode")
TYPICAL = 1 / 4  # length of a typical row, as a share of the longest, where no data tells it
Shape = tuple[int, ...]


class Program(NamedTuple):
    """A jitted function with its arguments, which are shapes with shardings, and its keyword arguments.

    mesh: of its devices. shape: of the batch. tokens: what the batch counts, without padding. model: the function of
    which the products are the model's own arithmetic; the step has `passes` times as much. trips: how often a loop runs
    whose length depends on data.
    """

    kind: str
    function: Any
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    mesh: Mesh
    shape: Shape
    tokens: int
    model: Callable[..., Any]
    passes: int = 1
    trips: int = 1

    def trace(self) -> Any:
        """The program as JAX traces it, for the platform that is set."""
        return self.function.trace(*self.arguments, **self.options)


class BatchShapes(NamedTuple):
    """The largest and the most frequent shape of the training batches, and where they come from."""

    largest: Shape
    frequent: Shape
    origin: str


def prepare_task(config: ConfigDict, mesh: Mesh, workdir: Path | None) -> Task:
    """Return the task of a workdir, or one that needs no data."""
    task = make_task(config, workdir or Path("no-workdir"), mesh)
    if workdir is None:
        task.stand_in()
    return task


def batch_shapes(task: Task, given: Shape | None, from_data: bool) -> BatchShapes:
    """Return the shapes of training batches: the given one, those of the corpus, or those that the config allows.

    Raises UserError if the devices cannot share the rows of the given shape, or its number of axes is wrong.
    """
    config, multiple_of = task.config, sharding.share(task.mesh, task.config.train.accumulate).multiple_of
    if given:
        lengths, devices = task.row_lengths(1.0), task.mesh.shape["data"] * config.train.accumulate
        if len(given) != 1 + len(lengths):
            example = "x".join(map(str, (multiple_of, *lengths)))
            raise UserError(f"--batch={_joined(given)}: this task needs {1 + len(lengths)} numbers, as in {example}")
        if given[0] % devices:
            raise UserError(
                f"--batch={_joined(given)}: {given[0]} rows cannot be divided into {devices} equal parts, one for each "
                "device and step of train.accumulate"
            )
        return BatchShapes(given, given, "--batch")
    if from_data:
        source: Any = task.batches(config.train.steps)
        counts = getattr(source, "counts", [1] * len(source.shapes))
        largest = max(source.shapes, key=lambda shape: (shape[0] * sum(shape[1:]), shape))
        frequent = source.shapes[int(np.argmax(counts))]
        return BatchShapes(tuple(largest), tuple(frequent), "the corpus")

    def shape(share: float) -> Shape:
        return _filled(task, task.row_lengths(share), config.train.batch_tokens, multiple_of)

    origin = f"assumed: the longest rows of the config, and rows of {TYPICAL:.0%} of that length"
    return BatchShapes(shape(1.0), shape(TYPICAL), origin)


def training_step(task: Task, config: ConfigDict, shape: Shape) -> Program:
    """One training step on a batch of this shape, as `training.loop` runs it."""
    mesh = task.mesh
    state = _state(task, config, shape[0])
    shardings = sharding.shard_state(state, mesh, config.mesh.fsdp)
    step = make_train_step(
        task.loss_fn,
        make_optimizer(config.optimizer),
        make_schedule(config.optimizer, config.train.steps, config.model.get("d_model")),
        accumulate=config.train.accumulate,
        ema_decay=config.optimizer.ema_decay,
        seed=config.seed,
        shardings=shardings,
    )

    def forward(state: Any, batch: Any) -> Any:
        return task.loss_fn(state.params, batch, Step(state.step, jax.random.key(0), state.carry))

    arguments = (_placed(state, shardings), _by_rows(task.dummy_batch(shape), mesh))
    return Program("train", step, arguments, {}, mesh, shape, task.num_tokens(shape), forward, passes=3)


def evaluation_loss(task: Task, config: ConfigDict) -> Program:
    """The loss of a batch of the longest rows of the development set."""
    mesh = task.mesh
    shape = _filled(task, task.row_lengths(1.0), _eval_tokens(config), task.evaluator.rows.multiple_of)

    def loss(params: Any, batch: Any) -> Any:
        return task.loss_fn(params, batch, None)

    batch = {name: array for name, array in task.dummy_batch(shape).items() if not name.endswith("_packing")}
    arguments = (_parameters(task, config), _by_rows(batch, mesh))
    return Program("eval", jax.jit(loss), arguments, {}, mesh, shape, task.num_tokens(shape), loss)


def beam_search(task: Any, config: ConfigDict) -> Program:
    """The search of `config.decode` for a batch of the longest sources, if no sentence ends before the last step."""
    mesh, translator, data = task.mesh, task.translator, task.evaluator.row_shards
    method, length = translator.search(), config.data.max_length
    max_length = max(math.ceil(config.decode.max_length_ratio * length) + config.decode.max_length_offset, 1)
    rows = max(config.eval.batch_tokens // method.width // length // data, 1) * data
    source = batch_source(task.dummy_batch((rows, length, 1)))
    batch = (source, SearchRequest(np.zeros(rows, np.int32)), np.zeros(rows, np.uint32))  # type: ignore[arg-type]
    placed = _by_rows(batch, mesh)
    options = {"method": method, "max_length": max_length}
    arguments = ((_parameters(task, config),), *placed)
    decode = jax.jit(translator.programs.search, static_argnames=tuple(options))
    search = functools.partial(translator.programs.search, **options)
    tokens = rows * max_length  # of the best hypotheses
    return Program("decode", decode, arguments, options, mesh, source.shape, tokens, search, trips=max_length)


def _filled(task: Task, lengths: Shape, batch_tokens: int, multiple_of: int) -> Shape:
    """The shape of a batch of rows of these lengths, as `choose_shapes` sizes it."""
    return (max(batch_tokens // task.num_tokens((1, *lengths)) // multiple_of, 1) * multiple_of, *lengths)


def _eval_tokens(config: ConfigDict) -> int:
    """Tokens of a batch of the evaluation; some tasks evaluate with batches of training."""
    return (config.get("eval") or config.train).batch_tokens


def num_parameters(task: Task) -> int:
    """The number of parameters of the model."""
    return sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(task.init, jax.random.key(0))))


def _state(task: Task, config: ConfigDict, rows: int) -> Any:
    optimizer = make_optimizer(config.optimizer)

    def make(rng: jax.Array) -> Any:
        return new_state(task.init(rng), optimizer, config.optimizer.ema_decay, task.init_carry(rows))

    return jax.eval_shape(make, jax.random.key(config.seed))


def _parameters(task: Task, config: ConfigDict) -> Any:
    """Parameters as the evaluation gets them: sharded as in training."""
    params = jax.eval_shape(task.init, jax.random.key(0))
    return _placed(params, sharding.shard_state(params, task.mesh, config.mesh.fsdp))


def _by_rows(batch: Any, mesh: Mesh) -> Any:
    rows = NamedSharding(mesh, PartitionSpec("data"))
    return _placed(batch, jax.tree.map(lambda _: rows, batch))


def _placed(tree: Any, shardings: Any) -> Any:
    return jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), tree, shardings
    )


def _joined(shape: Shape) -> str:
    return "x".join(map(str, shape))
