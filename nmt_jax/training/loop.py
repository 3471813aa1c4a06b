"""The training loop of all tasks: starts or continues a workdir, trains, evaluates, saves checkpoints, and stops."""

import contextlib
import dataclasses
import math
import time
from pathlib import Path
from typing import Any

import jax
from ml_collections import ConfigDict

from nmt_jax import platforms
from nmt_jax.checkpoints.reading import load_params
from nmt_jax.checkpoints.train_state import TrainState, new_state
from nmt_jax.checkpoints.verification import name_differences
from nmt_jax.checkpoints.writing import Checkpoints
from nmt_jax.data.batching.batches import iterator
from nmt_jax.distributed.processes import Processes, Vote
from nmt_jax.distributed.sharding import make_mesh, shard_batch, shard_state, share
from nmt_jax.errors import UserError
from nmt_jax.interrupts import Interrupted, Interrupts, Watchdog
from nmt_jax.planning.accelerators import topology_of
from nmt_jax.planning.roofline import bounds
from nmt_jax.progress import RunProgress, print_table
from nmt_jax.storage.paths import path_of
from nmt_jax.tasks.task import Task
from nmt_jax.training import memory
from nmt_jax.training.lock import WorkdirLock
from nmt_jax.training.logbook import Logbook
from nmt_jax.training.optimizers import make_optimizer, make_schedule
from nmt_jax.training.record import higher_is_better
from nmt_jax.training.train_step import Metrics, make_train_step
from nmt_jax.workdir import write_manifest

MAX_SKIPPED = 10  # consecutive steps without a finite loss and gradient
OUT_OF_TIME = 1000  # a vote to stop; other votes are signal numbers


@dataclasses.dataclass
class TrainingProgress:
    """The state of a run besides the arrays on the devices; saved in every checkpoint.

    evaluated: step of the last evaluation. metrics: its result. measure: the dev metric that decides; "" in checkpoints
    of older versions. best, best_step: its best value so far, and the step of it. stale: evaluations since then.
    skipped: non-finite steps so far. seconds: time spent, over all restarts.
    """

    evaluated: int = 0
    metrics: dict[str, float] = dataclasses.field(default_factory=dict)
    measure: str = ""
    best: float | None = None
    best_step: int = 0
    stale: int = 0
    loss: float = math.nan
    skipped: int = 0
    seconds: float = 0.0


def run(
    config: ConfigDict,
    workdir: Path,
    task: Task,
    processes: Processes | None = None,
    lock: WorkdirLock | None = None,
) -> dict[str, float]:
    """Train `task` in `workdir` and return the last loss and dev metrics.

    The same call continues a workdir exactly at its newest readable checkpoint. Training ends at `train.steps`, after
    `train.minutes` (compilation, evaluation and earlier starts included), or by early stopping. SIGINT, SIGTERM and
    SIGUSR1 save a checkpoint and raise `Interrupted`, a SystemExit with code 130, 143 or 138. With several `processes`,
    all make this call; the first logs, and a signal to one of them stops all. `lock` is that of the
    workdir, if it is shared with others.

    Raises UserError for invalid settings, a full disk, damaged checkpoints, a workdir that was deleted, and after ten
    consecutive steps without a finite loss.
    """
    began = time.monotonic()
    workdir = path_of(workdir).absolute()
    check_settings(config, task)
    with Interrupts() as interrupts:
        processes, lock = processes or Processes(), lock or WorkdirLock(workdir, needed=False)
        keep_last, keep_best = config.train.keep_last, config.train.keep_best
        checkpoints = Checkpoints(workdir / "checkpoints", keep_last, keep_best, processes.broadcast)
        training = _Training(config, workdir, task, processes, lock, checkpoints, interrupts, began)
        processes.broadcast(lambda: write_manifest(workdir, config))  # the vocabulary exists by now
        with checkpoints, Logbook(workdir, training.step) as training.logbook:
            training.run()
    return {"step": training.step, "loss": training.status.loss, **training.status.metrics}


def check_settings(config: ConfigDict, task: Task) -> None:
    """Raise UserError for settings that would otherwise fail only after hours."""
    train = config.train
    for name in ("steps", "accumulate", "log_every", "eval_every", "checkpoint_every"):
        if train[name] < 1:
            raise UserError(f"train.{name}={train[name]}: must be at least 1")
    if (metric := train.early_stopping_metric) not in task.measures:
        measures = ", ".join(task.measures)
        raise UserError(f"train.early_stopping_metric={metric!r}: must be a measure of the task: {measures}")


class _Training:
    """The state of one call of `run`."""

    logbook: Logbook

    def __init__(
        self,
        config: ConfigDict,
        workdir: Path,
        task: Task,
        processes: Processes,
        lock: WorkdirLock,
        checkpoints: Checkpoints,
        interrupts: Interrupts,
        began: float,
    ):
        self.config, self.workdir, self.task, self.mesh = config, workdir, task, make_mesh(config.mesh.model)
        self.processes, self.lock, self.checkpoints, self.interrupts = processes, lock, checkpoints, interrupts
        self.vote = Vote(self.mesh)
        task.evaluator.before_batch = self._vote
        self.batches = processes.in_turn(lambda: task.batches(config.train.steps))
        schedule = make_schedule(config.optimizer, config.train.steps, config.model.get("d_model"))
        self.optimizer = make_optimizer(config.optimizer)
        self.metric = f"dev/{config.train.early_stopping_metric}"
        self.sign = 1 if higher_is_better(self.metric) else -1
        self.state, data_state, self.status = self._start()
        self._choose_measure()
        memory.check_batch(self._largest, config, self.mesh.local_devices)
        self.iterator = iterator(self.batches, data_state)
        self.step = int(self.state.step)
        self.saved = (self.step, self.status.evaluated)  # the newest state on disk
        self.clock = began - self.status.seconds
        self.train_step = make_train_step(
            task.loss_fn,
            self.optimizer,
            schedule,
            accumulate=config.train.accumulate,
            ema_decay=config.optimizer.ema_decay,
            seed=config.seed,
            shardings=jax.tree.map(lambda leaf: leaf.sharding, self.state),
        )
        # Metrics are read one step late, so that the devices never wait for the host.
        self.unread: tuple[int, str, Metrics] | None = None
        self.done, self.since = 0.0, time.monotonic()

    # Starting

    def _start(self) -> tuple[TrainState, Any, TrainingProgress]:
        """Continue this workdir; otherwise start from the workdir `config.init_from`, or from scratch."""

        def make(rng: jax.Array) -> TrainState:
            return self._new_state(self.task.init(rng))

        abstract = jax.eval_shape(make, jax.random.key(self.config.seed))
        shardings = shard_state(abstract, self.mesh, self.config.mesh.fsdp)
        placed = jax.tree.map(
            lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), abstract, shardings
        )
        memory.check_state(placed, self.mesh.local_devices)
        restored = self.checkpoints.restore(placed)
        self.processes.check_same("newest readable checkpoint", restored.step if restored else None)
        if restored:
            return restored.state, restored.data_state, TrainingProgress(**restored.meta)
        if self.config.init_from:
            source = path_of(self.config.init_from)
            params = load_params(source, "best", lambda tree: shard_state(tree, self.mesh, self.config.mesh.fsdp))
            if differences := name_differences(abstract.params, params):
                raise UserError(f"init_from={source}: the parameters do not fit this model ({differences})")
        else:
            init = jax.jit(
                lambda: self.task.init(jax.random.key(self.config.seed)),
                out_shardings=shardings.params,
                compiler_options=platforms.initialization_options(),
            )
            params = jax.device_put(self.task.warm_start(init()), shardings.params)
        return jax.jit(self._new_state, out_shardings=shardings)(params), None, TrainingProgress()

    def _new_state(self, params: Any) -> TrainState:
        return new_state(
            params, self.optimizer, self.config.optimizer.ema_decay, self.task.init_carry(self.batches.shapes[0][0])
        )

    def _choose_measure(self) -> None:
        """Forget the best value if it is of another metric than the config's."""
        status = self.status
        if status.measure not in ("", self.metric):
            status.best, status.best_step, status.stale = None, 0, 0
        status.measure = self.metric

    def _print_summary(self) -> None:
        devices = self.mesh.devices.flatten()
        train, params = self.config.train, self.state.params
        padding = getattr(self.batches, "padding", {}).items()
        rows = [
            ("workdir", str(self.workdir) + (f", continued at step {self.step}" if self.step else "")),
            ("devices", f"{len(devices)} x {devices[0].device_kind} ({jax.process_count()} processes)"),
            ("parameters", f"{sum(leaf.size for leaf in jax.tree.leaves(params)):,}"),
            *self.task.summary(),
            ("shapes to compile", ", ".join(memory.format_shape(shape) for shape in self.batches.shapes)),
            *([("padding", ", ".join(f"{part:.1%} of {name}" for name, part in padding))] if padding else []),
            ("tokens per batch", f"{train.batch_tokens:,}" + f" in {train.accumulate} parts" * (train.accumulate > 1)),
            ("steps", f"{train.steps:,}" + f", at most {train.minutes:g} minutes" * bool(train.minutes)),
            (
                "memory per device",
                f"{memory.bytes_per_device(self.state)} state + {memory.bytes_per_device(params)} gradients",
            ),
        ]
        if not jax.process_index():
            print_table(rows)

    def _compile_largest(self) -> None:
        """Compile for the largest shape, to find out now whether memory suffices; jit keeps the program."""
        shape, devices = self._largest, self.mesh.local_devices
        rows = shape[0] // share(self.mesh).count  # of this process
        batch = shard_batch(self.task.dummy_batch((rows, *shape[1:])), self.mesh)
        start = time.monotonic()
        try:
            traced = self.train_step.trace(self.state, batch)
            program = traced.lower().compile()
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            raise memory.too_large(shape, self.config, " ".join(str(error).split())[:160]) from error
        took, needed = time.monotonic() - start, memory.check_program(shape, self.config, program, devices)
        size = memory.format_bytes(needed)
        self.display.note(
            f"compiled {memory.format_shape(shape)}, the largest shape, in {took:.1f} s: {size} per device"
        )
        if topology := topology_of(list(self.mesh.devices.flat)):
            self.display.note(bounds(topology, traced.jaxpr.jaxpr, program.as_text(), self.task.num_tokens(shape)))

    @property
    def _largest(self) -> tuple[int, ...]:
        return max(self.batches.shapes, key=lambda shape: (shape[0] * sum(shape[1:]), shape))

    # Running

    def run(self) -> None:
        """Train to the end; on a signal, save a checkpoint and raise Interrupted."""
        self._print_summary()
        train = self.config.train
        seconds_left = train.minutes * 60 - self.status.seconds if train.minutes else math.inf
        display = RunProgress(train.steps, self.step, self.metric, seconds_left, quiet=jax.process_index() > 0)
        with Watchdog(train.watchdog_minutes) as self.watchdog, display as self.display:
            try:
                if self.step < train.steps and seconds_left > 0 and not self._out_of_patience():
                    with self._interruptible():
                        self._compile_largest()
                self.display.begin()
                self.since = time.monotonic()
                while not self._settle_step():
                    self._take_step()
            except Interrupted:
                self._save()
                self._wait_until_saved()
                self.display.note(f"saved at step {self.step}; run the same command to continue")
                raise
            self._wait_until_saved()
            self.lock.check()
            self._conclude()

    def _settle_step(self) -> bool:
        """Evaluate and save if due after a step; returns whether training ends."""
        self.watchdog.alive(f"step {self.step}")
        out_of_time = self._vote()
        self.checkpoints.check()
        train = self.config.train
        ending = out_of_time or self.step >= train.steps
        improved = False
        if (self.step % train.eval_every == 0 or ending) and self.status.evaluated != self.step:
            improved = self._evaluate()
        ending = ending or self._out_of_patience()
        if self.step % train.checkpoint_every == 0 or ending or (improved and train.keep_best):
            self._save()
        return ending

    def _vote(self) -> bool:
        """Vote on whether to stop; raises Interrupted for a signal, returns whether the time is over."""
        late = 0 < self.config.train.minutes * 60 <= time.monotonic() - self.clock
        result = self.vote(self.interrupts.number or late * OUT_OF_TIME)
        if 0 < result < OUT_OF_TIME:
            raise Interrupted(result)
        return result == OUT_OF_TIME

    def _interruptible(self) -> contextlib.AbstractContextManager[None]:
        """Lets a signal interrupt the block at once, unless other processes would wait for this one."""
        return self.interrupts.interruptible() if jax.process_count() == 1 else contextlib.nullcontext()

    def _out_of_patience(self) -> bool:
        return 0 < self.config.train.patience <= self.status.stale

    def _take_step(self) -> None:
        host_batch = next(self.iterator)
        self.state, metrics = self.train_step(self.state, shard_batch(host_batch, self.mesh))
        self._read_metrics()
        self.step += 1
        shapes = ", ".join(f"{name} {memory.format_shape(array.shape)}" for name, array in host_batch.items())
        self.unread = (self.step, shapes, metrics)

    def _read_metrics(self) -> None:
        """Log the step before the last dispatched one; raise UserError after too many non-finite steps."""
        if self.unread is None:
            return
        (step, batch, device_metrics), self.unread = self.unread, None
        metrics = {name: float(value) for name, value in jax.device_get(device_metrics).items()}
        skipped = int(metrics.pop("skipped"))
        self.done += metrics.pop("weight")
        self.status.loss = metrics["loss"]
        if skipped:
            self.status.skipped += 1
            self.display.note(f"step {step}: loss or gradient not finite ({batch}); step skipped")
        if skipped >= MAX_SKIPPED:
            raise UserError(
                f"{self.workdir}: no finite loss and gradient in {skipped} consecutive steps, "
                f"the last at step {step} ({batch}): lower optimizer.learning_rate, raise optimizer.warmup_steps "
                "or set optimizer.clip_norm=1.0; the last checkpoint is kept"
            )
        if step % self.config.train.log_every and step != self.config.train.steps:
            return
        self.lock.check()
        now = time.monotonic()
        speed = self.done / max(now - self.since, 1e-9)
        self.done, self.since = 0.0, now
        metrics[f"{self.task.unit}_per_second"] = speed
        self.logbook.write(step, {**metrics, "skipped": self.status.skipped, "seconds": now - self.clock})
        self.display.update(step, metrics["loss"], f"{speed:,.0f} {self.task.unit}/s")

    # Evaluating and saving

    def _evaluate(self) -> bool:
        """Evaluate on the development set; returns whether the result is the best so far."""
        self._read_metrics()
        start = time.monotonic()
        with self._interruptible():
            measured = {name: float(value) for name, value in self.task.evaluate(self.state.averaged).items()}
        metrics = self.processes.broadcast(lambda: measured)  # hosts may round differently
        self.since += time.monotonic() - start  # evaluation does not count for the speed
        status, value = self.status, metrics[self.metric]
        improved = not math.isnan(value) and (status.best is None or self.sign * value > self.sign * status.best)
        if improved:
            status.best, status.best_step = value, self.step
        status.stale = 0 if improved else status.stale + 1
        status.evaluated, status.metrics = self.step, metrics
        self.logbook.write(self.step, metrics)
        self.display.evaluated(self.step, metrics, improved)
        return improved

    def _save(self) -> None:
        """Save a checkpoint, unless this step and its evaluation are on disk already."""
        self._read_metrics()
        if self.saved == (self.step, self.status.evaluated):
            return
        self.lock.check()
        self.logbook.sync()
        self.status.seconds = time.monotonic() - self.clock
        evaluated = self.step > 0 and self.status.evaluated == self.step
        score = self.sign * self.status.metrics[self.metric] if evaluated else None
        start = time.monotonic()
        self.checkpoints.save(self.step, self.state, self.iterator.get_state(), dataclasses.asdict(self.status), score)
        self.since += time.monotonic() - start
        self.saved = (self.step, self.status.evaluated)

    def _wait_until_saved(self) -> None:
        """Wait for the last checkpoint, also for process 0, which may still copy it to an object store."""
        self.processes.in_turn(self.checkpoints.wait)

    def _conclude(self) -> None:
        status = self.status
        reason = "stopped early" if self.step < self.config.train.steps else "done"
        best = f"best {self.metric} {status.best:.4g} at step {status.best_step}" if status.best is not None else ""
        self.display.note(
            f"{reason} at step {self.step} after {status.seconds / 60:.1f} minutes; {best or 'nothing was evaluated'}. "
            f"Next: {self.task.next_command.format(workdir=self.workdir)}"
        )
