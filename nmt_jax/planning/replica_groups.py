"""The groups of devices of a collective, in the three forms in which XLA prints them, and the mesh axes they run over.

{{0,1},{2,3}} lists them. [2,4]<=[4,2]T(1,0) numbers the devices in a grid 4 x 2, transposes it, and cuts it into 2 rows
of 4. mesh['a'=4,'b'=2] {'b'} is a grid in which the devices of a group differ in the named axes; 'b':(1)2 is a part of
an axis: the factor of size 2 that follows one of size 1.
"""

import functools
import itertools
import math
import re
from collections.abc import Sequence

import numpy as np

Groups = tuple[tuple[int, ...], ...]


@functools.lru_cache(maxsize=10_000)
def groups_of(attributes: str) -> Groups:
    """Return the groups that the attributes of an instruction name; () if there are none."""
    if found := re.search(r"source_target_pairs=\{(.*?)\}\}", attributes):
        return _joined(found[1] + "}")
    text = attributes.partition("replica_groups=")[2]
    if found := re.match(r"\[([\d,]+)\]<=(\[[\d,]+\](?:T\([\d,]+\))?)", text):
        return _rows(_grid(found[2]).reshape(_numbers(found[1])))
    if found := re.match(
        r"mesh\[([^\]]*)\](?:, *device_ids=\(?(\[[\d,]+\]<=)?(\[[\d,]+\](?:T\([\d,]+\))?)\)?)? *\{([^}]*)\}", text
    ):
        return _over_axes(found[1], found[3], found[4])
    if found := re.match(r"\{(\{[\d,{} ]*\})\}", text):
        return tuple(tuple(_numbers(group)) for group in re.findall(r"\{([\d, ]*)\}", found[1]))
    return ()


def axes_of(groups: Groups, shape: Sequence[int], names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the mesh axes in which the devices of a group differ; devices are numbered in a grid."""
    places = np.stack(np.unravel_index(np.array(groups[0]), tuple(shape)))
    return tuple(name for name, place in zip(names, places, strict=True) if len(set(place.tolist())) > 1)


def _over_axes(sizes: str, devices: str | None, chosen: str) -> Groups:
    """Groups over some axes of a mesh, or over parts of axes."""
    axes = {name: int(size) for name, size in re.findall(r"'([^']*)'=(\d+)", sizes)}
    split: list[tuple[str, int, int]] = []  # name, factor before, size
    for name, size in axes.items():
        cuts = {1, size}
        for before, part in re.findall(rf"'{re.escape(name)}':\((\d+)\)(\d+)", chosen):
            cuts |= {int(before), int(before) * int(part)}
        ordered = sorted(cuts)
        split += [(name, low, high // low) for low, high in itertools.pairwise(ordered)] or [(name, 1, 1)]
    wanted = []
    for name, before, part in re.findall(r"'([^']*)'(?::\((\d+)\)(\d+))?", chosen):
        low, high = (int(before), int(before) * int(part)) if part else (1, axes[name])
        wanted += [
            n for n, (axis, start, size) in enumerate(split) if axis == name and low <= start and start * size <= high
        ]
    grid = _grid(devices or f"[{math.prod(axes.values())}]").reshape([size for _, _, size in split])
    others = [axis for axis in range(len(split)) if axis not in wanted]
    count = math.prod(split[axis][2] for axis in wanted)
    return _rows(grid.transpose([*others, *wanted]).reshape(-1, count))


def _grid(text: str) -> np.ndarray:
    """The devices of [4,2]T(1,0), or of [8], in order."""
    sizes, _, order = text.partition("T")
    grid = np.arange(math.prod(_numbers(sizes))).reshape(_numbers(sizes))
    return grid.transpose(_numbers(order)) if order else grid


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def _rows(grid: np.ndarray) -> Groups:
    return tuple(tuple(row) for row in grid.tolist())


def _joined(pairs: str) -> Groups:
    """The devices that pairs (source, target) connect."""
    groups: list[set[int]] = []
    for pair in re.findall(r"\{(\d+),(\d+)", pairs):
        ends = {int(end) for end in pair}
        touching = [group for group in groups if group & ends]
        groups = [group for group in groups if not group & ends] + [ends.union(*touching)]
    return tuple(tuple(sorted(group)) for group in groups)
