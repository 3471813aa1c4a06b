"""Where arrays live: one mesh of devices, batches split over it by rows, parameters by the rules of one table."""

import math
import re
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from nmt_jax.data.batching.row_slice import RowSlice
from nmt_jax.errors import UserError

# Which axis of a parameter is split over "model", by the end of its name; the first rule that fits holds, and what
# none fits is on every device. The moments of an optimizer end as their parameters do, and lie beside them.
# Attention heads and feed-forward units are computed apart and summed once (Shoeybi et al., 2019, section 3).
RULES = (
    (r"(query|key|value|hidden|gate)/kernel", 1),
    (r"(query|key|value|hidden|gate)/bias", 0),
    (r"(attention|ffn)/output/kernel", 0),
    (r"(embedding/table|embeddings/word|output_table|output_bias)", 0),  # the vocabulary
    (r"(words|predicted|buckets)", 1),  # word vectors are looked up by row
)


def make_mesh(model: int = 1) -> Mesh:
    """Lay out the devices of all processes as ("data", "model"), `model` of them sharing each copy of the parameters.

    Raises UserError when the device count is not divisible by `model`.
    """
    devices = jax.device_count()
    if model < 1 or devices % model:
        raise UserError(f"mesh.model={model} does not divide the {devices} devices here: use a divisor of {devices}")
    return _lay_out(jax.devices(), model)


def local(mesh: Mesh) -> Mesh:
    """What of a mesh one process can use without the others; all of it where there are none."""
    return mesh if jax.process_count() == 1 else _lay_out(jax.local_devices(), 1)


def _lay_out(devices: list[jax.Device], model: int) -> Mesh:
    # Auto: under Explicit, today's default of make_mesh, nn.Embed and nn.Dropout fail.
    types = (AxisType.Auto, AxisType.Auto)
    return jax.make_mesh((len(devices) // model, model), ("data", "model"), axis_types=types, devices=devices)


def share(mesh: Mesh, accumulate: int = 1) -> RowSlice:
    """The rows of each batch, cut into `accumulate` parts, that this process builds for its devices.

    Rows of a part are a multiple of 8 at least, so that 1, 2, 4, 8 devices see the same batches.
    """
    multiple_of = math.lcm(8, mesh.shape["data"]) * accumulate
    own = [any(device.process_index == jax.process_index() for device in row) for row in mesh.devices]
    rows = np.flatnonzero(own)  # processes that share copies of the parameters share their rows
    return RowSlice(multiple_of, int(rows[0]) // len(rows), len(own) // len(rows))


def replicated(mesh: Mesh) -> NamedSharding:
    """The whole array on every device."""
    return NamedSharding(mesh, PartitionSpec())


def shard_batch(batch: Any, mesh: Mesh) -> Any:
    """Put this process's rows, arrays [B / processes, ...], into global arrays [B, ...] split by rows over "data"."""
    rows = NamedSharding(mesh, PartitionSpec("data"))
    return jax.tree.map(lambda array: jax.make_array_from_process_local_data(rows, array), batch)


def shard_state(abstract: Any, mesh: Mesh, fsdp: bool = False) -> Any:
    """A sharding for every leaf of a (abstract) training state: over "model" by RULES, all else replicated.

    fsdp: what has two axes or more is also split over "data", by the largest axis that is left, and gathered where it
    is used (Rajbhandari et al., 2020, stage 3). Any choice gives the same numbers: the compiler inserts the
    communication.
    """

    def sharding(path: Any, leaf: jax.ShapeDtypeStruct) -> NamedSharding:
        axes: list[str | None] = [None] * len(leaf.shape)
        split = _model_axis(jax.tree_util.keystr(path, simple=True, separator="/"))
        if split is not None and split < len(axes) and leaf.shape[split] % mesh.shape["model"] == 0:
            axes[split] = "model" if mesh.shape["model"] > 1 else None
        if fsdp and len(axes) > 1:
            sizes = {axis: size for axis, size in enumerate(leaf.shape) if not axes[axis] and size % _data(mesh) == 0}
            if sizes and _data(mesh) > 1:
                axes[max(sizes, key=lambda axis: sizes[axis])] = "data"
        while axes and axes[-1] is None:
            axes.pop()
        return NamedSharding(mesh, PartitionSpec(*axes))

    return jax.tree.map_with_path(sharding, abstract)


def _data(mesh: Mesh) -> int:
    return mesh.shape["data"]


def _model_axis(name: str) -> int | None:
    """The axis of the parameter of this name that RULES split."""
    return next((axis for end, axis in RULES if re.search(f"(^|[/_]){end}$", name)), None)


def gather(tree: Any, mesh: Mesh) -> Any:
    """All of a tree of global arrays on the devices of `local(mesh)`; every process must call it."""
    if jax.process_count() == 1:
        return tree
    whole = jax.jit(lambda tree: tree, out_shardings=replicated(mesh))(tree)
    sharding = replicated(local(mesh))

    def mine(array: jax.Array) -> jax.Array:
        copies = [shard.data for shard in array.addressable_shards]
        return jax.make_array_from_single_device_arrays(array.shape, sharding, copies)

    return jax.tree.map(mine, whole)
