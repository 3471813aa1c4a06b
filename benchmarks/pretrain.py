r"""Speed of BERT pretraining on one thread: tokens per CPU-second, and the share of the machine's matmul rate.

    python -m benchmarks.pretrain [--page=bert_base] [--dtype=bfloat16] [--rows=8] [--length=128] [--steps=4] \
[--vocab=30522]

Full rows of random tokens, 15 % of them predicted, dropout, next sentences, AdamW. The share is that of the rate of a
float32 product measured at the same time; rematerialized layers count once. On an accelerator:
`accelerator_training.py`.
"""

import argparse
import statistics
import tempfile
import time

from benchmarks import measure, random_tasks

ROUNDS = 3


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
    options = parser.parse_args()
    measure.one_thread()

    import jax

    changes = {"model.dtype": options.dtype, "train.accumulate": "1"}
    shape = {"rows": options.rows, "length": options.length, "vocabulary": options.vocab}
    with tempfile.TemporaryDirectory() as workdir:
        problem = random_tasks.problem(f"{options.page}.py", changes, **shape, workdir=workdir)
        state, step, batch = random_tasks.training(problem)
        state, _ = jax.block_until_ready(step(state, batch))
        seconds, shares = [], []
        for _ in range(ROUNDS):
            rate = measure.matmul_rate()
            start = time.process_time()
            for _ in range(options.steps):
                state, metrics = step(state, batch)
            jax.block_until_ready((state, metrics))
            seconds.append((time.process_time() - start) / options.steps)
            shares.append(problem.operations / seconds[-1] / rate)
    figures = {
        "parameters": sum(leaf.size for leaf in jax.tree.leaves(state.params)),
        "tokens_per_cpu_second": problem.tokens / statistics.median(seconds),
        "seconds_per_step": statistics.median(seconds),
        "share_of_matmul_rate": statistics.median(shares),
    }
    measure.report(benchmark="pretrain", page=options.page, dtype=options.dtype, **figures)


if __name__ == "__main__":
    main()
