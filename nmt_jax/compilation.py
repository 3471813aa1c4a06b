"""The persistent compilation cache: a program compiled once is read back by every later run."""

import os
from pathlib import Path

import jax


def cache_compilations() -> Path:
    """Keep compiled programs in $NMT_JAX_CACHE/compilation (or ~/.cache/nmt-jax/compilation) and return the folder.

    A folder the user already chose, by JAX_COMPILATION_CACHE_DIR or in code, stays.
    """
    chosen = jax.config.values["jax_compilation_cache_dir"]
    root = Path(os.environ.get("NMT_JAX_CACHE") or "~/.cache/nmt-jax").expanduser()
    folder = Path(chosen) if chosen else root / "compilation"
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # The defaults skip what compiles in under a second, which on a small model is everything but the train step.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return folder
