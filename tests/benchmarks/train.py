"""Training speed of Transformer T on Multi30k, one thread: target tokens a CPU-second, share of the matmul rate.

    python -m tests.benchmarks.train [--dtype=bfloat16] [--peer=PYTHON-WITH-TORCH]

T: 3+3 layers, d_model 256, d_ff 1024, 4 heads, joint vocabulary of 8000, batches of 2048 target tokens (padding
included), dropout 0.1 everywhere, label smoothing 0.1, Adam. Figures count no padding. The peer
is `peer_torch.py`, a plain PyTorch loop over the same batches, run in turn with ours.
"""

import argparse
import statistics
import tempfile
import time

from tests.benchmarks import measure

STEPS, ROUNDS = 12, 3


def operations(batch: dict, layers: int, d_model: int, d_ff: int, vocabulary: int) -> float:
    """Multiplications and additions of a forward and backward pass (twice the forward) over the real tokens."""
    source, target = (batch["source"] != 0).sum(1), (batch["target"] != 0).sum(1)
    square, feed_forward = d_model * d_model, 2 * d_model * d_ff
    encoder = layers * (4 * square + feed_forward) * source.sum()
    decoder = (layers * (6 * square + feed_forward) + d_model * vocabulary) * target.sum()
    decoder += layers * 2 * square * source.sum()  # keys and values of the source
    attention = layers * 2 * d_model * (source * source + target * target + target * source).sum()
    return 3 * 2 * float(encoder + decoder + attention)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--peer", help="a Python that has torch")
    options = parser.parse_args()
    measure.one_thread()

    import jax

    from nmt_jax import sharding
    from nmt_jax.optim import make_optimizer
    from nmt_jax.step import make_train_step, new_state
    from tests.benchmarks import model_t

    with tempfile.TemporaryDirectory() as workdir:
        task = model_t.task(options.dtype, workdir)
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
            sizes = (model_t.LAYERS, model_t.D_MODEL, model_t.D_FF, model_t.VOCABULARY)
            work = sum(operations(batch, *sizes) for batch in mine)
            ours.append((tokens / seconds, work / seconds / rates[-1]))
            if options.peer:
                arrays = {f"{side}{i}": batch[side] for i, batch in enumerate(mine) for side in batch}
                theirs.append(measure.peer(options.peer, "peer_torch.py", arrays)["tokens_per_cpu_second"])
    figures = {
        "tokens_per_cpu_second": statistics.median(speed for speed, _ in ours),
        "share_of_matmul_rate": statistics.median(share for _, share in ours),
        "matmul_gflops": statistics.median(rates) / 1e9,
    }
    if theirs:
        figures["torch_tokens_per_cpu_second"] = statistics.median(theirs)
        figures["ratio_to_torch"] = statistics.median(a / b for (a, _), b in zip(ours, theirs, strict=True))
    measure.report(benchmark="train_transformer", dtype=options.dtype, **figures)


if __name__ == "__main__":
    main()
