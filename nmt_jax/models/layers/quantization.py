"""Weights of 8 bits for inference: products of integers (Bhandare et al., 2019; Zafrir et al., 2019, section 3).

A weight matrix W float32[D, F] is replaced by W_q int8[D, F] and a scale s float32[1, F], the largest absolute value of
each column divided by 127. A row x of activations is rounded in the same way, with a scale a of its own when it is
multiplied, and x W is about a s (x_q W_q), whose sum is exact in int32. A row never depends on other rows.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from jax import Array

LARGEST = 127.0  # -128 is not used, so that the range is symmetric
TINY = 1e-30  # a row of zeros has some scale, too
TABLES = ("source_embedding", "target_embedding", "output_table")


@struct.dataclass
class Quantized:
    """A kernel of int8 `values` [D, F] times a float32 `scale` [1, F]; in place of a float32 parameter."""

    values: Array
    scale: Array


@struct.dataclass
class QuantizedTable:
    """A table of embeddings, float[V, D], and its transpose quantized as a kernel [D, V] of the output layer."""

    rows: Array
    kernel: Quantized

    @property
    def T(self) -> Quantized:  # noqa: N802 - the name that arrays have
        """The kernel; it is stored, because CPUs multiply transposed matrices of int8 50 times as slowly."""
        return self.kernel

    def __getitem__(self, tokens: Array) -> Array:
        """Tokens int[...] -> [..., D]."""
        return self.rows[tokens]

    def __len__(self) -> int:
        return len(self.rows)

    def astype(self, dtype: str) -> "QuantizedTable":
        """The table with embeddings of this type; the kernel stays as it is."""
        return QuantizedTable(self.rows.astype(dtype), self.kernel)


def quantize(x: Array, axis: int) -> Quantized:
    """x float32 with a scale for each slice along `axis`, which has length 1 in the scale."""
    scale = jnp.maximum(jnp.max(jnp.abs(x), axis=axis, keepdims=True), TINY) / LARGEST
    return Quantized(jnp.round(x / scale).astype(jnp.int8), scale)


def quantized_product(x: Array, kernel: Quantized) -> Array:
    """x float[..., D] times the quantized kernel [D, F], with its scale [1, F] -> float32[..., F]."""
    rows = quantize(x.reshape(-1, x.shape[-1]).astype(jnp.float32), axis=1)
    sums = jnp.dot(rows.values, kernel.values, preferred_element_type=jnp.int32)
    return (sums.astype(jnp.float32) * rows.scale * kernel.scale).reshape(*x.shape[:-1], -1)


def quantize_parameters(params: Any) -> Any:
    """The parameters of a Transformer with all kernels [D, F] and all tables of embeddings [V, D] quantized."""

    def convert(path: Any, leaf: Array) -> Any:
        *_, module, name = (str(part.key) for part in path)
        if name == "kernel":
            return quantize(leaf, axis=0)
        return QuantizedTable(leaf, quantize(leaf.T, axis=0)) if name == "table" and module in TABLES else leaf

    return jax.tree.map_with_path(convert, params)
