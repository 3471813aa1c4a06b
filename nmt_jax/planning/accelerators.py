"""Accelerators by name: the peaks of one device, and the topologies that programs can be compiled for.

Peaks are those of the vendors' documents, read on 2026-11-23: cloud.google.com/tpu/docs (v4, v5e, v5p, v6e: peak
compute, HBM and inter-chip interconnect per chip), and the data sheets of NVIDIA A100, H100 and H200 (SXM) and of their
DGX systems, which have one network card per device.
"""

import contextlib
import dataclasses
import difflib
import importlib.util
import math
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from nmt_jax.errors import UserError

EXTRA = "pip install 'nmt-jax[plan]'"
# For accelerators that are not there: no queries of the cloud's metadata, and no lock against other processes.
ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_STDERR_LOG_LEVEL": "3",
    "TPU_MIN_LOG_LEVEL": "3",
    "TF_CPP_MIN_LOG_LEVEL": "3",  # XLA warns of programs that do not fit; the plan says so
}
PER_MACHINE = 8  # GPUs that NVLink connects


@dataclasses.dataclass(frozen=True)
class Accelerator:
    """The peaks of one device.

    backend: the name of JAX. flops: per second, of bfloat16 matrix products. bandwidth: of its memory, in bytes/s.
    memory: in bytes. link: bytes/s in each direction of one ICI link, or of all NVLink links. card: of the network
    between machines. ring: length of a TPU axis from which on its ends are connected. sizes: common topologies.
    """

    backend: str
    flops: float
    bandwidth: float
    memory: float
    link: float
    sizes: tuple[str, ...]
    card: float = math.inf
    ring: int = 0


_SQUARES = ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_CUBES = ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8")
_GPUS = ("1", "2", "4", "8", "16", "32", "64")
ACCELERATORS = {
    "v4": Accelerator("tpu", 275e12, 1228e9, 32e9, 50e9, _CUBES, ring=4),
    "v5e": Accelerator("tpu", 197e12, 819e9, 16e9, 50e9, _SQUARES, ring=16),
    "v5p": Accelerator("tpu", 459e12, 2765e9, 95e9, 100e9, _CUBES, ring=4),
    "v6e": Accelerator("tpu", 918e12, 1640e9, 32e9, 112e9, _SQUARES, ring=16),
    "a100": Accelerator("gpu", 312e12, 2039e9, 80e9, 300e9, _GPUS, card=25e9),
    "h100": Accelerator("gpu", 989e12, 3352e9, 80e9, 450e9, _GPUS, card=50e9),
    "h200": Accelerator("gpu", 989e12, 4800e9, 141e9, 450e9, _GPUS, card=50e9),
}
KINDS = {  # as devices name themselves
    **{"TPU v4": "v4", "TPU v5 lite": "v5e", "TPU v5e": "v5e", "TPU v5": "v5p", "TPU v5p": "v5p"},
    **{"TPU v6 lite": "v6e", "TPU v6e": "v6e"},
}
# What XLA's compiler for CUDA has to know of a device, as a GpuTargetConfigProto; cores, clock in GHz, L2 cache and
# memory in bytes, bandwidth in bytes/s, and the compute capability differ.
_CUDA = {
    "a100": (108, 1.41, 41943040, 85899345920, 2039000000000, 8, 166912),
    "h100": (132, 1.98, 52428800, 84942979072, 3352320000000, 9, 232448),
    "h200": (132, 1.98, 62914560, 150754820096, 4800000000000, 9, 232448),
}
_CUDA_TARGET = """
gpu_device_info {{ threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: {cores} fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535 memory_bandwidth: {bandwidth}
  l2_cache_size: {cache} clock_rate_ghz: {clock} device_memory_size: {memory} shared_memory_per_block_optin: {shared}
  cuda_compute_capability {{ major: {major} }} registers_per_core_limit: 65536 registers_per_block_limit: 65536 }}
platform_name: "CUDA" dnn_version_info {{ major: 9 minor: 8 }} runtime_version {{ major: 13 }}
device_description_str: "{name}"
"""


@dataclasses.dataclass(frozen=True)
class Topology:
    """Connected devices of one kind, such as v5e:4x4 or h100:8. changes: fields of `Accelerator` that differ."""

    name: str
    shape: tuple[int, ...]
    changes: tuple[tuple[str, float], ...] = ()

    @classmethod
    def parse(cls, text: str, changes: dict[str, float] | None = None) -> "Topology":
        """Read NAME:SHAPE, as in v5e:4x4. Raises UserError for an unknown name or another number of axes."""
        name, _, size = text.lower().partition(":")
        if name not in ACCELERATORS:
            nearest = difflib.get_close_matches(name, ACCELERATORS, n=1, cutoff=0)[0]
            known = ", ".join(ACCELERATORS)
            raise UserError(f"--topology={text}: no accelerator {name!r}; did you mean {nearest}? Known are {known}")
        sizes = ACCELERATORS[name].sizes
        if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", size) or size.count("x") != sizes[0].count("x"):
            raise UserError(f"--topology={text}: write {name}:SIZE with a size such as {', '.join(sizes[1:5])}")
        topology = cls(name, tuple(map(int, size.split("x"))), tuple((changes or {}).items()))
        if ACCELERATORS[name].backend == "gpu" and topology.num_devices % min(PER_MACHINE, topology.num_devices):
            raise UserError(
                f"--topology={text}: several machines have {PER_MACHINE} devices each; use a multiple of it"
            )
        return topology

    @property
    def accelerator(self) -> Accelerator:
        """The peaks of one device."""
        changes: dict[str, Any] = {name: value for name, value in self.changes if name != "network"}
        return dataclasses.replace(ACCELERATORS[self.name], **changes)

    @property
    def num_devices(self) -> int:
        """The number of devices."""
        return math.prod(self.shape)

    @property
    def machine(self) -> "Topology":
        """The part of it that one process has, which evaluates and translates: two devices along two axes of a TPU."""
        most = (2, 2, 1) if self.accelerator.backend == "tpu" else (PER_MACHINE,)
        return dataclasses.replace(self, shape=tuple(map(min, self.shape, most)))

    @property
    def single(self) -> "Topology":
        """One device of it."""
        return dataclasses.replace(self, shape=(1,) * len(self.shape))

    @property
    def network(self) -> float:
        """Bytes/s that each device sends to the others over all links that the topology uses, in one direction.

        TPUs have a link along each axis of more than one device, and two along an axis that is a ring. Beyond one
        machine, collectives of GPUs send an eighth of their bytes over the network cards.
        """
        given, device = dict(self.changes).get("network"), self.accelerator
        if given:
            return given
        if device.backend == "tpu":
            return device.link * sum((size > 1) + (size >= device.ring) for size in self.shape)
        return device.link if self.num_devices <= PER_MACHINE else min(device.link, PER_MACHINE * device.card)

    def __str__(self) -> str:
        return f"{self.name}:{'x'.join(map(str, self.shape))}"

    def devices(self) -> list[Any]:
        """Devices that programs can be compiled for, though none is there.

        Raises UserError if the compiler is not installed, or does not know the topology.
        """
        backend = self.accelerator.backend
        module = {"tpu": "libtpu", "gpu": "jax_plugins.xla_cuda13"}[backend]
        if not _installed(module):
            raise UserError(f"--topology={self}: the compiler for it is not installed; {EXTRA}")
        from jax.experimental import topologies

        options: dict[str, Any] = {}
        if backend == "gpu":
            machines = -(-self.num_devices // PER_MACHINE)
            options = {
                "target_config": _cuda_target(self.name),
                "topology": f"1x{machines}x{self.num_devices // machines}",
            }
        elif self.num_devices == 1:
            options = {"chips_per_host_bounds": (1, 1, 1)}
        if self.name == "v4":
            options["chip_config_name"] = "megacore"  # one device per chip, as on Cloud TPUs
        names = {"tpu": ("tpu", str(self)), "gpu": ("cuda", self.name)}
        platform, name = names[backend]
        try:
            return list(topologies.get_topology_desc(platform=platform, topology_name=name, **options).devices)
        except Exception as error:  # plugins raise many types
            sizes, reason = ", ".join(ACCELERATORS[self.name].sizes), " ".join(str(error).split())[:160]
            raise UserError(f"--topology={self}: the compiler rejects it ({reason}); use one of {sizes}") from error


def prepare_environment() -> None:
    """Set what the compilers need, before JAX is imported: JAX itself runs on the CPU."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)


def topology_of(devices: Sequence[Any]) -> Topology | None:
    """Return the topology of devices that are there; None if their kind is not known."""
    kind = devices[0].device_kind
    name = KINDS.get(kind) or next((name for name in ACCELERATORS if name.upper() in re.split(r"[ -]", kind)), None)
    if name is None:
        return None
    if ACCELERATORS[name].backend == "gpu":
        return Topology(name, (len(devices),))
    spans = [1 + max(axis) - min(axis) for axis in zip(*(device.coords for device in devices), strict=True)]
    return Topology(name, tuple(spans[: 1 + ACCELERATORS[name].sizes[0].count("x")]))


def listing() -> Iterator[str]:
    """Yield a line for each accelerator, with its peaks and common sizes."""
    yield f"{'name':<6}{'TFLOP/s':>8}{'GB/s':>7}{'GB':>5}{'network GB/s':>14}  sizes"
    for name, device in ACCELERATORS.items():
        links = f"{device.link / 1e9:.0f} per link" if device.backend == "tpu" else f"{device.link / 1e9:.0f}"
        numbers = f"{device.flops / 1e12:>8.0f}{device.bandwidth / 1e9:>7.0f}{device.memory / 1e9:>5.0f}{links:>14}"
        yield f"{name:<6}{numbers}  {' '.join(device.sizes)}"


def _installed(module: str) -> bool:
    with contextlib.suppress(ModuleNotFoundError):  # of the package that contains the module
        return importlib.util.find_spec(module) is not None
    return False


def _cuda_target(name: str) -> str:
    cores, clock, cache, memory, bandwidth, major, shared = _CUDA[name]
    values: dict[str, Any] = {"cores": cores, "clock": clock, "cache": cache, "memory": memory}
    return _CUDA_TARGET.format(**values, bandwidth=bandwidth, major=major, shared=shared, name=name.upper())
