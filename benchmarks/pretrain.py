r"""Speed of BERT pretraining: tokens per second, and the share of the machine's matmul rate or of a given peak.

    python -m benchmarks.pretrain [--page=bert_base] [--dtype=bfloat16] [--rows=8] [--length=128] [--steps=4] \
[--vocab=30522] [--peak_tflops=989]

Full rows of random tokens, 15 % of them predicted, dropout, next sentences, AdamW. On a CPU: one thread, CPU-seconds,
and the share of the rate of a float32 product measured at the same time. On an accelerator: wall seconds, and with
--peak_tflops the model FLOPs utilization, which is the operations of the model per second (`operations`; rematerialized
layers count once) over the peak.
"""

import argparse
import pathlib
import statistics
import tempfile
import time
from typing import Any

from benchmarks import measure

ROUNDS = 3


def operations(model: Any, rows: int, length: int, asked: int) -> float:
    """Return the multiplications and additions of a forward and backward pass (twice the forward)."""
    square, feed_forward = model.d_model**2, 2 * model.d_model * model.d_ff
    encoder = model.num_layers * (4 * square + feed_forward) * rows * length
    attention = model.num_layers * 2 * model.d_model * rows * length**2
    head = (square + model.d_model * model.vocab_size) * rows * asked + (square + 2 * model.d_model) * rows
    return 3 * 2 * float(encoder + attention + head)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--page", default="bert_base")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--steps", type=int, default=4, help="Steps in each of three rounds.")
    parser.add_argument(
        "--vocab", type=int, default=30522, help="Vocabulary size; 0 trains the vocabulary of the page on the grammar."
    )
    parser.add_argument("--peak_tflops", type=float, help="Peak of the accelerator in bfloat16, without sparsity.")
    options = parser.parse_args()
    measure.one_thread()

    import jax
    import numpy as np

    from nmt_jax import config as configs
    from nmt_jax import platforms
    from nmt_jax.distributed import sharding
    from nmt_jax.models.bert import Model
    from nmt_jax.tasks.pretrain import Pretrain
    from nmt_jax.training.optimizers import make_optimizer
    from nmt_jax.training.train_step import make_train_step, new_state

    platforms.configure_compilation()
    platforms.keep_freed_memory()
    config = configs.load(str(measure.ROOT / "configs" / f"{options.page}.py"))
    config.data.update(corpus="grammar", size=800, max_length=options.length)
    config.vocab.update(size=400, model="")
    config.model.update(dtype=options.dtype, max_positions=max(options.length, config.model.max_positions))
    with tempfile.TemporaryDirectory() as workdir:
        task = Pretrain(config, pathlib.Path(workdir), sharding.make_mesh())
        model = Model(vocab_size=options.vocab or len(task.tokenizer), **config.model)
        vars(task)["model"] = model
        random = np.random.default_rng(0)
        shape, asked = (options.rows, options.length), round(0.15 * options.length)
        batch = {
            "ids": random.integers(5, model.vocab_size, shape, np.int32),
            "segments": np.repeat(np.arange(2, dtype=np.int32), options.length // 2)[None].repeat(options.rows, 0),
            "positions": np.sort(
                random.permuted(np.tile(np.arange(options.length), (options.rows, 1)), axis=1)[:, :asked]
            ),
            "labels": random.integers(5, model.vocab_size, (options.rows, asked), np.int32),
            "weights": np.ones((options.rows, asked), np.float32),
            "next_sentence": random.integers(0, 2, options.rows, np.int32),
        }
        batch["positions"] = batch["positions"].astype(np.int32)
        placed = sharding.shard_batch(batch, task.mesh)
        optimizer = make_optimizer(config.optimizer)
        state = new_state(jax.jit(task.init)(jax.random.key(0)), optimizer, ema_decay=0.0)
        step = make_train_step(task.loss_fn, optimizer, lambda update: 1e-4, accumulate=1, ema_decay=0.0, seed=0)
        state, _ = jax.block_until_ready(step(state, placed))
        on_cpu = jax.default_backend() == "cpu"
        clock = time.process_time if on_cpu else time.perf_counter
        seconds, shares = [], []
        work = operations(model, *shape, asked)
        for _ in range(ROUNDS):
            rate = measure.matmul_rate() if on_cpu else (options.peak_tflops or 0) * 1e12 * jax.device_count()
            start = clock()
            for _ in range(options.steps):
                state, metrics = step(state, placed)
            jax.block_until_ready((state, metrics))
            seconds.append((clock() - start) / options.steps)
            shares.append(work / seconds[-1] / rate if rate else 0.0)
    figures = {
        "parameters": sum(leaf.size for leaf in jax.tree.leaves(state.params)),
        f"tokens_per_{'cpu_' * on_cpu}second": options.rows * options.length / statistics.median(seconds),
        "seconds_per_step": statistics.median(seconds),
        "share_of_matmul_rate" if on_cpu else "model_flops_utilization": statistics.median(shares),
    }
    device = f"{jax.device_count()} x {jax.devices()[0].device_kind}"
    measure.report(benchmark="pretrain", page=options.page, dtype=options.dtype, device=device, **figures)


if __name__ == "__main__":
    main()
