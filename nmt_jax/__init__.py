"""Attention RNNs, Transformers and pretraining in JAX: from raw text to a trained, decoded, scored model.

    import nmt_jax
    nmt_jax.load("runs/mine").translate(["A man sleeps ."])

The module of `load` is imported on first use.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

__all__ = ["__version__", "load"]


def __getattr__(name: str) -> Any:
    """Import `load` on first use."""
    if name == "load":
        return importlib.import_module("nmt_jax.api").load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
