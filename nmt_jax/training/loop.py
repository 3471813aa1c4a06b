"""The only training loop: it starts or continues a workdir, steps, evaluates, saves, and stops when it should."""

import contextlib
import dataclasses
import math
import time
from pathlib import Path
from typing import Any

import jax
from jax.sharding import Mesh
from ml_collections import ConfigDict

from nmt_jax.checkpoints.reading import load_params
from nmt_jax.checkpoints.train_state import TrainState, new_state
from nmt_jax.checkpoints.tree_shapes import name_differences
from nmt_jax.checkpoints.writing import Checkpoints
from nmt_jax.data.batching.batches import iterator
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.distributed.processes import Processes, Vote
from nmt_jax.distributed.sharding import gather, make_mesh, replicated, shard_batch, shard_state
from nmt_jax.distributed.watchdog import Watchdog
from nmt_jax.errors import UserError
from nmt_jax.interrupts import Interrupted, Interrupts
from nmt_jax.tasks.task import Task
from nmt_jax.training.logbook import Logbook
from nmt_jax.training.optimizers import make_optimizer, make_schedule
from nmt_jax.training.record import higher_is_better
from nmt_jax.training.run_progress import Progress, print_table
from nmt_jax.training.train_step import Metrics, make_train_step

MAX_SKIPPED = 10  # steps without a finite loss and gradient, in a row
OUT_OF_TIME = 1000  # a vote to stop; other votes are numbers of signals


@dataclasses.dataclass
class TrainingProgress:
    """How far the run has come, beside the state on the devices; saved in every checkpoint.

    evaluated: step of the last evaluation, `metrics` its result. best, best_step: the best dev metric so far.
    stale: evaluations since then. skipped: non-finite steps so far. seconds: time spent, over all restarts.
    """

    evaluated: int = 0
    metrics: dict[str, float] = dataclasses.field(default_factory=dict)
    best: float | None = None
    best_step: int = 0
    stale: int = 0
    loss: float = math.nan
    skipped: int = 0
    seconds: float = 0.0


def run(config: ConfigDict, workdir: Path, task: Task, processes: Processes | None = None) -> dict[str, float]:
    """Train `task` in `workdir` to the end that `config.train` sets and return the last loss and dev metrics.

    The same call continues a workdir: the newest checkpoint that can be read goes on exactly where it was.
    `train.minutes` counts all that happens in here, compiling and evaluating too, over all restarts. SIGINT, SIGTERM
    and SIGUSR1 save and raise `Interrupted`, a SystemExit with code 130, 143 or 138. Raises UserError on bad settings,
    a full disk, damaged checkpoints, and after ten steps in a row without a finite loss. Of several `processes`, which
    all make this call, the first evaluates and logs, and a signal to one stops all.
    """
    began = time.monotonic()
    workdir = Path(workdir).absolute()
    check_settings(config, task)
    mesh = make_mesh(config.mesh.model)
    with Interrupts() as interrupts:
        checkpoints = Checkpoints(workdir / "checkpoints", config.train.keep_last, config.train.keep_best)
        training = _Training(config, workdir, task, mesh, processes or Processes(), checkpoints, interrupts, began)
        with checkpoints, Logbook(workdir, training.step) as training.logbook:
            training.run()
    return {"step": training.step, "loss": training.standing.loss, **training.standing.metrics}


def check_settings(config: ConfigDict, task: Task) -> None:
    """Raise UserError on settings of `config` that would only fail hours later."""
    train = config.train
    for name in ("steps", "accumulate", "log_every", "eval_every", "checkpoint_every"):
        if train[name] < 1:
            raise UserError(f"train.{name}={train[name]}: must be 1 or more")
    if train.early_stopping_metric not in task.measures:
        raise UserError(
            f"train.early_stopping_metric={train.early_stopping_metric!r}: the task measures "
            f"{', '.join(task.measures)}: use one of them"
        )


class _Training:
    """One call of `run`: what the parts of the loop share."""

    logbook: Logbook

    def __init__(
        self,
        config: ConfigDict,
        workdir: Path,
        task: Task,
        mesh: Mesh,
        processes: Processes,
        checkpoints: Checkpoints,
        interrupts: Interrupts,
        began: float,
    ):
        self.config, self.workdir, self.task, self.mesh = config, workdir, task, mesh
        self.processes, self.checkpoints, self.interrupts = processes, checkpoints, interrupts
        self.vote = Vote(mesh)
        self.batches = processes.in_turn(lambda: task.batches(config.train.steps))
        schedule = make_schedule(config.optimizer, config.train.steps, config.model.get("d_model"))
        self.optimizer = make_optimizer(config.optimizer)
        self.state, data_state, self.standing = self._start()
        self.iterator = iterator(self.batches, data_state)
        self.step = int(self.state.step)
        self.saved = (self.step, self.standing.evaluated)  # nothing is newer than this on disk
        self.clock = began - self.standing.seconds
        self.train_step = make_train_step(
            task.loss_fn,
            self.optimizer,
            schedule,
            accumulate=config.train.accumulate,
            ema_decay=config.optimizer.ema_decay,
            seed=config.seed,
            shardings=jax.tree.map(lambda leaf: leaf.sharding, self.state),
        )
        self.metric = f"dev/{config.train.early_stopping_metric}"
        self.sign = 1 if higher_is_better(self.metric) else -1
        # Metrics are read one step late, when the devices already have the next step to work on.
        self.unread: tuple[int, str, Metrics] | None = None
        self.done, self.since = 0.0, time.monotonic()

    # Starting

    def _start(self) -> tuple[TrainState, Any, TrainingProgress]:
        """Continue this workdir; else initialise from `config.init_from`; else from scratch."""

        def make(rng: jax.Array) -> TrainState:
            return new_state(self.task.init(rng), self.optimizer, self.config.optimizer.ema_decay)

        abstract = jax.eval_shape(make, jax.random.key(self.config.seed))
        shardings = shard_state(abstract, self.mesh, self.config.mesh.fsdp)
        placed = jax.tree.map(
            lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), abstract, shardings
        )
        restored = self.checkpoints.restore(placed)
        self.processes.check_same("newest checkpoint that can be read", restored.step if restored else None)
        if restored:
            return restored.state, restored.data_state, TrainingProgress(**restored.meta)
        if self.config.init_from:
            source = Path(self.config.init_from)
            params = load_params(source, "best", replicated(self.mesh))
            if differences := name_differences(abstract.params, params):
                raise UserError(f"init_from={source}: its parameters do not fit this model ({differences})")
        else:
            whole = replicated(self.mesh)
            params = jax.jit(lambda: self.task.init(jax.random.key(self.config.seed)), out_shardings=whole)()
            params = jax.device_put(self.task.warm_start(params), shardings.params)
        state = jax.jit(
            lambda params: new_state(params, self.optimizer, self.config.optimizer.ema_decay), out_shardings=shardings
        )(params)
        return state, None, TrainingProgress()

    def _describe(self) -> None:
        devices = self.mesh.devices.flatten()
        params, state = _count(self.state.params), _bytes_a_device(self.state)
        train = self.config.train
        rows = [
            ("workdir", str(self.workdir) + (f", continued at step {self.step}" if self.step else "")),
            ("devices", f"{len(devices)} x {devices[0].device_kind} ({jax.process_count()} processes)"),
            ("parameters", f"{params:,}"),
            *self.task.summary(),
            ("shapes to compile", ", ".join(_shape(shape) for shape in self.batches.shapes)),
            ("tokens a batch", f"{train.batch_tokens:,}" + f" in {train.accumulate} parts" * (train.accumulate > 1)),
            ("steps", f"{train.steps:,}" + f", at most {train.minutes:g} minutes" * bool(train.minutes)),
            ("memory a device", f"{_size(state)} state + {_size(_bytes_a_device(self.state.params))} gradients"),
        ]
        print_table(rows)

    def _compile_largest(self) -> None:
        """Compile for the largest shape, so that running out of memory shows now; the step finds it in jit's cache."""
        shape = max(self.batches.shapes, key=lambda shape: (shape[0] * sum(shape[1:]), shape))
        batch = shard_batch(self.task.dummy_batch(shape), self.mesh)
        start = time.monotonic()
        try:
            memory = self.train_step.lower(self.state, batch).compile().memory_analysis()
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            raise UserError(self._too_large(shape, " ".join(str(error).split())[:160])) from error
        needed = 0
        if memory is not None:  # some devices do not tell
            needed = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
            needed -= memory.alias_size_in_bytes
        took = time.monotonic() - start
        self.progress.note(f"compiled {_shape(shape)}, the largest shape, in {took:.1f} s: {_size(needed)} a device")
        limit = (self.mesh.local_devices[0].memory_stats() or {}).get("bytes_limit", math.inf)
        if needed > limit:
            raise UserError(self._too_large(shape, f"{_size(needed)} needed, {_size(limit)} there"))

    def _too_large(self, shape: tuple[int, ...], reason: str) -> str:
        return (
            f"a batch of {_shape(shape)} does not fit the memory of the device ({reason}): raise train.accumulate "
            f"(now {self.config.train.accumulate}), or lower train.batch_tokens (now {self.config.train.batch_tokens})"
        )

    # Running

    def run(self) -> None:
        """Step to the end; on a signal save and raise Interrupted."""
        self._describe()
        train = self.config.train
        seconds_left = train.minutes * 60 - self.standing.seconds if train.minutes else math.inf
        progress = Progress(train.steps, self.step, self.metric, seconds_left)
        with Watchdog(train.watchdog_minutes) as self.watchdog, progress as self.progress:
            try:
                if self.step < train.steps and seconds_left > 0 and not self._out_of_patience():
                    with self._interruptible():
                        self._compile_largest()
                self.progress.begin()
                self.since = time.monotonic()
                while not self._settle_step():
                    self._take_step()
            except Interrupted:
                self._save()
                self.checkpoints.wait()
                self.progress.note(f"saved at step {self.step}; the same command continues from there")
                raise
            self.checkpoints.wait()
            self._conclude()

    def _settle_step(self) -> bool:
        """Do what is due between two steps, and return whether the last one was the end."""
        self.watchdog.alive(f"step {self.step}")
        verdict = self.vote(self._own_verdict())
        if 0 < verdict < OUT_OF_TIME:
            raise Interrupted(verdict)
        self.checkpoints.check()
        train = self.config.train
        ending = verdict == OUT_OF_TIME or self.step >= train.steps
        improved = False
        if (self.step % train.eval_every == 0 or ending) and self.standing.evaluated != self.step:
            improved = self._evaluate()
        ending = ending or self._out_of_patience()
        if self.step % train.checkpoint_every == 0 or ending or (improved and train.keep_best):
            self._save()
        return ending

    def _own_verdict(self) -> int:
        """Whether this process would stop now: the number of a signal, OUT_OF_TIME, or 0."""
        late = 0 < self.config.train.minutes * 60 <= time.monotonic() - self.clock
        return self.interrupts.number or late * OUT_OF_TIME

    def _interruptible(self) -> contextlib.AbstractContextManager[None]:
        """A stretch that a signal may leave anywhere, unless other processes would wait for this one."""
        return self.interrupts.interruptible() if jax.process_count() == 1 else contextlib.nullcontext()

    def _out_of_patience(self) -> bool:
        return 0 < self.config.train.patience <= self.standing.stale

    def _take_step(self) -> None:
        host_batch = next(self.iterator)
        self.state, metrics = self.train_step(self.state, shard_batch(host_batch, self.mesh))
        self._read_metrics()
        self.step += 1
        self.unread = (self.step, _describe_batch(host_batch), metrics)

    def _read_metrics(self) -> None:
        """Log the step dispatched before the last one; raise UserError when none was finite for too long."""
        if self.unread is None:
            return
        (step, batch, device_metrics), self.unread = self.unread, None
        metrics = {name: float(value) for name, value in jax.device_get(device_metrics).items()}
        skipped = int(metrics.pop("skipped"))
        self.done += metrics.pop("weight")
        self.standing.loss = metrics["loss"]
        if skipped:
            self.standing.skipped += 1
            self.progress.note(f"step {step}: loss or gradient not finite ({batch}); the step changed nothing")
        if skipped >= MAX_SKIPPED:
            raise UserError(
                f"{self.workdir}: no finite loss and gradient in {skipped} steps in a row, "
                f"the last at step {step} ({batch}): lower optimizer.learning_rate, lengthen optimizer.warmup_steps "
                "or set optimizer.clip_norm=1.0; the last checkpoint stays"
            )
        if step % self.config.train.log_every and step != self.config.train.steps:
            return
        now = time.monotonic()
        speed = self.done / max(now - self.since, 1e-9)
        self.done, self.since = 0.0, now
        metrics[f"{self.task.unit}_per_second"] = speed
        row = {**metrics, "skipped": self.standing.skipped, "seconds": now - self.clock}
        self.logbook.write(step, row)
        self.progress.update(step, metrics["loss"], f"{speed:,.0f} {self.task.unit}/s")

    # Evaluating and saving

    def _evaluate(self) -> bool:
        """Measure the dev set and return whether it is the best so far."""
        self._read_metrics()
        start = time.monotonic()
        params = gather(self.state.averaged, self.mesh)
        metrics = self.processes.broadcast(lambda: self._measure(params))
        if "interrupted" in metrics:
            raise Interrupted(metrics["interrupted"])
        self.since += time.monotonic() - start  # the speed is that of training
        standing, value = self.standing, metrics[self.metric]
        improved = not math.isnan(value) and (standing.best is None or self.sign * value > self.sign * standing.best)
        if improved:
            standing.best, standing.best_step = value, self.step
        standing.stale = 0 if improved else standing.stale + 1
        standing.evaluated, standing.metrics = self.step, metrics
        self.logbook.write(self.step, metrics)
        self.progress.evaluated(self.step, metrics, improved)
        return improved

    def _measure(self, params: Any) -> dict[str, Any]:
        """The dev metrics of `params`, or which signal came before there were any."""
        try:
            with self.interrupts.interruptible():
                return {name: float(value) for name, value in self.task.evaluate(params).items()}
        except Interrupted as interrupted:
            return {"interrupted": interrupted.signal}

    def _save(self) -> None:
        """Save the step just made, unless the disk has it already with its evaluation."""
        self._read_metrics()
        if self.saved == (self.step, self.standing.evaluated):
            return
        self.logbook.sync()
        self.standing.seconds = time.monotonic() - self.clock
        evaluated = self.step > 0 and self.standing.evaluated == self.step
        score = self.sign * self.standing.metrics[self.metric] if evaluated else None
        start = time.monotonic()
        self.checkpoints.save(
            self.step, self.state, self.iterator.get_state(), dataclasses.asdict(self.standing), score
        )
        self.since += time.monotonic() - start
        self.saved = (self.step, self.standing.evaluated)

    def _conclude(self) -> None:
        standing = self.standing
        reason = "stopped early" if self.step < self.config.train.steps else "done"
        best = "nothing was evaluated"
        if standing.best is not None:
            best = f"best {self.metric} {standing.best:.4g} at step {standing.best_step}"
        self.progress.note(
            f"{reason} at step {self.step} after {standing.seconds / 60:.1f} minutes; {best}. "
            f"Next: {self.task.next_command.format(workdir=self.workdir)}"
        )


def _describe_batch(batch: Batch) -> str:
    return ", ".join(f"{name} {_shape(array.shape)}" for name, array in batch.items())


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(str(size) for size in shape)


def _count(tree: Any) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def _bytes_a_device(tree: Any) -> int:
    return sum(leaf.addressable_shards[0].data.nbytes for leaf in jax.tree.leaves(tree))


def _size(count: float) -> str:
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"
