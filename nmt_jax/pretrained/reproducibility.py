"""What makes the numbers of a pretrained model reproducible: a fingerprint of its weights, and exact products."""

import contextlib
import hashlib
from collections.abc import Mapping
from typing import Any

import flax.traverse_util
import jax
import numpy as np


def fingerprint(settings: bytes, params: Mapping[str, Any], excluded: str | None = None) -> str:
    """SHA-256 of settings and of the float32 values of all parameters whose names do not start with `excluded`."""
    digest = hashlib.sha256(settings)
    for name, value in sorted(flax.traverse_util.flatten_dict(params, sep="/").items()):
        if excluded is None or not name.startswith(excluded):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(value, np.float32).data)
    return digest.hexdigest()


def exact_products(dtype: str) -> contextlib.AbstractContextManager[Any]:
    """A context in which float32 products are exact; by default, accelerators round their operands to fewer bits."""
    return jax.default_matmul_precision("highest" if dtype == "float32" else "default")
