"""How programs are compiled: once, to be read back by every later run, and on processors in half the time."""

import importlib.util
import os
from pathlib import Path

import jax

LEVEL = "--xla_backend_optimization_level"


def configure() -> Path:
    """Keep compiled programs in $NMT_JAX_CACHE/compilation (or ~/.cache/nmt-jax/compilation) and return the folder.

    A folder the user already chose, by JAX_COMPILATION_CACHE_DIR or in code, stays, and so does a level of optimisation
    in XLA_FLAGS. Call it before JAX looks for devices.
    """
    chosen = jax.config.values["jax_compilation_cache_dir"]
    root = Path(os.environ.get("NMT_JAX_CACHE") or "~/.cache/nmt-jax").expanduser()
    folder = Path(chosen) if chosen else root / "compilation"
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # The defaults skip what compiles in under a second, which on a small model is everything but the train step.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    # LLVM's last level takes a third to two thirds of the compiler's time, and no program of ours runs faster by it.
    flags = os.environ.get("XLA_FLAGS", "")
    if LEVEL not in flags and _has_processors_only():
        os.environ["XLA_FLAGS"] = f"{flags} {LEVEL}=2".strip()
    return folder


def _has_processors_only() -> bool:
    """Whether JAX will find no accelerator, as far as can be known without asking it."""
    platforms = jax.config.values["jax_platforms"]
    accelerated = any(importlib.util.find_spec(name) for name in ("jax_plugins", "libtpu"))
    return platforms == "cpu" if platforms else not accelerated
