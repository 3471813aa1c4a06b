"""Plans: what a config needs on a topology, and which settings help where it does not fit or could be faster."""

import itertools
import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh
from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax import platforms
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.planning import metric_programs, programs
from nmt_jax.planning.accelerators import Topology
from nmt_jax.planning.estimate import Estimate, estimate, traced_for
from nmt_jax.planning.programs import Program, Shape
from nmt_jax.tasks.task import Task

ENOUGH = 2  # settings that fit
GAIN = 1.05  # a setting helps if the bound on tokens per second grows by this factor
Changes = dict[str, str]


class Option(NamedTuple):
    """Settings that differ from the config, and what the training step needs with them."""

    changes: Changes
    estimate: Estimate


class Plan(NamedTuple):
    """What a config or a metric needs on a topology.

    options: other settings that fit, the fastest first. excess: bytes by which the training step does not fit, with the
    best of the settings that were tried; 0 if it fits. omitted: config keys of functions on the host that the training
    step calls, which are not planned.
    """

    topology: Topology
    num_parameters: int
    origin: str
    estimates: tuple[Estimate, ...]
    options: tuple[Option, ...] = ()
    excess: float = 0.0
    omitted: tuple[str, ...] = ()


class Request(NamedTuple):
    """What to plan: programs by name, the shape of the batch if it is given, a workdir with data, options to try."""

    kinds: Sequence[str] = programs.KINDS
    batch: Shape | None = None
    workdir: Path | None = None
    tries: int = 4


def plan_config(config: ConfigDict, topology: Topology, devices: Sequence[Any], request: Request) -> Plan:
    """Compile the programs of a config for the devices of a topology, and return what they need.

    Raises UserError if the devices cannot be divided as the config says, or a program cannot be compiled.
    """
    mesh = _mesh(config, topology, devices)
    with traced_for(mesh):
        task, shapes = _prepare(config, mesh, request)
        built = list(_programs(config, task, shapes, request.kinds))
        num_parameters = programs.num_parameters(task)
    estimates = tuple(_announced(program, topology) for program in built)
    omitted = task.on_host if "train" in request.kinds else ()
    plan = Plan(topology, num_parameters, shapes.origin, estimates, omitted=omitted)
    steps = [one for one in estimates if one.program == "train"]
    if not steps or (steps[0].fits and steps[0].bound == "arithmetic"):
        return plan
    tried = list(_try(config, steps[0], topology, devices, request))
    options = [option for option in tried if option.estimate.fits and _helps(option.estimate, steps[0])]
    options.sort(key=lambda option: -option.estimate.tokens_per_second)
    fits = steps[0].fits or bool(options)
    excess = 0.0 if fits else min(one.peak - one.limit for one in [steps[0], *(option.estimate for option in tried)])
    return plan._replace(options=tuple(options), excess=excess)


def plan_metrics(
    metrics: Sequence[Any], topology: Topology, devices: Sequence[Any], batch: Shape | None = None
) -> Plan:
    """Compile what metrics run on the devices of one process, and return what it needs.

    metrics: those that `metric_programs.of_metric` knows. batch: rows and length; by default full batches. Raises
    UserError for a batch of another shape.
    """
    mesh = _local(sharding.make_mesh(devices=devices), topology)
    built = [program for metric in metrics for program in metric_programs.of_metric(metric, mesh, batch)]
    functions = {id(function): function for function in map(metric_programs.weights, metrics)}
    num_parameters = sum(leaf.size for leaf in jax.tree.leaves([*functions.values()]))
    origin = (
        "--batch"
        if batch
        else f"full batches of the longest rows, and of rows of {programs.TYPICAL:.0%} of that length"
    )
    return Plan(topology, num_parameters, origin, tuple(_announced(program, topology) for program in built))


def candidates(config: ConfigDict, step: Estimate) -> Iterator[Changes]:
    """Yield settings that may help a training step, the least intrusive first.

    Where it does not fit: parameters divided (mesh.fsdp), a batch in parts (train.accumulate), activations recomputed
    (model.remat), all of these, and tensor parallelism (mesh.model). Where memory or network binds: larger batches.
    """
    if step.fits:
        if config.train.accumulate > 1:
            yield {"train.accumulate": str(config.train.accumulate // 2)}
        for factor in (2, 4):
            yield {"train.batch_tokens": str(factor * config.train.batch_tokens)}
        return
    fsdp = {"mesh.fsdp": "true"} if step.devices > 1 and not config.mesh.fsdp else {}
    remat = config.model.get("remat")
    less: Changes = {} if remat in (None, "full") else {"model.remat": "full"}
    room = step.limit - step.arguments
    most = step.shape[0] * config.mesh.model // step.devices  # rows of a device
    wanted = 2 * step.peak / step.limit if not step.temporaries or room <= 0 else step.temporaries / room
    parts = 2 ** int(math.log2(max(min(2 * wanted, most), 1)))
    accumulate = {"train.accumulate": str(parts * config.train.accumulate)} if parts > 1 else {}
    model = {"mesh.model": str(2 * config.mesh.model)} if step.devices % (2 * config.mesh.model) == 0 else {}
    seen: list[Changes] = [{}]
    for changes in (
        fsdp,
        accumulate,
        fsdp | accumulate,
        fsdp | less,
        fsdp | accumulate | less,
        fsdp | accumulate | less | model,
    ):
        if changes not in seen:
            seen.append(changes)
            yield changes


def _try(
    config: ConfigDict, step: Estimate, topology: Topology, devices: Sequence[Any], request: Request
) -> Iterator[Option]:
    """Yield settings with what the training step needs then, until enough of them fit."""
    fitting = 0
    for changes in itertools.islice(candidates(config, step), request.tries):
        try:
            changed = configs.override(config, changes)
            batch = _scaled(request.batch, config, changed)
            mesh = _mesh(changed, topology, devices)
            with traced_for(mesh):
                task, shapes = _prepare(changed, mesh, request._replace(batch=batch))
                program = programs.training_step(task, changed, shapes.largest)
        except UserError:  # settings that this config or batch does not allow
            continue
        found = _announced(program, topology, changes)
        yield Option(changes, found)
        fitting += found.fits and _helps(found, step)
        if fitting == ENOUGH:
            return


def _scaled(batch: Shape | None, old: ConfigDict, new: ConfigDict) -> Shape | None:
    """A given batch with as many more rows as the config has more tokens."""
    return batch and (batch[0] * new.train.batch_tokens // old.train.batch_tokens, *batch[1:])


def _helps(found: Estimate, step: Estimate) -> bool:
    return not step.fits or found.tokens_per_second > GAIN * step.tokens_per_second


def _mesh(config: ConfigDict, topology: Topology, devices: Sequence[Any]) -> Mesh:
    try:
        return sharding.make_mesh(config.mesh.model, devices)
    except UserError as error:
        raise UserError(f"--topology={topology}: {error}") from None


def _local(mesh: Mesh, topology: Topology) -> Mesh:
    """The mesh of the devices of one process; compilers do not accept a part of a topology."""
    if len({device.process_index for device in mesh.devices.flat}) == 1:
        return mesh
    return sharding.make_mesh(devices=topology.machine.devices())


def _prepare(config: ConfigDict, mesh: Mesh, request: Request) -> tuple[Task, programs.BatchShapes]:
    task = programs.prepare_task(config, mesh, request.workdir)
    return task, programs.batch_shapes(task, request.batch, request.workdir is not None)


def _programs(config: ConfigDict, task: Task, shapes: programs.BatchShapes, kinds: Sequence[str]) -> Iterator[Program]:
    """Yield the programs of these kinds that the task has."""
    if "train" in kinds:
        for shape in dict.fromkeys([shapes.largest, shapes.frequent]):
            yield programs.training_step(task, config, shape)
    if "eval" in kinds:
        yield programs.evaluation_loss(task, config)
    if "decode" in kinds and "decode" in config:
        yield programs.beam_search(task, config)


def _announced(program: Program, topology: Topology, changes: Changes | None = None) -> Estimate:
    """Estimate a program, and tell the time that it took."""
    start = time.monotonic()
    parts = (topology, topology.machine, topology.single)
    topology = next(part for part in parts if part.num_devices == program.mesh.size)
    settings = "".join(f", {name}={value}" for name, value in (changes or {}).items())
    what = f"{topology}: {program.kind} {'x'.join(map(str, program.shape))}{settings}"
    if sys.stderr.isatty():
        print(f"{what}: compiling, since {time.strftime('%H:%M:%S')} …", end="\r", file=sys.stderr, flush=True)
    found = estimate(program, topology, platforms.compilation_folder() / "plan")
    how = f"compiled in {found.compile_seconds:.0f} s" if found.compile_seconds else "known"
    done = f"{what}: {how}, {time.monotonic() - start:.0f} s in all"
    print(f"{done:<{len(what) + 32}}" if sys.stderr.isatty() else done, file=sys.stderr, flush=True)
    return found
