"""Training speed of a config page on one thread: tokens (or texts) per CPU-second, without padding or compilation.

python -m benchmarks.page configs/rnn_luong.py data.directory=DIRECTORY [KEY=VALUE ...]
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks import measure

STEPS, ROUNDS = 12, 3


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("page")
    parser.add_argument("changes", nargs="*", metavar="KEY=VALUE")
    options = parser.parse_args()
    measure.one_thread()

    import jax

    from nmt_jax import config as configs
    from nmt_jax import platforms
    from nmt_jax.checkpoints.train_state import new_state
    from nmt_jax.distributed import sharding
    from nmt_jax.tasks.registry import make_task
    from nmt_jax.training.optimizers import make_optimizer
    from nmt_jax.training.train_step import make_train_step

    platforms.configure_compilation()  # as in training
    platforms.keep_freed_memory()
    config = configs.load(options.page, dict(configs.split_override(change) for change in options.changes))
    with tempfile.TemporaryDirectory() as workdir:
        task = make_task(config, Path(workdir), sharding.make_mesh())
        source = task.batches(STEPS * ROUNDS)
        batches = [source[n] for n in range(STEPS * ROUNDS)]
        optimizer = make_optimizer(config.optimizer)
        state = new_state(jax.jit(task.init)(jax.random.key(0)), optimizer, ema_decay=0.0)
        step = make_train_step(task.loss_fn, optimizer, lambda update: 1e-4, accumulate=1, ema_decay=0.0, seed=0)
        for shape in source.shapes:
            state, _ = jax.block_until_ready(step(state, sharding.shard_batch(task.dummy_batch(shape), task.mesh)))
        speeds, rates = [], []
        for n in range(ROUNDS):
            rates.append(measure.matmul_rate())
            weights = []
            start = time.process_time()
            for batch in batches[n * STEPS : (n + 1) * STEPS]:
                state, metrics = step(state, sharding.shard_batch(batch, task.mesh))
                weights.append(metrics["weight"])
            jax.block_until_ready((state, weights))
            speeds.append(float(sum(weights)) / (time.process_time() - start))
    measure.report(
        benchmark="page",
        **{f"{task.unit}_per_cpu_second": statistics.median(speeds)},
        parameters=sum(leaf.size for leaf in jax.tree.leaves(state.params)),
        matmul_gflops=statistics.median(rates) / 1e9,
    )


if __name__ == "__main__":
    main()
