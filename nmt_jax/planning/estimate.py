"""What a program needs on the devices of a topology: memory, arithmetic, traffic and the time that follows."""

import contextlib
import dataclasses
import math
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh

from nmt_jax import platforms
from nmt_jax.planning.accelerators import Topology
from nmt_jax.planning.arithmetic import matrix_flops
from nmt_jax.planning.compilation import TooLargeError, compile_or_read
from nmt_jax.planning.program_text import ProgramText
from nmt_jax.planning.programs import Program
from nmt_jax.planning.replica_groups import axes_of
from nmt_jax.planning.roofline import Roofline

CONSUMERS = 5


class Communication(NamedTuple):
    """Collectives of one kind over the same mesh axes: their number, the bytes of their results, and the bytes sent."""

    kind: str
    axes: tuple[str, ...]
    times: int
    size: float
    sent: float


@dataclasses.dataclass(frozen=True)
class Estimate:
    """The needs of one program, in bytes, operations and seconds per device.

    peak: arguments, temporaries and outputs. limit: memory of the device. flops: of the program; model_flops: of the
    model alone, without what is computed twice. on_chip: bytes accessed if on-chip memory counts as well. consumers:
    operations that access the most bytes. Without `roofline`, the compiler found that memory does not suffice.
    """

    program: str
    shape: tuple[int, ...]
    tokens: int
    devices: int
    limit: float
    peak: float
    arguments: float = 0.0
    temporaries: float = 0.0
    flops: float = 0.0
    model_flops: float = 0.0
    bytes_accessed: float = 0.0
    on_chip: float = 0.0
    communication: tuple[Communication, ...] = ()
    consumers: tuple[tuple[str, float], ...] = ()
    roofline: Roofline | None = None
    peak_flops: float = 0.0
    compile_seconds: float = 0.0

    @property
    def fits(self) -> bool:
        """Whether the device has enough memory."""
        return self.roofline is not None and self.peak <= self.limit

    @property
    def bound(self) -> str:
        """What takes longest: arithmetic, memory or network; "" if that is not known."""
        return self.roofline.binds if self.roofline else ""

    @property
    def bytes_sent(self) -> float:
        """Bytes that a device sends to others."""
        return sum(one.sent for one in self.communication)

    @property
    def tokens_per_second(self) -> float:
        """The upper bound for all devices together."""
        return self.tokens / self.roofline.seconds if self.roofline else 0.0

    @property
    def utilization(self) -> float:
        """The upper bound of model FLOPs utilization (Chowdhery et al., 2022, appendix B)."""
        return self.model_flops / (self.peak_flops * self.roofline.seconds) if self.roofline else 0.0

    def as_dict(self) -> dict[str, Any]:
        """All values, for JSON."""
        derived = ("fits", "bound", "bytes_sent", "tokens_per_second", "utilization")
        values = {**dataclasses.asdict(self), **{name: getattr(self, name) for name in derived}}
        values["communication"] = [one._asdict() for one in self.communication]
        values["roofline"] = self.roofline and self.roofline._asdict()
        return {name: None if value == math.inf else value for name, value in values.items()}


def traced_for(mesh: Mesh) -> contextlib.AbstractContextManager[None]:
    """Within this context, programs are traced for the devices of a mesh, without what needs a device to compile.

    This is cuDNN's kernels, and functions on the host.
    """
    platform = platforms.of_backend(mesh.devices.flat[0].platform)
    return platforms.use(dataclasses.replace(platform, attention="softmax", host="omitted"))


def estimate(program: Program, topology: Topology, folder: Path) -> Estimate:
    """Compile a program for a topology, or read it from `folder`, and return what it needs.

    Raises UserError if it cannot be compiled.
    """
    device, mesh = topology.accelerator, program.mesh
    common: dict[str, Any] = {"program": program.kind, "shape": program.shape, "tokens": program.tokens}
    common |= {"devices": mesh.size, "limit": device.memory, "peak_flops": device.flops}
    with traced_for(mesh):
        traced = program.trace()
        lowered = traced.lower()
    try:
        compiled, seconds = compile_or_read(lowered, str(topology), folder)
    except TooLargeError as error:
        return Estimate(**common, peak=error.needed)
    flops, model_flops = (count / mesh.size for count in arithmetic(program, traced.jaxpr.jaxpr))
    text = ProgramText(compiled.text, program.trips)
    communication = communications(text, mesh)
    return Estimate(
        **common,
        peak=compiled.peak,
        arguments=compiled.arguments,
        temporaries=compiled.temporaries,
        flops=flops,
        model_flops=model_flops,
        bytes_accessed=text.bytes_accessed,
        on_chip=ProgramText(compiled.text, program.trips, on_chip=True).bytes_accessed,
        communication=communication,
        consumers=tuple(text.consumers.items())[:CONSUMERS],
        roofline=Roofline.of(topology, flops, text.bytes_accessed, sum(one.sent for one in communication)),
        compile_seconds=seconds,
    )


def communications(text: ProgramText, mesh: Mesh) -> tuple[Communication, ...]:
    """Return the collectives of a program by kind and mesh axes, the largest first."""
    found: dict[tuple[str, tuple[str, ...]], Communication] = {}
    for one in text.collectives:
        key = (one.kind, axes_of(one.groups, mesh.devices.shape, mesh.axis_names))
        before = found.get(key, Communication(*key, 0, 0.0, 0.0))
        size = before.size + one.times * one.size
        found[key] = Communication(*key, before.times + one.times, size, before.sent + one.sent)
    return tuple(sorted(found.values(), key=lambda one: -one.sent))


def arithmetic(program: Program, jaxpr: Any) -> tuple[float, float]:
    """Operations of a traced program, and those of its model, on all devices; a step has three times the model's."""
    with traced_for(program.mesh):
        forward = matrix_flops(jax.make_jaxpr(program.model)(*program.arguments).jaxpr, program.trips)
    flops = matrix_flops(jaxpr, program.trips)
    return flops, min(program.passes * forward, flops)
