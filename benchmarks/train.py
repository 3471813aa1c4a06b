"""Training speed on Multi30k on one thread: target tokens per CPU-second, and the share of the matmul rate.

    python -m benchmarks.train [--model=rnn] [--dtype=bfloat16] [--peer=PYTHON-WITH-TORCH]

Transformer T (`model_t.py`) or recurrent network R (`model_r.py`), batches of 2048 target tokens including padding,
label smoothing 0.1, Adam. Figures do not count padding. The peer is `peer_torch.py`, a plain PyTorch float32 loop over
the same batches that alternates with ours.
"""

import argparse
import importlib
import statistics
import tempfile
import time

from benchmarks import measure

STEPS, ROUNDS = 12, 3


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="transformer", choices=("transformer", "rnn"))
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--peer", help="Python with torch.")
    options = parser.parse_args()
    measure.one_thread()

    import jax

    from nmt_jax import platforms
    from nmt_jax.checkpoints.train_state import new_state
    from nmt_jax.distributed import sharding
    from nmt_jax.training.optimizers import make_optimizer
    from nmt_jax.training.train_step import make_train_step

    platforms.keep_freed_memory()  # as in training
    model = importlib.import_module(f"benchmarks.{'model_t' if options.model == 'transformer' else 'model_r'}")
    with tempfile.TemporaryDirectory() as workdir:
        task = model.task(options.dtype, workdir)
        source = task.batches(STEPS * ROUNDS)
        batches = [source[n] for n in range(STEPS * ROUNDS)]
        optimizer = make_optimizer(task.config.optimizer)
        state = new_state(jax.jit(task.init)(jax.random.key(0)), optimizer, ema_decay=0.0)
        step = make_train_step(task.loss_fn, optimizer, lambda update: 1e-4, accumulate=1, ema_decay=0.0, seed=0)
        for shape in source.shapes:
            state, _ = jax.block_until_ready(step(state, sharding.shard_batch(task.dummy_batch(shape), task.mesh)))
        ours, theirs, rates = [], [], []
        for n in range(ROUNDS):
            mine = batches[n * STEPS : (n + 1) * STEPS]
            tokens = sum(int((batch["target"] != 0).sum()) for batch in mine)
            rates.append(measure.matmul_rate())
            start = time.process_time()
            for batch in mine:
                state, metrics = step(state, sharding.shard_batch(batch, task.mesh))
            jax.block_until_ready((state, metrics))
            seconds = time.process_time() - start
            work = sum(model.operations(batch) for batch in mine)
            ours.append((tokens / seconds, work / seconds / rates[-1]))
            if options.peer:
                arrays = {f"{side}{i}": batch[side] for i, batch in enumerate(mine) for side in batch}
                theirs.append(
                    measure.peer(options.peer, "peer_torch.py", arrays, options.model)["tokens_per_cpu_second"]
                )
    figures = {
        "tokens_per_cpu_second": statistics.median(speed for speed, _ in ours),
        "share_of_matmul_rate": statistics.median(share for _, share in ours),
        "matmul_gflops": statistics.median(rates) / 1e9,
    }
    if theirs:
        figures["torch_tokens_per_cpu_second"] = statistics.median(theirs)
        figures["ratio_to_torch"] = statistics.median(a / b for (a, _), b in zip(ours, theirs, strict=True))
    measure.report(benchmark=f"train_{options.model}", dtype=options.dtype, **figures)


if __name__ == "__main__":
    main()
