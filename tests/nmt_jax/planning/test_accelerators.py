"""Topologies by name, and what the compilers need to know of them."""

import itertools
import types

import jax
import jax.numpy as jnp
import pytest

from nmt_jax.errors import UserError
from nmt_jax.planning.accelerators import ACCELERATORS, Topology, listing, topology_of
from nmt_jax.planning.roofline import Roofline, bounds


@pytest.mark.parametrize("name", ACCELERATORS)
def test_listed_sizes_are_topologies(name):
    for size in ACCELERATORS[name].sizes:
        assert str(Topology.parse(f"{name}:{size}")) == f"{name}:{size}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("v7e:2x2", "no accelerator 'v7e'; did you mean v6e"),
        ("H10:8", "did you mean h100"),
        ("v5e:4", "write v5e:SIZE with a size such as 2x2"),
        ("v5e", "write v5e:SIZE"),
        ("h100:2x2", "write h100:SIZE"),
        ("h100:0", "write h100:SIZE"),
        ("h100:12", "several machines have 8 devices each"),
    ],
)
def test_unknown_topologies(text, message):
    with pytest.raises(UserError, match=message):
        Topology.parse(text)


def test_network():
    assert Topology.parse("v5e:1x1").network == 0
    assert Topology.parse("v5e:2x2").network == 2 * 50e9  # a link along each axis
    assert Topology.parse("v5e:16x16").network == 4 * 50e9  # rings
    assert Topology.parse("v5p:4x4x4").network == 6 * 100e9
    assert Topology.parse("h100:8").network == 450e9
    assert Topology.parse("h100:16").network == 8 * 50e9
    assert Topology.parse("h100:16", {"network": 7e9}).network == 7e9


def test_given_peaks():
    device = Topology.parse("h100:8", {"flops": 5e14, "memory": 94e9}).accelerator
    assert (device.flops, device.memory, device.bandwidth) == (5e14, 94e9, ACCELERATORS["h100"].bandwidth)


def test_roofline():
    topology = Topology.parse("v5e:2x2", {"flops": 100.0, "bandwidth": 10.0, "network": 1.0})
    assert Roofline.of(topology, 1000, 20, 3) == (10, 2, 3)
    assert Roofline.of(topology, 1000, 20, 3).binds == "arithmetic"
    assert Roofline.of(topology, 100, 200, 3).binds == "memory"
    assert Roofline.of(topology, 100, 20, 30).seconds == 30
    assert Roofline.of(Topology.parse("v5e:1x1"), 1, 1, 0).network == 0


def tpus(kind, *sizes):
    """Devices as JAX shows them on a TPU."""
    return [types.SimpleNamespace(device_kind=kind, coords=place) for place in itertools.product(*map(range, sizes))]


@pytest.mark.parametrize(
    ("devices", "topology"),
    [
        (tpus("TPU v5 lite", 4, 2, 1), "v5e:4x2"),
        (tpus("TPU v5", 2, 2, 2), "v5p:2x2x2"),
        ([types.SimpleNamespace(device_kind="NVIDIA H100 80GB HBM3")] * 8, "h100:8"),
        ([types.SimpleNamespace(device_kind="NVIDIA A100-SXM4-80GB")], "a100:1"),
    ],
)
def test_devices_that_are_there(devices, topology):
    assert str(topology_of(devices)) == topology


def test_other_devices_have_no_roofline():
    assert topology_of(jax.devices()) is None


def test_roofline_of_a_training_step():
    def step(x):
        return jnp.tanh(x @ x)

    x, topology = jnp.ones((64, 64)), Topology.parse("h100:1", {"flops": 2 * 64**3 * 100})
    traced = jax.jit(step).trace(x)
    line = bounds(topology, traced.jaxpr.jaxpr, traced.lower().compile().as_text(), tokens=64)
    assert line.startswith("roofline of h100:1: arithmetic 10 ms, memory ")
    assert line.endswith("at most 6,400 tokens/s, bound by arithmetic")


def test_listing():
    lines = [*listing()]
    assert [line.split()[0] for line in lines[1:]] == [*ACCELERATORS]
