r"""Training speed on accelerators: tokens per second and model FLOPs utilization (MFU), beside PyTorch.

    python -m benchmarks.accelerator_training [--models=transformer_base,bert_large] [--peer=PYTHON] \
[--peak_tflops=N] [--dtype=bfloat16] [--rows=N] [--length=N] [--steps=20] [KEY=VALUE ...]

The training step of the pages `transformer.py` and `bert_base.py` (and their larger sizes) with dropout and optimizer,
on random tokens in full rows: 64 source and 64 target tokens, or 512 tokens of which 15 % are predicted. `--rows` is
per device. Ours runs on all devices that JAX finds, with the mesh that KEY=VALUE sets (`mesh.fsdp=true`).

The peer (`peer_torch_training.py`; a Python with torch) is a plain PyTorch loop of the same model on the first device:
torch.compile, scaled_dot_product_attention without masks of padding, autocast to bfloat16, fused AdamW. Ours and the
peer take turns, each in a new process, so that neither holds memory that the other needs; each process compiles,
warms up, and measures three rounds of steps.

Operations are 6 per weight of a matrix product and token, plus attention over full squares, forward and backward,
without recomputation (`random_tasks.py`); MFU is operations per second and device over the device's peak in bfloat16
(`nmt_jax/planning/accelerators.py`, or `--peak_tflops`; without either it is left out). `matmul_tflops` is the rate of
a bfloat16 product of 8192 x 8192 (`--matmul`) in the same process.
`ratio` is ours over the peer's, both per device. One JSON line per model, with medians over all rounds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks import measure

MODELS = {  # page, rows per device, length, vocabulary
    "transformer_base": ("transformer.py:size=base", 256, 64, 37_000),
    "transformer_big": ("transformer.py:size=big", 256, 64, 37_000),
    "bert_base": ("bert_base.py", 64, 512, 30_522),
    "bert_large": ("bert_large.py", 32, 512, 30_522),
}
INNER = "--inner"  # marks the measured process
ROUNDS = 3
WARM_UP = 3  # steps after the first


def matmul_rate(size: int) -> float:
    """Return the operations per second of a bfloat16 product of square matrices in JAX on one device."""
    import jax
    import jax.numpy as jnp

    x = jax.random.normal(jax.random.key(0), (size, size), jnp.bfloat16)
    repeated = jax.jit(lambda x: jax.lax.fori_loop(0, 10, lambda _, y: (y @ x) * size**-0.5, x))
    jax.block_until_ready(repeated(x))
    start = time.perf_counter()
    jax.block_until_ready(repeated(x))
    return 10 * 2 * size**3 / (time.perf_counter() - start)


def inner(given: dict[str, Any]) -> None:
    """Measure our training step, and print the figures as JSON."""
    import jax

    from benchmarks import random_tasks
    from nmt_jax.planning.accelerators import topology_of

    page, rows, length, vocabulary = given["model"]
    shape = {"rows": rows * jax.device_count(), "length": length, "vocabulary": vocabulary}
    with tempfile.TemporaryDirectory() as workdir:
        problem = random_tasks.problem(page, given["changes"], **shape, workdir=workdir)
        state, step, batch = random_tasks.training(problem)
        parameters = sum(leaf.size for leaf in jax.tree.leaves(state.params))
        start = time.perf_counter()
        state, metrics = jax.block_until_ready(step(state, batch))
        compiled = time.perf_counter() - start
        for _ in range(WARM_UP):
            state, metrics = step(state, batch)
        jax.block_until_ready((state, metrics))
        seconds = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for _ in range(given["steps"]):
                state, metrics = step(state, batch)
            jax.block_until_ready((state, metrics))
            seconds.append((time.perf_counter() - start) / given["steps"])
        loss, devices = float(metrics["loss"]), jax.device_count()
        memory = (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0)
        del state, batch
    figures = {"seconds": seconds, "first_step": compiled, "loss": loss, "parameters": parameters, "memory": memory}
    figures |= {"tokens": problem.tokens / devices, "operations": problem.operations / devices}
    figures |= {"device": f"{devices} x {jax.devices()[0].device_kind}", "jax": jax.__version__}
    topology = topology_of(jax.devices())
    figures["peak"] = topology.accelerator.flops if topology else 0.0
    print(json.dumps(figures | {"matmul": matmul_rate(given["matmul"])}))


def ours(given: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a new process."""
    command = [sys.executable, "-m", "benchmarks.accelerator_training", INNER, json.dumps(given)]
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=measure.ROOT)
    return json.loads(finished.stdout.splitlines()[-1])


def peer_model(given: dict[str, Any]) -> dict[str, Any]:
    """Return the shape of the page's model, and the settings that the peer needs."""
    from nmt_jax import config as configs

    page, rows, length, vocabulary = given["model"]
    config = configs.load(str(measure.ROOT / "configs" / page), given["changes"])
    names = ("d_model", "d_ff", "num_heads", "dropout", "attention_dropout", "dtype")
    shape = {name: config.model[name] for name in names}
    layers = {name: config.model[name] for name in config.model if name.endswith("_layers")}
    rest = {"task": config.task, "rows": rows, "length": length, "vocabulary": vocabulary, "steps": given["steps"]}
    optimizer = {name: config.optimizer[name] for name in ("clip_norm", "weight_decay", "beta1", "beta2", "epsilon")}
    return {**shape, **layers, **rest, **optimizer, "rounds": ROUNDS, "warm_up": WARM_UP}


def compared(name: str, mine: list[dict[str, Any]], theirs: list[dict[str, Any]], peak: float) -> dict[str, Any]:
    """Return the figures to report; peak in operations per second, 0 for that of the device if it is known."""
    peak = peak or mine[0]["peak"]
    first, seconds = mine[0], statistics.median(second for one in mine for second in one["seconds"])
    rate, matmul = first["operations"] / seconds, statistics.median(one["matmul"] for one in mine)
    figures: dict[str, Any] = {"model": name, "device": first["device"], "jax": first["jax"]}
    figures |= {"parameters": first["parameters"], "tokens_per_device_second": first["tokens"] / seconds}
    figures |= {"seconds_per_step": seconds, "tflops": rate / 1e12, "matmul_tflops": matmul / 1e12}
    figures |= {"share_of_matmul_rate": rate / matmul}
    figures |= {"model_flops_utilization": rate / peak} if peak else {}
    figures |= {"peak_memory_gb": first["memory"] / 1e9, "first_step_seconds": first["first_step"]}
    if theirs:
        assert theirs[0]["parameters"] == first["parameters"], "the peer's model is another one"
        other = statistics.median(second for one in theirs for second in one["seconds"])
        figures |= {"torch": theirs[0]["torch"], "torch_tokens_per_second": first["tokens"] / other}
        figures |= {"torch_model_flops_utilization": first["operations"] / other / peak} if peak else {}
        figures |= {"torch_peak_memory_gb": theirs[0]["memory"] / 1e9, "ratio": other / seconds}
        figures |= {"loss": first["loss"], "torch_loss": theirs[0]["loss"]}
    return figures


def main() -> None:
    if sys.argv[1:2] == [INNER]:
        return inner(json.loads(sys.argv[2]))
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--peer", help="Python with torch.")
    parser.add_argument("--peak_tflops", type=float, default=0.0, help="Peak of one device, without sparsity.")
    parser.add_argument("--dtype", default="bfloat16", choices=("float32", "bfloat16"))
    parser.add_argument("--rows", type=int, help="Rows per device.")
    parser.add_argument("--length", type=int)
    parser.add_argument("--vocabulary", type=int)
    parser.add_argument("--steps", type=int, default=20, help="Steps in each of three rounds.")
    parser.add_argument("--turns", type=int, default=2, help="Processes of ours and of the peer.")
    parser.add_argument("--matmul", type=int, default=8192)
    parser.add_argument("changes", nargs="*", metavar="KEY=VALUE")
    options = parser.parse_args()
    os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.92")
    from nmt_jax import config as configs

    changes = {"model.dtype": options.dtype, "model.remat": "false", "train.accumulate": "1"}
    changes |= dict(configs.split_override(change) for change in options.changes)
    for name in options.models.split(","):
        page, rows, length, vocabulary = MODELS[name]
        model = (page, options.rows or rows, options.length or length, options.vocabulary or vocabulary)
        given = {"model": model, "changes": changes, "steps": options.steps, "matmul": options.matmul}
        mine, theirs = [], []
        for _ in range(options.turns):
            mine.append(ours(given))
            if options.peer:
                theirs.append(measure.peer(options.peer, "peer_torch_training.py", {}, json.dumps(peer_model(given))))
        figures = compared(name, mine, theirs, options.peak_tflops * 1e12)
        measure.report(benchmark="accelerator_training", dtype=options.dtype, **figures)
    return None


if __name__ == "__main__":
    main()
