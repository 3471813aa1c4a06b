"""Speed of making batches beside the speed of training on them, and the memory it takes, by size of the corpus.

    python -m benchmarks.input_pipeline [--pairs=29000,3000000] [--config=configs/quickstart.py]

Pairs of the embedded grammar are prepared on disk. Then batches of `train.batch_tokens` of the page are made in random
order, and some of them are trained on. Each size is prepared and measured in separate processes. Memory is what the
second process holds once JAX and the model are loaded, and what 400 batches add (resident pages that are not mapped
from files).
"""

import argparse
import ctypes
import gc
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks import measure

BATCHES, STEPS = 400, 12


def private_mib() -> float:
    """Return the anonymous memory of this process in MiB, after returning free memory to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    fields = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
    return float(fields["Anonymous"].split()[0]) / 1024


def task_of(pairs: int, page: str, folder: str) -> Any:
    """Return the task of the page with a corpus of this size and its files in `folder`."""
    from nmt_jax import config as configs
    from nmt_jax.distributed import sharding
    from nmt_jax.tasks.registry import make_task

    changes = {"data.size": str(pairs), "data.cache": f"{folder}/cache"}
    return make_task(configs.load(page, changes), pathlib.Path(folder) / "w", sharding.make_mesh())


def prepared(pairs: int, page: str, folder: str) -> dict[str, float]:
    """Write vocabularies and corpus, and return the times."""
    task = task_of(pairs, page, folder)
    began = time.monotonic()
    task.vocabularies  # noqa: B018  trained and saved
    vocabulary, began = time.monotonic() - began, time.monotonic()
    task.train_corpus  # noqa: B018  written
    return {"vocabulary_seconds": vocabulary, "prepare_seconds": time.monotonic() - began}


def measured(pairs: int, page: str, folder: str) -> dict[str, float]:
    """Return the figures of a prepared corpus."""
    measure.one_thread()
    import jax

    from nmt_jax import platforms
    from nmt_jax.checkpoints.train_state import new_state
    from nmt_jax.distributed import sharding
    from nmt_jax.training.optimizers import make_optimizer
    from nmt_jax.training.train_step import make_train_step

    platforms.configure_compilation()  # as in training
    platforms.keep_freed_memory()
    task = task_of(pairs, page, folder)
    optimizer = make_optimizer(task.config.optimizer)
    state = new_state(jax.jit(task.init)(jax.random.key(0)), optimizer, ema_decay=0.0)
    step = make_train_step(task.loss_fn, optimizer, lambda update: 1e-4, accumulate=1, ema_decay=0.0, seed=0)
    before = private_mib()
    batches = task.batches(BATCHES)
    for number in range(20):
        batches[number]
    start, tokens = time.process_time(), 0
    for number in range(20, BATCHES):
        tokens += int((batches[number]["target"] != 0).sum())
    making = (time.process_time() - start) / tokens
    after = private_mib()
    some = [batches[number] for number in range(STEPS)]
    for shape in {(batch["source"].shape, batch["target"].shape): batch for batch in some}.values():
        state, _ = jax.block_until_ready(step(state, sharding.shard_batch(shape, task.mesh)))
    start = time.process_time()
    for batch in some:
        state, _ = step(state, sharding.shard_batch(batch, task.mesh))
    jax.block_until_ready(state)
    training = (time.process_time() - start) / sum(int((batch["target"] != 0).sum()) for batch in some)
    return {
        "pairs": len(task.train_corpus),
        "tokens_per_cpu_second": 1 / making,
        "training_tokens_per_cpu_second": 1 / training,
        "times_faster": training / making,
        "memory_mib": before,
        "memory_of_batches_mib": after - before,
    }


STAGES = {"prepare": prepared, "measure": measured}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", default="29000,3000000")
    parser.add_argument("--config", default="configs/quickstart.py")
    parser.add_argument("--stage", choices=STAGES, help="Run one stage for one size in this process.")
    parser.add_argument("--folder", help="Folder for --stage.")
    options = parser.parse_args()
    if options.stage:
        print(json.dumps(STAGES[options.stage](int(options.pairs), options.config, options.folder)))
        return
    for pairs in options.pairs.split(","):
        figures: dict[str, float] = {}
        with tempfile.TemporaryDirectory() as folder:
            for stage in STAGES:
                command = [sys.executable, "-m", "benchmarks.input_pipeline", f"--pairs={pairs}"]
                command += [f"--config={options.config}", f"--stage={stage}", f"--folder={folder}"]
                finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                figures |= json.loads(finished.stdout.splitlines()[-1])
        measure.report(benchmark="input_pipeline", **figures)


if __name__ == "__main__":
    main()
