"""Weak scaling on paper: the training step of Transformer big, compiled for more and more TPUs, with and without FSDP.

    python -m benchmarks.weak_scaling --output=docs/pictures/weak_scaling.png [--topology=v5e:2x2 ...]

Every device has the same share of the batch, so that arithmetic and memory per device stay the same, and what grows is
the network. Needs the compilers of the extra `plan`; compiled programs are kept on disk, so the command can be stopped
and continued. One JSON line per topology and mesh, then the picture: bytes sent per device and step, and the times of
the roofline.
"""

import argparse
import json
import pathlib
import subprocess
from typing import Any

from benchmarks import measure
from benchmarks.plan_pages import plan_command
from nmt_jax.planning.accelerators import Topology

TOPOLOGIES = ("v5e:2x2", "v5e:4x4", "v5e:8x8", "v5e:16x16")
MESHES = {"data parallelism": "false", "FSDP": "true"}
LENGTH = 64  # tokens of a source, and of a target
TIMES = ("arithmetic", "memory", "network")


def planned(topology: str, fsdp: str, options: argparse.Namespace) -> dict[str, Any]:
    """The plan of the training step, of `nmt-jax plan --format=json`."""
    rows = options.rows * Topology.parse(topology).num_devices
    changes = {"model.dtype": "bfloat16", "mesh.fsdp": fsdp}
    command = [*plan_command(options.config, topology, changes), f"--batch={rows}x{LENGTH}x{LENGTH}"]
    finished = subprocess.run(command, cwd=measure.ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(finished.stdout)[0]["programs"][0]


def drawn(plans: dict[str, list[dict[str, Any]]], topologies: list[str]) -> Any:
    """Return the figure: bytes over the network, and the three times of each mesh, over the number of devices."""
    from nmt_jax.reporting.plots.style import SYSTEMS, new_figure

    figure = new_figure(10.0, 3.6, layout="constrained")
    sent, *meshes = figure.subplots(1, 1 + len(plans))
    devices = [Topology.parse(topology).num_devices for topology in topologies]
    for (name, steps), color in zip(plans.items(), SYSTEMS, strict=False):
        sent.plot(devices, [step["bytes_sent"] / 1e9 for step in steps], "o-", color=color, label=name)
    sent.set_title("GB sent per device and step")
    highest = max(step["roofline"][time] for steps in plans.values() for step in steps for time in TIMES)
    for panel, (name, steps) in zip(meshes, plans.items(), strict=True):
        for time, color in zip(TIMES, SYSTEMS[2:], strict=False):
            panel.plot(devices, [1000 * step["roofline"][time] for step in steps], "o-", color=color, label=time)
        panel.set_title(f"{name}: ms per step, at least")
        panel.set_ylim(0, 1100 * highest)
    for panel in (sent, *meshes):
        panel.set_xscale("log", base=2)
        panel.set_xticks(devices, [str(count) for count in devices])
        panel.set_xlabel("devices")
    sent.set_ylim(bottom=0)
    sent.legend(frameon=False)
    figure.legend(*meshes[-1].get_legend_handles_labels(), frameon=False, loc="outside right center")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=pathlib.Path, required=True, help="Picture.")
    parser.add_argument("--topology", action="append", help=f"Default: {', '.join(TOPOLOGIES)}.")
    parser.add_argument("--config", default="configs/transformer.py:size=big")
    parser.add_argument("--rows", type=int, default=128, help="Pairs per device.")
    options = parser.parse_args()

    from nmt_jax.reporting.plots.style import check_output, drawing, save

    output = check_output(options.output)
    topologies = options.topology or list(TOPOLOGIES)
    plans: dict[str, list[dict[str, Any]]] = {name: [] for name in MESHES}
    for topology in topologies:
        for name, fsdp in MESHES.items():
            step = planned(topology, fsdp, options)
            plans[name].append(step)
            collectives = [
                f"{one['times']} {one['kind']} over {', '.join(one['axes'])}" for one in step["communication"]
            ]
            milliseconds = {f"{time}_ms": 1000 * step["roofline"][time] for time in TIMES}
            measure.report(
                benchmark="weak_scaling",
                topology=topology,
                mesh=name,
                sent_gb=step["bytes_sent"] / 1e9,
                collectives=collectives,
                **milliseconds,
                bound=step["bound"],
                peak_gb=step["peak"] / 1e9,
                utilization=step["utilization"],
            )
    with drawing():
        save(drawn(plans, topologies), output)


if __name__ == "__main__":
    main()
