"""Checks that a training fits the memory of its devices, made before anything large is allocated."""

import math
from collections.abc import Sequence
from typing import Any

import jax
from ml_collections import ConfigDict

from nmt_jax import platforms
from nmt_jax.checkpoints.train_state import TrainState
from nmt_jax.errors import UserError


def format_bytes(count: float) -> str:
    """A number of bytes as text, in MiB or GiB."""
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"


def format_shape(shape: tuple[int, ...]) -> str:
    """A shape as text, such as 8x59x63."""
    return "x".join(str(size) for size in shape)


def bytes_per_device(tree: Any) -> str:
    """The memory that arrays take on each device, as text."""
    return format_bytes(sum(leaf.addressable_shards[0].data.nbytes for leaf in jax.tree.leaves(tree)))


def check_state(state: TrainState, devices: Sequence[jax.Device]) -> None:
    """Raise UserError if a state and its gradients need more memory than the local devices have left.

    state: shapes with shardings; nothing is allocated yet.
    """
    leaves = jax.tree.leaves(state) + jax.tree.leaves(state.params)  # a gradient for each parameter
    needed = sum(math.prod(leaf.sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize for leaf in leaves)
    if needed > (free := _free(devices)):
        raise UserError(
            f"the model, its gradients and the state of the optimizer need {format_bytes(needed)} per device, but "
            f"{format_bytes(free)} are free: lower the sizes under config.model, or divide it by mesh.fsdp or "
            "mesh.model"
        )


def check_batch(shape: tuple[int, ...], config: ConfigDict, devices: Sequence[jax.Device]) -> None:
    """Raise UserError if a batch of `shape` needs more memory than there is by a lower bound.

    The bound for a token: an id of 4 bytes and, in a model with `d_model`, one bfloat16 vector of that width.
    """
    tokens = shape[0] * max(1, sum(shape[1:]))
    per_token = 4 + 2 * int(config.model.get("d_model") or 0) / config.train.accumulate
    if (needed := tokens * per_token / jax.device_count()) > (free := _free(devices)):
        raise too_large(shape, config, f"needs more than {format_bytes(needed)} of {format_bytes(free)}")


def check_program(shape: tuple[int, ...], config: ConfigDict, program: Any, devices: Sequence[jax.Device]) -> float:
    """Return the bytes that a compiled step needs. Raise UserError if the local devices have less left."""
    memory = program.memory_analysis()
    if memory is None:  # some devices do not report it
        return 0.0
    # The arguments are on the devices already.
    needed = memory.output_size_in_bytes + memory.temp_size_in_bytes - memory.alias_size_in_bytes
    if needed > (free := _free(devices)):
        raise too_large(shape, config, f"needs {format_bytes(needed)} of {format_bytes(free)}")
    return float(memory.argument_size_in_bytes + needed)


def too_large(shape: tuple[int, ...], config: ConfigDict, reason: str) -> UserError:
    """The error of a batch that does not fit."""
    return UserError(
        f"a batch of {format_shape(shape)} does not fit the memory of a device ({reason}): raise train.accumulate "
        f"(now {config.train.accumulate}), or lower train.batch_tokens (now {config.train.batch_tokens})"
    )


def _free(devices: Sequence[jax.Device]) -> float:
    """The bytes that each local device has left; simulated devices share the memory of the machine."""
    return platforms.free_memory() / (len(devices) if devices[0].platform == "cpu" else 1)
