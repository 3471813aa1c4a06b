"""The device mesh, and how batches, parameters and optimizer state are sharded over it."""

import functools
import math
import re
from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from nmt_jax.data.batching.row_slice import RowSlice
from nmt_jax.errors import UserError

# The axes of a parameter that may be split over "model", in order of preference, by a regular expression for the end of
# its name: the first one that the number of devices divides is split. Every parameter of two or more axes matches one
# rule; vectors without a rule are replicated. Optimizer moments have the names of their parameters, and are sharded
# like them.
RULES: tuple[tuple[str, tuple[int, ...]], ...] = (
    # Columns: each device computes some heads, units or filters, with their biases (Shoeybi et al., 2019, section 3).
    (r"(query|key|value|weight)/(kernel|bias)", (-1,)),  # attention; `weight` belongs to the score `general`
    (r"(hidden|hidden_\d+|ffn/gate|transform|pooler_dense|colour)/(kernel|bias)", (-1,)),
    (r"subsampling/layers_\d+/(kernel|bias)", (-1,)),
    (r"(convolutions_\d+|highways_\d+/(gate|change))/(kernel|bias)", (-1,)),  # the character encoder of ELMo
    (r"(decoder_layers/output|bridges_\d+_\d+|common_\d+)/(kernel|bias)", (-1,)),  # recurrent decoders
    # Gates of recurrent cells: at each step the devices exchange gates, so that each updates some hidden units. If rows
    # were split, they would have to sum all gates.
    (r"(cell|cells_\d+|layers_\d+_\d+|(forward|backward)_\d+)/(input/)?(kernel|bias)", (-1,)),
    # Rows: each device multiplies the units that it has computed; their products are summed once.
    (r"(?<!decoder_layers/)output/kernel", (0,)),  # attention, feed-forward layers, task heads
    (r"(projection|projection(_\d+)?/kernel|next_sentence_dense/kernel|position_vector/kernel)", (0,)),
    (r"(copier|decoder_layers)/gate/kernel", (0,)),
    # The vocabulary, or else the width: 4 does not divide BERT's 30,522 words. Then logits are summed over devices.
    (r"(embedding/table|embeddings/word|output_table|output_table/table)", (0, 1)),
    (r"output_bias", (0,)),
    (r"(words|predicted|buckets)", (1,)),  # word vectors are looked up by rows
    # Replicated, as they are small: embeddings of positions, sources, segments and characters, biases of distances.
    (r"(position/table|source_number/table|relative_bias/table|embeddings/(position|segment)|characters/table)", ()),
)


def make_mesh(model: int = 1, devices: Sequence[jax.Device] | None = None) -> Mesh:
    """Returns the mesh ("data", "model") of `devices`, by default of all; `model` of them share a copy of the model.

    Raises UserError if the number of devices is not divisible by `model`.
    """
    devices = jax.devices() if devices is None else devices
    if model < 1 or len(devices) % model:
        error = f"mesh.model={model} does not divide the number of devices, {len(devices)}"
        raise UserError(f"{error}; use a divisor of {len(devices)}")
    # nn.Embed and nn.Dropout fail with Explicit axes, the default of jax.make_mesh.
    types = (AxisType.Auto, AxisType.Auto)
    return jax.make_mesh((len(devices) // model, model), ("data", "model"), axis_types=types, devices=devices)


def share(mesh: Mesh, accumulate: int = 1) -> RowSlice:
    """Returns the rows of each batch that this process builds; batches are split into `accumulate` parts.

    The rows of a part are a multiple of 8, so that batches are the same for 1, 2, 4 and 8 devices. Processes whose
    devices have the same places along "data" share copies of the parameters and build the same rows. Raises UserError
    if the places of two processes are partly the same.
    """
    multiple_of = math.lcm(8, mesh.shape["data"]) * accumulate
    places: dict[int, set[int]] = {}  # by process; on TPUs, those of a process need not follow each other
    for place, devices in enumerate(mesh.devices):
        for device in devices:
            places.setdefault(device.process_index, set()).add(place)
    parts = sorted({tuple(sorted(found)) for found in places.values()})
    if len({len(part) for part in parts}) > 1 or sum(map(len, parts)) > len(mesh.devices):
        raise UserError(f"mesh.model={mesh.shape['model']}: processes cannot share a batch equally; use another value")
    return RowSlice(multiple_of, parts.index(tuple(sorted(places[jax.process_index()]))), len(parts))


def replicated(mesh: Mesh) -> NamedSharding:
    """Returns the sharding that keeps the whole array on every device."""
    return NamedSharding(mesh, PartitionSpec())


def shard_batch(batch: Any, mesh: Mesh) -> Any:
    """Combines the rows of all processes, arrays [B / processes, ...], to global arrays [B, ...] split over "data"."""
    rows = NamedSharding(mesh, PartitionSpec("data"))
    return jax.tree.map(lambda array: jax.make_array_from_process_local_data(rows, array), batch)


def shard_state(abstract: Any, mesh: Mesh, fsdp: bool = False) -> Any:
    """Returns a sharding for every leaf of an abstract training state: over "model" by RULES, otherwise replicated.

    The carry is split by rows, like the batches.

    fsdp: leaves with two or more axes are also split over "data", along the last axis whose size the number of devices
    divides (Rajbhandari et al., 2020, stage 3); a training step gathers them by `gather_for_step`. The results do not
    depend on these choices; the compiler inserts the communication.
    """

    data, model = mesh.shape["data"], mesh.shape["model"]

    def sharding(path: Any, leaf: jax.ShapeDtypeStruct) -> NamedSharding:
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        if name.startswith("carry/"):
            return NamedSharding(mesh, PartitionSpec("data"))
        axes: list[str | None] = [None] * len(leaf.shape)
        split = _model_axis(name, leaf.shape, model)
        if split is not None and model > 1:
            axes[split] = "model"
        if fsdp and len(axes) > 1:
            divisible = [axis for axis, size in enumerate(leaf.shape) if not axes[axis] and size % data == 0]
            if divisible and data > 1:
                axes[divisible[-1]] = "data"
        while axes and axes[-1] is None:
            axes.pop()
        return NamedSharding(mesh, PartitionSpec(*axes))

    return jax.tree.map_with_path(sharding, abstract)


def gather_for_step(params: Any, shardings: Any) -> Any:
    """Returns parameters that FSDP splits over "data" as whole arrays; their gradients are split again.

    Left to itself, the compiler would divide products by the parameters' axis instead of the batch on many devices,
    and send activations.
    """

    def gather_one(param: jax.Array, sharding: NamedSharding) -> jax.Array:
        whole = PartitionSpec(*(None if axis == "data" else axis for axis in sharding.spec))
        return param if whole == sharding.spec else _moved(param, NamedSharding(sharding.mesh, whole), sharding)

    return jax.tree.map(gather_one, params, shardings)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _moved(array: jax.Array, there: NamedSharding, back: NamedSharding) -> jax.Array:
    """Returns the array with the sharding `there`; its gradient has the sharding `back`."""
    return jax.lax.with_sharding_constraint(array, there)


def _moved_back(there: NamedSharding, back: NamedSharding, _: None, gradient: jax.Array) -> tuple[jax.Array]:
    """Splits the gradient after the whole was summed, so that a table with three uses has one sum, not three."""
    return (jax.lax.with_sharding_constraint(jax.lax.with_sharding_constraint(gradient, there), back),)


_moved.defvjp(lambda array, there, back: (_moved(array, there, back), None), _moved_back)


def _model_axis(name: str, shape: tuple[int, ...], model: int) -> int | None:
    """Returns the axis of a parameter that RULES split over `model` devices; None if it is replicated."""
    axes = next((axes for end, axes in RULES if matches(end, name)), ())
    return next((axis for axis in axes if shape[axis] % model == 0), None)


def matches(end: str, name: str) -> bool:
    """Whether the name of a parameter ends as a rule says."""
    return re.search(f"(^|[/_]){end}$", name) is not None
