"""The time that a program needs at least: by arithmetic, by memory and by network (Williams et al., 2009)."""

from typing import Any, NamedTuple

from nmt_jax.planning.accelerators import Topology
from nmt_jax.planning.arithmetic import matrix_flops
from nmt_jax.planning.program_text import ProgramText


class Roofline(NamedTuple):
    """Seconds that each device needs at the peaks, if nothing but one of the three were needed."""

    arithmetic: float
    memory: float
    network: float

    @classmethod
    def of(cls, topology: Topology, flops: float, bytes_accessed: float, bytes_sent: float) -> "Roofline":
        """The bounds of a program that needs this much of each device."""
        device = topology.accelerator
        network = bytes_sent / topology.network if bytes_sent else 0.0
        return cls(flops / device.flops, bytes_accessed / device.bandwidth, network)

    @property
    def binds(self) -> str:
        """Which of the three takes longest."""
        return max(self._fields, key=lambda name: getattr(self, name))

    @property
    def seconds(self) -> float:
        """The least time: the three overlap."""
        return max(self)


def bounds(topology: Topology, jaxpr: Any, text: str, tokens: int) -> str:
    """Return the roofline of a training step as one line.

    jaxpr, text: the step as traced and as compiled. tokens: of its batch.
    """
    program = ProgramText(text)
    sent = sum(collective.sent for collective in program.collectives)
    found = Roofline.of(topology, matrix_flops(jaxpr) / topology.num_devices, program.bytes_accessed, sent)
    times = ", ".join(f"{name} {1000 * seconds:.3g} ms" for name, seconds in found._asdict().items())
    return f"roofline of {topology}: {times}; at most {tokens / found.seconds:,.0f} tokens/s, bound by {found.binds}"
