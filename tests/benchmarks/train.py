"""Training speed of Transformer T on Multi30k, one thread: target tokens a CPU-second, share of the matmul rate.

    python -m tests.benchmarks.train [--dtype=bfloat16] [--peer=PYTHON-WITH-TORCH]

T: 3+3 layers, d_model 256, d_ff 1024, 4 heads, joint vocabulary of 8000, batches of 2048 target tokens (padding
included), dropout 0.1 everywhere, label smoothing 0.1, Adam. Figures count no padding. The peer
is `peer_torch.py`, a plain PyTorch loop over the same batches, run in turn with ours.
"""

import argparse
import pathlib
import statistics
import tempfile
import time

from tests.benchmarks import measure

LAYERS, D_MODEL, D_FF, HEADS, VOCABULARY = 3, 256, 1024, 4, 8000
STEPS, ROUNDS = 12, 3


def operations(batch: dict) -> float:
    """Multiplications and additions of a forward and backward pass (twice the forward) over the real tokens."""
    source, target = (batch["source"] != 0).sum(1), (batch["target"] != 0).sum(1)
    square, feed_forward = D_MODEL * D_MODEL, 2 * D_MODEL * D_FF
    encoder = LAYERS * (4 * square + feed_forward) * source.sum()
    decoder = (LAYERS * (6 * square + feed_forward) + D_MODEL * VOCABULARY) * target.sum()
    decoder += LAYERS * 2 * square * source.sum()  # keys and values of the source
    attention = LAYERS * 2 * D_MODEL * (source * source + target * target + target * source).sum()
    return 3 * 2 * float(encoder + decoder + attention)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--peer", help="a Python that has torch")
    options = parser.parse_args()
    measure.one_thread()

    import jax

    from nmt_jax import compilation, sharding
    from nmt_jax import config as configs
    from nmt_jax.optim import make_optimizer
    from nmt_jax.step import make_train_step, new_state
    from nmt_jax.tasks.translate import Translate

    compilation.cache_compilations()
    config = configs.load(str(measure.ROOT / "configs" / "multi30k.py"))
    config.data.directory = str(measure.SHARED / "data" / "multi30k")
    config.vocab.size = VOCABULARY
    config.model.update(num_encoder_layers=LAYERS, num_decoder_layers=LAYERS, d_model=D_MODEL, d_ff=D_FF)
    config.model.update(num_heads=HEADS, dropout=0.1, attention_dropout=0.1, relu_dropout=0.1, dtype=options.dtype)
    config.train.batch_tokens = 2048
    with tempfile.TemporaryDirectory() as workdir:
        task = Translate(config, pathlib.Path(workdir), sharding.make_mesh())
        source = task.batches(STEPS * ROUNDS)
        batches = [source[n] for n in range(STEPS * ROUNDS)]
        state = new_state(jax.jit(task.init)(jax.random.key(0)), optimizer := make_optimizer(config.optimizer), 0.0)
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
            ours.append((tokens / seconds, sum(map(operations, mine)) / seconds / rates[-1]))
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
