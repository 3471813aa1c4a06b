"""Evaluation and inference on the devices of all processes: whole batches in, whole outputs out."""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from nmt_jax.data.batching.row_slice import RowSlice
from nmt_jax.distributed import sharding


class Evaluator:
    """Runs programs on batches that every process has whole; all processes of the mesh make the same calls.

    Parameters stay where they are, replicated or sharded: each program is compiled for their shardings. All processes
    get the same outputs, and so come to the same decisions.

    before_batch: called before each batch, in all processes; may raise an exception to end an evaluation.
    """

    def __init__(self, mesh: Mesh, before_batch: Callable[[], Any] = lambda: None):
        self.mesh, self.before_batch = mesh, before_batch

    @property
    def row_shards(self) -> int:
        """Number of devices over which the rows of a batch are divided; the number of rows is a multiple of it."""
        return int(self.mesh.shape["data"])

    @property
    def rows(self) -> RowSlice:
        """All rows of a batch, a multiple of 8, so that batches are the same for 1, 2, 4 and 8 devices."""
        return RowSlice(math.lcm(8, self.row_shards))

    def run(self, program: Callable[..., Any], params: Any, *batch: Any, **options: Any) -> Any:
        """Return the outputs of `program(params, *batch, **options)` as NumPy arrays.

        batch: trees of whole arrays [B, ...].
        """
        return self.fetch(program(params, *self.place(batch), **options))

    def place(self, batch: Any) -> Any:
        """Split arrays [B, ...] by rows over the devices."""
        self.before_batch()
        rows = NamedSharding(self.mesh, PartitionSpec("data"))
        return jax.tree.map(
            lambda array: jax.make_array_from_process_local_data(rows, array, global_shape=np.shape(array)), batch
        )

    def fetch(self, outputs: Any) -> Any:
        """Return the outputs of a program as NumPy arrays, the same in all processes."""
        if not all(leaf.is_fully_addressable for leaf in jax.tree.leaves(outputs)):
            outputs = self._replicate(outputs)
        return jax.device_get(outputs)

    @functools.cached_property
    def _replicate(self) -> Callable[[Any], Any]:
        return jax.jit(lambda tree: tree, out_shardings=sharding.replicated(self.mesh))
