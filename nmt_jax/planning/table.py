"""Plans as text: a Markdown table for each topology, or JSON."""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from nmt_jax.planning.accelerators import Topology
from nmt_jax.planning.estimate import Estimate
from nmt_jax.planning.planner import Plan

HEADER = (
    *(
        "program",
        "batch",
        "devices",
        "arguments GB",
        "temporaries GB",
        "peak GB",
        "fits",
        "TFLOP",
        "memory GB",
        "network GB",
    ),
    *("arithmetic ms", "memory ms", "network ms", "bound by", "tokens/s at most", "MFU at most"),
)


def as_text(plans: Sequence[Plan]) -> str:
    """Return a section with a table for each plan."""
    return "\n\n".join(_section(plan) for plan in plans)


def as_json(plans: Sequence[Plan]) -> str:
    """Return all values of the plans."""
    return json.dumps([_values(plan) for plan in plans], indent=2)


def row(estimate: Estimate, name: str) -> list[str]:
    """Return the cells of an estimate, as in HEADER."""
    shape = "x".join(map(str, estimate.shape))
    if estimate.roofline is None:
        return [name, shape, str(estimate.devices), "", "", _gigabytes(estimate.peak), _fits(estimate)] + [""] * 9
    times = [f"{1000 * seconds:.3g}" for seconds in estimate.roofline]
    amounts = [f"{estimate.flops / 1e12:.3g}", _gigabytes(estimate.bytes_accessed), _gigabytes(estimate.bytes_sent)]
    memory = [_gigabytes(size) for size in (estimate.arguments, estimate.temporaries, estimate.peak)]
    speed = [f"{estimate.tokens_per_second:,.0f}", f"{estimate.utilization:.0%}"]
    return [name, shape, str(estimate.devices), *memory, _fits(estimate), *amounts, *times, estimate.bound, *speed]


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with aligned columns."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, ["-" * width for width in widths], *rows]
    padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in padded)


def _section(plan: Plan) -> str:
    named = [(estimate, estimate.program) for estimate in plan.estimates]
    named += [(option.estimate, _settings(option.changes)) for option in plan.options]
    blocks = [
        f"{plan.topology}: {_peaks(plan.topology)}",
        f"{plan.num_parameters:,} parameters; batch shapes: {plan.origin}; all values are per device but tokens/s",
        markdown(HEADER, [row(*one) for one in named]),
        *(f"{key} runs on the host: the training step is planned without it" for key in plan.omitted),
    ]
    for estimate in plan.estimates:
        if estimate.roofline:
            title = f"{estimate.program} {'x'.join(map(str, estimate.shape))}"
            blocks.append("\n".join([f"{title} sends {_sent(estimate)}", f"{title} accesses {_accessed(estimate)}"]))
    return "\n\n".join(blocks)


def _peaks(topology: Topology) -> str:
    device, count = topology.accelerator, topology.num_devices
    memory = f"{device.memory / 1e9:.0f} GB at {device.bandwidth / 1e9:.0f} GB/s"
    peaks = f"{device.flops / 1e12:.0f} TFLOP/s in bfloat16, {memory}"
    network = f", network {topology.network / 1e9:.0f} GB/s" if count > 1 else ""
    return f"{count} device{'s' * (count > 1)}, each {peaks}{network}"


def _settings(changes: dict[str, str]) -> str:
    return "with " + ", ".join(f"{name}={value}" for name, value in changes.items())


def _sent(estimate: Estimate) -> str:
    parts = [
        f"{_gigabytes(one.sent)} GB in {one.times} {one.kind} over {' and '.join(one.axes) or 'no axis'}"
        for one in estimate.communication
    ]
    return "; ".join(parts) or "nothing"


def _accessed(estimate: Estimate) -> str:
    parts = [f"{_gigabytes(size)} GB {name}" for name, size in estimate.consumers]
    whole = f"{_gigabytes(estimate.bytes_accessed)} GB of device memory"
    if estimate.on_chip > estimate.bytes_accessed:
        whole += f" ({_gigabytes(estimate.on_chip)} GB with on-chip memory)"
    return f"{whole}, most by: {'; '.join(parts)}"


def _fits(estimate: Estimate) -> str:
    if estimate.peak == math.inf:
        return "no"
    difference = _gigabytes(abs(estimate.limit - estimate.peak))
    return f"yes, {difference} GB left" if estimate.fits else f"no, {difference} GB too much"


def _gigabytes(count: float) -> str:
    return f"{count / 1e9:.3g}"


def _values(plan: Plan) -> dict[str, Any]:
    device = plan.topology.accelerator
    peaks = {"flops": device.flops, "bandwidth": device.bandwidth, "memory": device.memory}
    return {
        "topology": str(plan.topology),
        "devices": plan.topology.num_devices,
        "peaks": {**peaks, "network": plan.topology.network},
        "parameters": plan.num_parameters,
        "batch_shapes": plan.origin,
        "omitted": list(plan.omitted),
        "programs": [estimate.as_dict() for estimate in plan.estimates],
        "options": [{"settings": one.changes, **one.estimate.as_dict()} for one in plan.options],
        "excess": None if plan.excess == math.inf else plan.excess,
    }


WRITERS: dict[str, Callable[[Sequence[Plan]], str]] = {"text": as_text, "json": as_json}
