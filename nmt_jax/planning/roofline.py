"""The time that a program needs at least: by arithmetic, by memory and by network (Williams et al., 2009)."""

from typing import NamedTuple

from nmt_jax.planning.accelerators import Topology


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
