"""Transformers and BERTs of config pages on random tokens: their tasks, batches of full rows, and operations."""

import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from benchmarks import measure

FIRST = 5  # lower ids are special pieces
PREDICTED = 0.15  # share of the tokens of a BERT


class Problem(NamedTuple):
    """A task whose model has random parameters, a batch, its tokens (of a BERT all, else target tokens), operations."""

    task: Any
    batch: dict[str, Any]
    tokens: int
    operations: float


def problem(page: str, changes: Mapping[str, str], *, rows: int, length: int, vocabulary: int, workdir: str) -> Problem:
    """Return the problem of `page`, such as "bert_base.py", without a corpus and without padding.

    changes: of config keys. rows: of the whole batch; sources and targets are equally long. vocabulary: number of
    pieces; 0 trains the vocabulary of a pretraining page on the embedded grammar.
    """
    import numpy as np

    from nmt_jax import config as configs
    from nmt_jax import platforms
    from nmt_jax.distributed import sharding
    from nmt_jax.tasks.registry import make_task

    platforms.configure_compilation()
    platforms.keep_freed_memory()
    config = configs.load(str(measure.ROOT / "configs" / page), dict(changes))
    config.data.update(corpus="grammar", size=800, max_length=length)
    if config.task == "pretrain":
        config.vocab.update(size=400, model="")
        config.model.max_positions = max(length, config.model.max_positions)
    task = make_task(config, pathlib.Path(workdir), sharding.make_mesh(config.mesh.model))
    if config.task == "pretrain":
        vocabulary = vocabulary or len(task.tokenizer)
        vars(task)["model"] = model = _model(config, vocab_size=vocabulary)
        batch, tokens = _pretraining_batch(vocabulary, rows, length), rows * length
        work = pretraining_operations(model, rows, length, batch["labels"].shape[1])
    else:
        sizes = {"source_vocab_size": vocabulary, "target_vocab_size": vocabulary}
        vars(task)["model"] = model = _model(config, **sizes)
        random = np.random.default_rng(0)
        batch = {side: random.integers(FIRST, vocabulary, (rows, length), np.int32) for side in ("source", "target")}
        tokens, work = rows * length, translation_operations(model, rows, length, length)
    return Problem(task, batch, tokens, work)


def training(found: Problem) -> tuple[Any, Any, Any]:
    """Return the initial state, the training step and the batch on the devices."""
    import jax

    from nmt_jax import platforms
    from nmt_jax.checkpoints.train_state import new_state
    from nmt_jax.distributed import sharding
    from nmt_jax.training.optimizers import make_optimizer
    from nmt_jax.training.train_step import make_train_step

    config, mesh = found.task.config, found.task.mesh
    optimizer = make_optimizer(config.optimizer)

    def make() -> Any:
        return new_state(found.task.init(jax.random.key(0)), optimizer, ema_decay=0.0)

    shardings = sharding.shard_state(jax.eval_shape(make), mesh, config.mesh.fsdp)
    step = make_train_step(
        *(found.task.loss_fn, optimizer, lambda update: 1e-4),
        **{"accumulate": config.train.accumulate, "ema_decay": 0.0, "seed": 0, "shardings": shardings},
    )
    options = platforms.initialization_options()
    state = jax.jit(make, out_shardings=shardings, compiler_options=options)()
    return state, step, sharding.shard_batch(found.batch, mesh)


def _model(config: Any, **sizes: int) -> Any:
    from nmt_jax import config as configs
    from nmt_jax.models.registry import model_class

    return configs.build_model(model_class(config.model_name), config.model, **sizes)


def _pretraining_batch(vocabulary: int, rows: int, length: int) -> dict[str, Any]:
    import numpy as np

    random = np.random.default_rng(0)
    asked = round(PREDICTED * length)
    positions = random.permuted(np.tile(np.arange(length), (rows, 1)), axis=1)[:, :asked]
    return {
        "ids": random.integers(FIRST, vocabulary, (rows, length), np.int32),
        "segments": np.repeat(np.arange(2, dtype=np.int32), length // 2)[None].repeat(rows, 0),
        "positions": np.sort(positions).astype(np.int32),
        "labels": random.integers(FIRST, vocabulary, (rows, asked), np.int32),
        "weights": np.ones((rows, asked), np.float32),
        "next_sentence": random.integers(0, 2, rows, np.int32),
    }


def pretraining_operations(model: Any, rows: int, length: int, asked: int) -> float:
    """Return the multiplications and additions of a forward and backward pass (twice the forward)."""
    square, feed_forward = model.d_model**2, 2 * model.d_model * model.d_ff
    encoder = model.num_layers * (4 * square + feed_forward) * rows * length
    attention = model.num_layers * 2 * model.d_model * rows * length**2
    head = (square + model.d_model * model.vocab_size) * rows * asked + (square + 2 * model.d_model) * rows
    return 3 * 2 * float(encoder + attention + head)


def translation_operations(model: Any, rows: int, source: int, target: int) -> float:
    """Return the multiplications and additions of a forward and backward pass (twice the forward).

    source, target: lengths of the rows. Attention to later tokens, which is masked, counts.
    """
    square, feed_forward = model.d_model**2, 2 * model.d_model * model.d_ff
    encoder = model.num_encoder_layers * (4 * square + feed_forward) * source
    decoder = model.num_decoder_layers * ((6 * square + feed_forward) * target + 2 * square * source)
    attention = model.num_encoder_layers * source**2 + model.num_decoder_layers * (target**2 + target * source)
    output = model.d_model * model.target_vocab_size * target
    return 3 * 2 * float(rows * (encoder + decoder + 2 * model.d_model * attention + output))
