"""Measuring on one thread: CPU-seconds, the rate of a matrix product, and peers in other environments."""

import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHARED = pathlib.Path(os.environ.get("NMT_JAX_SHARED", ROOT.parent / "shared"))


def one_thread() -> None:
    """Limit this process to one thread on its first allowed processor. Call it before JAX is imported."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()


def cpu_seconds(work: Callable[[], Any], repeats: int = 5, before: Callable[[], Any] = lambda: None) -> float:
    """Return the median CPU-seconds of `work` after a warm-up call; `work` must finish before it returns.

    before: called before each timed call and not timed, for example to clear a cache.
    """
    work()
    seconds = []
    for _ in range(repeats):
        before()
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


def matmul_rate(n: int = 2048) -> float:
    """Return the floating-point operations per CPU-second of a float32 matrix product in JAX, measured now."""
    import jax
    import jax.numpy as jnp

    x = jnp.ones((n, n), jnp.float32)
    product = jax.jit(lambda x: x @ x)
    return 2 * n**3 / cpu_seconds(lambda: product(x).block_until_ready())


def peer(python: str, script: str, arrays: dict[str, Any], *arguments: str) -> dict[str, Any]:
    """Run `script` of this folder in another Python on the given arrays, and return the JSON object it prints."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "work.npz"
        np.savez(path, **arrays)
        command = [python, str(pathlib.Path(__file__).with_name(script)), str(path), *arguments]
        finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(finished.stdout.splitlines()[-1])


def report(**figures: Any) -> None:
    """Print one JSON line: the figures, rounded to four digits, the machine and the arguments."""
    machine = {"machine": platform.machine(), "python": platform.python_version(), "arguments": sys.argv[1:]}
    rounded = {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in figures.items()}
    print(json.dumps(rounded | machine))
