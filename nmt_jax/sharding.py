"""Where arrays live: one mesh of devices, batches split over it, the training state replicated or split with it."""

from typing import Any

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from nmt_jax.errors import UserError


def make_mesh(model: int = 1) -> Mesh:
    """Lay out all devices as ("data", "model"), `model` of them sharing each copy of the parameters.

    Raises UserError when the device count is not divisible by `model`.
    """
    devices = jax.device_count()
    if model < 1 or devices % model:
        raise UserError(f"mesh.model={model} does not divide the {devices} devices here: use a divisor of {devices}")
    # Auto: under Explicit, today's default of make_mesh, nn.Embed and nn.Dropout fail.
    return jax.make_mesh((devices // model, model), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))


def replicated(mesh: Mesh) -> NamedSharding:
    """The whole array on every device."""
    return NamedSharding(mesh, PartitionSpec())


def shard_batch(batch: Any, mesh: Mesh) -> Any:
    """Put this process's rows, arrays [B / processes, ...], into global arrays [B, ...] split by rows over "data"."""
    rows = NamedSharding(mesh, PartitionSpec("data"))
    return jax.tree.map(lambda array: jax.make_array_from_process_local_data(rows, array), batch)


def shard_state(abstract: Any, mesh: Mesh) -> Any:
    """A sharding for every leaf of a (abstract) training state: matrices split over "model", all else replicated.

    The last axis that "model" divides is cut, so the two moments of Adam lie beside their parameters. Any choice gives
    the same numbers (the compiler inserts the communication); this one needs no knowledge of the model.
    """
    model = mesh.shape["model"]

    def sharding(leaf: jax.ShapeDtypeStruct) -> NamedSharding:
        axes = [axis for axis, size in enumerate(leaf.shape) if size % model == 0]
        if model == 1 or len(leaf.shape) < 2 or not axes:
            return replicated(mesh)
        return NamedSharding(mesh, PartitionSpec(*(None,) * axes[-1], "model"))

    return jax.tree.map(sharding, abstract)
