"""The devices of this process as one mesh, and how arrays lie on them."""

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

Batch = TypeVar("Batch")


@functools.cache
def local_mesh() -> Mesh:
    """All devices of this process along the axis `data`."""
    devices = jax.local_devices()
    return jax.make_mesh((len(devices),), ("data",), (jax.sharding.AxisType.Auto,), devices=devices)


def platform() -> str:
    """The name of the devices' platform: cpu, gpu or tpu."""
    return str(local_mesh().devices.flat[0].platform)


def by_rows(mesh: Mesh) -> NamedSharding:
    """Arrays whose first axis is divided among the devices."""
    return NamedSharding(mesh, PartitionSpec("data"))


def everywhere(mesh: Mesh) -> NamedSharding:
    """Arrays of which every device has a copy."""
    return NamedSharding(mesh, PartitionSpec())


def put_weights(function: Any, mesh: Mesh) -> jax.tree_util.Partial:
    """A function with its weights on every device."""
    partial = function if isinstance(function, jax.tree_util.Partial) else jax.tree_util.Partial(function)
    return jax.device_put(partial, everywhere(mesh))


def out_of_memory(error: Exception) -> bool:
    """Whether an error means that a device or the host lacks memory."""
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)


def local_rows(table: jax.Array, at: jax.Array, mesh: Mesh) -> jax.Array:
    """Rows of a table float[R, S, E] by their number int[P, T], float[P, T, E]; each device reads its own part.

    Number r * S + s is token s of row r, counted from the first row of the device that holds the row of `at`.
    """
    rows = PartitionSpec("data")
    look_up = jax.shard_map(
        lambda part, at: part.reshape(-1, part.shape[-1])[at], mesh=mesh, in_specs=rows, out_specs=rows
    )
    return look_up(table, at)


def put(tree: Any, shardings: Any) -> Any:
    """Arrays of the host as arrays of the devices, in one transfer; float64 becomes float32, as in JAX."""
    return jax.device_put(tree, shardings)


def overlapped(start: Callable[[Batch], Any], batches: Iterable[Batch]) -> Iterator[tuple[Batch, Any]]:
    """Yields each batch with the result of `start` on the host; the next batch is started before it is fetched."""
    running: tuple[Batch, Any] | None = None
    for batch in batches:
        started = batch, start(batch)
        if running:
            yield running[0], gathered(running[1])
        running = started
    if running:
        yield running[0], gathered(running[1])


def gathered(tree: Any) -> Any:
    """Arrays of the devices as arrays of the host, in one transfer."""
    return jax.tree.map(np.asarray, jax.device_get(tree))
