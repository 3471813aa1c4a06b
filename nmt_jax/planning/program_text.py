"""What the text of a compiled program tells: the bytes that its operations move, and the communication of its devices.

Bytes are those of device memory. An array in on-chip memory (a TPU layout with S(1)) costs nothing by itself; the copy
that brings it there reads device memory once. On TPUs, arrays are padded to the tiles of their layout. What is inside a
fused operation stays in registers. The body of a loop counts as often as the loop runs.
"""

import collections
import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nmt_jax.planning.replica_groups import groups_of

BYTES = {
    **{"pred": 1, "s8": 1, "u8": 1, "f8e4m3fn": 1, "f8e5m2": 1, "s16": 2, "u16": 2, "f16": 2, "bf16": 2},
    **{"s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8, "c64": 8, "c128": 16, "s4": 0.5, "u4": 0.5},
}
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all", "collective-permute")
# Operations that name values or rearrange names, but move no bytes.
FREE = {
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id", "replica-id"),
    *("opt-barrier", "iota", "add-dependency", "domain"),
}
# Targets of custom calls that compute nothing.
NAMING = ("AllocateBuffer", "ConcatBitcast", "Assume", "AsyncCollective")
STARTING = '"AsyncCollectiveStart"'
REDUCE_SCATTER = "all-reduce-scatter"  # of TPUs: a fused all-reduce of which every device keeps its part
COPIES = {"copy-start", "copy", "slice-start"}
SLICES = ("dynamic-slice", "slice", "gather")
_SHAPE = re.compile(r"(\w+)\[([\d,]*)\](?:\{([\d,]*)(?::((?:T\([\d,*]+\))?)[^}]*?(?:S\((\d+)\))?\})?)?")
_INSTRUCTION = re.compile(r"^\s*(ROOT )?%?([\w.\-]+) = (.+)$")
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) (?:\(.*\) -> .*)?\{$")
_CALLED = re.compile(r"(?:calls|to_apply|body|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_ORIGIN = re.compile(r'op_name="([^"]*)"')
_NOISE = re.compile(r"jit\(|jvp\(|transpose\(|while$|body$|closed_call$|checkpoint|rematted|custom_|.*\._")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')


class Array(NamedTuple):
    """The bytes of an array with the padding of its layout, and whether it is in device memory."""

    size: float
    in_memory: bool


class Collective(NamedTuple):
    """Communication between devices.

    size: bytes of the result on each device. groups: the devices that communicate with one another, by number. times:
    how often it runs.
    """

    kind: str
    size: float
    groups: tuple[tuple[int, ...], ...]
    times: int

    @property
    def sent(self) -> float:
        """Bytes that a device sends in all, by the algorithms that send the least (Thakur et al., 2005)."""
        count = len(self.groups[0])
        share = (count - 1) / count
        factors = {"all-reduce": 2 * share, "all-gather": share, "reduce-scatter": count * share, "all-to-all": share}
        return factors.get(self.kind, 1.0) * self.size * self.times


@dataclasses.dataclass(slots=True)
class Instruction:
    """A line of a computation; attributes: the rest of the line, of a parameter its number, of a constant its value.

    origin: the operation of the model that it belongs to.
    """

    name: str
    operation: str
    arrays: list[Array]
    operands: list[str]
    attributes: str
    is_root: bool
    origin: str

    @property
    def size(self) -> float:
        """Bytes of the result, wherever it is."""
        return sum(array.size for array in self.arrays)

    @property
    def memory(self) -> float:
        """Bytes of the result in device memory."""
        return sum(array.size for array in self.arrays if array.in_memory)


Computation = dict[str, Instruction]


class ProgramText:
    """A compiled program as XLA prints it.

    trips: how often a loop runs whose length XLA does not know. on_chip: count accesses to on-chip memory as well.
    """

    def __init__(self, text: str, trips: int = 1, on_chip: bool = False):
        self.trips = trips
        spaces = (None, "0", "1") if on_chip else (None, "0")
        self.computations: dict[str, Computation] = {}
        self.entry = ""
        current: Computation = {}
        for line in text.splitlines():
            if line.endswith("{") and (found := _COMPUTATION.match(line)):
                current = self.computations.setdefault(found[2], {})
                self.entry = found[2] if found[1] else self.entry
            elif (instruction := _read(line, spaces)) is not None:
                current[instruction.name] = instruction

    # Communication

    @functools.cached_property
    def collectives(self) -> list[Collective]:
        """All communication of one run; equal ones are added."""
        found: dict[tuple[str, float, tuple[tuple[int, ...], ...]], int] = {}
        for collective, _, _ in self._communication:
            key = collective[:3]
            found[key] = found.get(key, 0) + collective.times
        return [Collective(*key, times) for key, times in found.items()]

    @functools.cached_property
    def _communication(self) -> list[tuple[Collective, str, float]]:
        """Each collective with its name and the bytes of device memory that it reads and writes in all.

        TPUs hide a collective behind several fused operations, each of which contains it, perhaps in a loop; they share
        its channel, and the first one starts it.
        """
        started = {
            channel
            for computation in self.computations.values()
            if any(STARTING in one.attributes for one in computation.values())
            for channel in map(_channel, computation.values())
        }
        found: dict[tuple[str, str], tuple[Collective, str, float]] = {}
        for name, instruction, times in self._placed(self.entry, 1):
            inside = _called(instruction) if instruction.operation == "fusion" else []
            known = self.computations[name]
            for computation in [known, *self._nested(inside)]:
                members = computation.values() if computation is not known else [instruction]
                for one in members:
                    kind = one.operation.removesuffix("-start")
                    if kind not in COLLECTIVES:
                        continue
                    groups = groups_of(one.attributes)
                    if not groups or len(groups[0]) < 2:
                        continue
                    channel = _channel(one)
                    if channel in started and not any(STARTING in other.attributes for other in computation.values()):
                        continue
                    whole, around = one, computation
                    if _is_reduce_scatter(instruction):  # all of the fusion; several of them may share a channel
                        kind, channel, whole, around = "reduce-scatter", instruction.name, instruction, known
                    operands = [around[operand] for operand in whole.operands if operand in around]
                    size, memory = self._communicated(kind, whole, operands)
                    communicated = Collective(kind, size, groups, times), one.name, times * memory
                    found.setdefault((name, channel), communicated)
        return list(found.values())

    def _nested(self, names: Sequence[str]) -> Iterator[Computation]:
        """Computations and the fused ones within them."""
        for name in names:
            inner = self.computations.get(name, {})
            yield inner
            for instruction in inner.values():
                if instruction.operation == "fusion":
                    yield from self._nested(_called(instruction))

    def _communicated(self, kind: str, one: Instruction, operands: list[Instruction]) -> tuple[float, float]:
        """Bytes of the result, and bytes of device memory that are read and written."""
        given, read = sum(operand.size for operand in operands), sum(operand.memory for operand in operands)
        size, written = one.size, one.memory
        if one.operation.endswith("-start") and kind != "all-reduce":  # the result is (operands, results, …)
            size, written = size - given, written - read
        return size, read + written

    # Memory

    @functools.cached_property
    def bytes_accessed(self) -> float:
        """Bytes of device memory that one run reads and writes."""
        return sum(self.consumers.values())

    @functools.cached_property
    def consumers(self) -> dict[str, float]:
        """Bytes by operation of the model, the largest first; layers are added."""
        totals: dict[str, float] = collections.defaultdict(float)
        for computation, instruction, times in self._placed(self.entry, 1):
            totals[self._origin(instruction)] += times * self._accessed(self.computations[computation], instruction)
        for collective, _, size in self._communication:
            totals[collective.kind] += size
        return dict(sorted(((name, size) for name, size in totals.items() if size), key=lambda item: -item[1]))

    def _origin(self, instruction: Instruction) -> str:
        """The operation of the model that an instruction computes; of a fusion without one, that of its parts."""
        if instruction.origin or instruction.operation != "fusion":
            copies = instruction.operation in COPIES
            return instruction.origin or ("copies between memories" if copies else instruction.operation)
        inside = [one.origin for part in self._nested(_called(instruction)) for one in part.values() if one.origin]
        return collections.Counter(inside).most_common(1)[0][0] if inside else "fusion"

    def _placed(self, name: str, times: int) -> Iterator[tuple[str, Instruction, int]]:
        """Every instruction that is executed as such, with its computation and how often it runs."""
        for instruction in self.computations.get(name, {}).values():
            if instruction.operation == "while":
                body = re.search(r"body=%?([\w.\-]+)", instruction.attributes)
                assert body
                yield from self._placed(body[1], times * self._trip_count(instruction))
            elif instruction.operation in ("call", "conditional", "async-start"):
                for called in _called(instruction):
                    yield from self._placed(called, times)
            else:
                yield name, instruction, times

    def _trip_count(self, loop: Instruction) -> int:
        """The known trip count, or the constant that the counter of a scan is compared with."""
        if known := _TRIPS.search(loop.attributes):
            return int(known[1])
        condition = re.search(r"condition=%?([\w.\-]+)", loop.attributes)
        inner = self.computations.get(condition[1], {}) if condition else {}
        last = _root(inner)
        if last and last.operation == "fusion":  # the comparison is fused, with the same operands
            last = _root(next(iter(self._nested(_called(last))), {}))
        constants = [one.attributes for one in inner.values() if one.operation == "constant"]
        if last and last.operation == "compare" and "direction=LT" in last.attributes and len(constants) == 1:
            return int(constants[0])
        return self.trips

    def _accessed(self, known: Computation, instruction: Instruction) -> float:
        """Bytes of device memory that an instruction other than a collective reads and writes."""
        kind = instruction.operation
        if kind in FREE or kind.endswith(("-done", "-update")):
            return 0
        if kind.removesuffix("-start") in COLLECTIVES or _is_reduce_scatter(instruction):
            return 0
        operands = [known[name] for name in instruction.operands if name in known]
        if kind == "fusion":
            return self._accessed_by_fusion(instruction, operands)
        read = [operand.memory for operand in operands]
        if kind == "copy-start":  # the result is (copy, original, context)
            return instruction.arrays[0].size * instruction.arrays[0].in_memory + sum(read)
        if kind.removesuffix("-start") in SLICES:
            arrays = instruction.arrays[len(operands) :] if kind.endswith("-start") else instruction.arrays
            size = sum(array.size * (1 + array.in_memory) for array in arrays[:1])
            return (size if read and read[0] else size / 2) + sum(read[1:])
        if kind == "dynamic-update-slice":
            return 2 * sum(read[1:2])
        if kind == "scatter":  # reads and writes as many places as there are updates
            return 3 * read[-1] + sum(read[1:-1])
        if kind == "custom-call":
            if any(f'"{target}' in instruction.attributes for target in NAMING):
                return 0
            if '"__cu' in instruction.attributes and len(instruction.arrays) > 1:  # the last array is a work space
                return sum(array.size for array in instruction.arrays[:-1]) + sum(read)
        return instruction.memory + sum(read)

    def _accessed_by_fusion(self, instruction: Instruction, operands: list[Instruction]) -> float:
        """What a fusion reads of its operands, and what it writes; passed through or updated in place, it is not."""
        inner = next(iter(self._nested(_called(instruction))), {})
        by_number = {int(one.attributes or 0): one for one in inner.values() if one.operation == "parameter"}
        total = 0.0
        for number, operand in enumerate(operands):
            if operand.memory:
                parameter = by_number.get(number)
                total += min(operand.memory, self._read_of(inner, parameter.name)) if parameter else operand.memory
        root = _root(inner)
        if root is None:
            return total + instruction.memory
        results = [inner[name] for name in root.operands] if root.operation == "tuple" else [root]
        if len(results) != len(instruction.arrays):
            return total + instruction.memory
        return total + sum(
            min(array.size, self._written(inner, result))
            for result, array in zip(results, instruction.arrays, strict=True)
            if array.in_memory
        )

    def _read_of(self, inner: Computation, name: str) -> float:
        """Bytes that a fused computation reads of a value at most; inf: all of it."""
        total = 0.0
        for user in inner.values():
            if name not in user.operands:
                continue
            kind = user.operation
            if kind == "bitcast":
                total += self._read_of(inner, user.name)
            elif kind in SLICES and user.operands[0] == name:
                total += user.size
            elif kind == "fusion":
                nested = next(iter(self._nested(_called(user))), {})
                numbers = {str(number) for number, operand in enumerate(user.operands) if operand == name}
                for one in [one for one in nested.values() if one.operation == "parameter"]:
                    total += self._read_of(nested, one.name) if one.attributes in numbers else 0
            elif kind == "dynamic-update-slice" and user.operands[0] == name:
                continue  # in place
            elif not (kind == "tuple" and user.is_root) and kind not in COLLECTIVES:
                return math.inf
        return total

    def _written(self, inner: Computation, result: Instruction) -> float:
        """Bytes that a result of a fused computation writes at most."""
        while result.operation == "bitcast" and result.operands[0] in inner:
            result = inner[result.operands[0]]
        if result.operation == "parameter" or result.operation in COLLECTIVES:
            return 0
        if result.operation == "dynamic-update-slice" and result.operands[1] in inner:
            return inner[result.operands[1]].size
        if result.operation == "fusion" and len(result.arrays) == 1:
            nested = next(iter(self._nested(_called(result))), {})
            root = _root(nested)
            return self._written(nested, root) if root and root.operation == "dynamic-update-slice" else math.inf
        return math.inf


def _read(line: str, spaces: Sequence[str | None]) -> Instruction | None:
    """The instruction of a line, or None; spaces: the memory spaces that count."""
    found = _INSTRUCTION.match(line)
    if not found:
        return None
    root, name, rest = found.groups()
    shape, rest = _split_shape(rest)
    operation = re.match(r"\s*([\w\-]+)\(", rest)
    if not operation:
        return None
    inside, attributes = _split_parentheses(rest[operation.end() - 1 :])
    if operation[1] in ("parameter", "constant"):
        attributes, inside = inside, ""
    operands = re.findall(r"%([\w.\-]+)", inside)
    arrays = [_array(one, spaces) for one in _SHAPE.finditer(shape)]
    trips, origin = _TRIPS.search(attributes), _ORIGIN.search(attributes)
    attributes = attributes.partition(", metadata=")[0] + (f" {trips[0]}" if trips else "")
    return Instruction(
        name, operation[1], arrays, operands, attributes, bool(root), _simplified(origin[1]) if origin else ""
    )


def _simplified(origin: str) -> str:
    """A path of modules without what JAX adds: layers have no numbers, and the backward pass is a gradient."""
    backward = "transpose(" in origin
    parts = [re.sub(r"_\d+$", "", part) for part in origin.split("/") if not _NOISE.match(part)]
    return ("gradient: " if backward else "") + "/".join(parts[-4:])


def _split_shape(text: str) -> tuple[str, str]:
    """The shape at the beginning, perhaps a tuple of shapes, and the rest."""
    if text.startswith("("):
        return _split_parentheses(text)
    shape, _, rest = text.partition(" ")
    return shape, rest


def _split_parentheses(text: str) -> tuple[str, str]:
    """What the first parentheses hold, and the text after them."""
    depth = 0
    for found in re.finditer(r"[()]", text):
        depth += 1 if found[0] == "(" else -1
        if not depth:
            return text[1 : found.start()], text[found.end() :]
    return text[1:], ""


@functools.lru_cache(maxsize=100_000)
def _padded(sizes: str, order: str, tile: str) -> int:
    """The number of elements of an array, its axes padded to the tile: (8, 128) for the two that vary fastest."""
    shape = [int(size) for size in sizes.split(",") if size]
    if not tile:
        return math.prod(shape)
    by_speed = [shape[int(axis)] for axis in order.split(",") if axis]
    limits = [int(size) for size in reversed(tile[2:-1].split(",")) if size.isdecimal()]
    padded = itertools.zip_longest(by_speed, limits[: max(len(by_speed), 1)], fillvalue=1)
    return math.prod(-(-size // limit) * limit for size, limit in padded)


def _array(shape: re.Match[str], spaces: Sequence[str | None]) -> Array:
    kind, sizes, order, tile, space = shape.groups()
    return Array(BYTES.get(kind, 0) * _padded(sizes, order or "", tile or ""), space in spaces)


def _channel(instruction: Instruction) -> str:
    """What identifies the collective that an instruction is a part of: its channel, or its own name."""
    found = re.search(r"channel_id=(\d+)", instruction.attributes)
    return found[1] if found else instruction.name


def _root(computation: Computation) -> Instruction | None:
    """The instruction whose result is that of the computation."""
    return next((one for one in computation.values() if one.is_root), None)


def _is_reduce_scatter(instruction: Instruction) -> bool:
    """Whether an instruction is a reduce-scatter, which TPUs fuse from an all-reduce and a slice."""
    return instruction.operation == "fusion" and f"calls=%{REDUCE_SCATTER}" in instruction.attributes


def _called(instruction: Instruction) -> list[str]:
    """The computations that an instruction runs."""
    branches = _BRANCHES.search(instruction.attributes)
    named = re.findall(r"%?([\w.\-]+)", branches[1]) if branches else []
    return named or _CALLED.findall(instruction.attributes)
