"""Reading checkpoints: the newest, the best, or the mean of several, on any number of devices."""

import contextlib
import itertools
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import jax
import numpy as np
from jax.sharding import Sharding, SingleDeviceSharding
from orbax.checkpoint import v1 as ocp

from nmt_jax.checkpoints.finite import check_parameters
from nmt_jax.checkpoints.ranking import METADATA, Score, best_first
from nmt_jax.checkpoints.train_state import TrainState
from nmt_jax.checkpoints.verification import check_checkpoint, report_average, shape_differences, tree_shapes
from nmt_jax.errors import UserError, one_line
from nmt_jax.storage.files import is_complete, local_copy, move_folder
from nmt_jax.storage.paths import is_remote, path_of

# Orbax logs each failure with several tracebacks of its threads; the errors raised here say the same in one line.
for logger in ("absl", "asyncio"):
    logging.getLogger(logger).addFilter(lambda record: "orbax" not in record.pathname)


# One for all parameters, or a function that returns those of a tree of parameters.
Shardings = Sharding | Callable[[Any], Any]

REPLACED = ".replaced"  # ends the name of a checkpoint while a newer one of the same step is being saved
ATTEMPTS = 100  # to read checkpoints that a training deletes at the same time


class CheckpointChangedError(Exception):
    """A checkpoint was deleted or replaced while it was read."""


class Restored(NamedTuple):
    """The content of a checkpoint."""

    step: int
    state: TrainState
    data_state: Any
    meta: dict[str, Any]


@contextlib.contextmanager
def _opened(folder: Path, pattern: str = "*") -> Iterator[Path]:
    """Yields `local_copy`; of an object store, each process has its own, which it reads without the others."""
    with contextlib.ExitStack() as stack:
        if is_remote(folder):
            process = jax.process_index()
            options = ocp.options.MultiprocessingOptions(primary_host=process, active_processes={process})
            stack.enter_context(ocp.Context(multiprocessing_options=options))
        yield stack.enter_context(local_copy(folder, pattern))


class CheckpointReader:
    """Reads the folder `checkpoints/` of a workdir, which holds one Orbax checkpoint per saved step, named by the step.

    All processes must make the same calls; process 0 renames damaged checkpoints.
    """

    def __init__(self, directory: Path):
        self.directory = path_of(directory).absolute()  # given a relative path, Orbax fails late, in a thread
        self._scores: dict[int, Score] = {}
        self._damaged: dict[int, str] = {}  # what is wrong with checkpoints, not reported yet
        self.undamaged = True  # as far as checkpoints were read

    def steps(self) -> list[int]:
        """The steps of the finished checkpoints, oldest first."""
        try:
            # Unfinished, deleted and damaged checkpoints have names that are not numbers.
            return sorted(
                int(path.name) for path in self.directory.iterdir() if path.name.isdecimal() and is_complete(path)
            )
        except (FileNotFoundError, NotADirectoryError):
            return []

    def best_steps(self) -> list[int]:
        """The steps of checkpoints with a score, in the order of `best_first`."""
        return best_first({step: self._score(step) for step in self.steps()})

    def restore(self, abstract: TrainState) -> Restored | None:
        """The newest readable checkpoint, with the shapes and shardings of `abstract`; None if there is no checkpoint.

        Damaged newer ones are reported on stderr and renamed to `STEP.damaged`. Raises UserError if all are damaged, or
        if a checkpoint holds other arrays than `abstract`.
        """
        for step in reversed(self.steps()):
            try:
                restored = self._load(step, abstract)
            except (UserError, jax.errors.JaxRuntimeError):  # the latter: the device is out of memory
                raise
            except Exception as error:  # Orbax and TensorStore report damaged files with a dozen types of exception
                self._check_store(error)
                self._note_damaged(step, error)
                continue
            self._report_damaged()
            for newer in self.steps() if jax.process_index() == 0 else ():
                if newer > step:
                    move_folder(self._path(newer), self.directory / f"{newer}.damaged")
            return restored
        if self._damaged:
            self._raise_all_damaged()
        return None

    def newest_params(self, steps: list[int], sharding: Shardings) -> Any:
        """The parameters of the first readable checkpoint of `steps`. Raises UserError if all are damaged."""
        for params in self._readable(steps, sharding):
            return params
        self._raise_all_damaged()

    def params(self, step: int, sharding: Shardings) -> Any:
        """The parameters to translate with: the moving average of `step` if the run kept one."""
        with _opened(self._path(step)) as path:
            check_checkpoint(path)
            arrays = ocp.checkpointables_metadata(path).metadata
            name = "ema" if "ema" in arrays else "params"
            abstract = jax.tree.map(
                lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
                arrays[name],
                _shardings(arrays[name], sharding),
            )
            return ocp.load_checkpointables(path, {name: abstract})[name]

    def average(self, steps: list[int], count: int, sharding: Shardings) -> Any:
        """The mean of the parameters of the first `count` readable checkpoints of `steps`, summed in float64.

        Raises UserError if all are damaged.
        """
        total: Any = None
        used = 0
        for params in itertools.islice(self._readable(steps, sharding), count):
            used += 1
            shards = jax.tree.map(_shards, params)
            total = shards if total is None else jax.tree.map(np.add, total, shards)
        if not used:
            self._raise_all_damaged()
        self._report_damaged()
        report_average(self.directory, used, count)

        def mean(leaf: jax.Array, total: dict[str, np.ndarray]) -> jax.Array:
            return jax.make_array_from_callback(
                leaf.shape, leaf.sharding, lambda index: (total[str(index)] / used).astype(np.float32)
            )

        return jax.tree.map(mean, params, total)

    def _readable(self, steps: Iterable[int], sharding: Shardings) -> Iterator[Any]:
        """Yields the parameters of each checkpoint that is not damaged.

        Raises CheckpointChangedError if one was deleted or replaced meanwhile.
        """
        for step in steps:
            before, params = self._version(step), None
            try:
                params = self.params(step, sharding)
            except jax.errors.JaxRuntimeError:  # the device is out of memory
                raise
            except Exception as error:
                if before and self._version(step) == before:
                    self._check_store(error)
                    self._note_damaged(step, error)
                    continue
            if self._version(step) != before or params is None:
                raise CheckpointChangedError
            self._report_damaged()
            yield params

    def _version(self, step: int) -> tuple[int, int] | None:
        """What changes if a checkpoint is deleted or saved again; None if it is not there."""
        path = self._path(step)
        with contextlib.suppress(OSError):
            file = path / METADATA
            status = (file if file.exists() else path).stat()
            return status.st_mtime_ns, status.st_size
        return None

    def _path(self, step: int) -> Path:
        return self.directory / str(step)

    def _load(self, step: int, abstract: TrainState) -> Restored:
        parts = abstract.parts
        with _opened(self._path(step)) as path:
            check_checkpoint(path)
            record = ocp.checkpointables_metadata(path).custom_metadata
            if differences := shape_differences(tree_shapes(parts), record["shapes"]):
                raise UserError(
                    f"{self._path(step)}: the checkpoint does not fit this config ({differences}): restore the old "
                    "settings of `model`, `optimizer` and `vocab` (with data.carry_state also train.batch_tokens and "
                    "data.block_length), or start from its parameters in a new workdir with init_from"
                )
            state = TrainState.from_parts(ocp.load_checkpointables(path, parts))
        return Restored(step, state, record["data"], record["meta"])

    def _score(self, step: int) -> Score:
        if step not in self._scores:
            try:
                with _opened(self._path(step), METADATA) as path:
                    record = ocp.checkpointables_metadata(path).custom_metadata
                self._scores[step] = Score(record["score"], record["meta"].get("measure") or None)
            except Exception:  # damaged: reported when it is restored
                self._scores[step] = Score(None, None)
        return self._scores[step]

    def _check_store(self, error: Exception) -> None:
        """Raise the error if it is that of an object store, which says nothing about a checkpoint."""
        if isinstance(error, OSError) and is_remote(self.directory):
            raise error

    def _note_damaged(self, step: int, error: Exception) -> None:
        self._damaged[step] = one_line(str(error))[:160]
        self.undamaged = False

    def _report_damaged(self) -> None:
        for step, reason in self._damaged.items():
            print(f"nmt-jax: {self._path(step)}: damaged, using another checkpoint ({reason})", file=sys.stderr)
        self._damaged.clear()

    def _raise_all_damaged(self) -> NoReturn:
        step, reason = next(iter(self._damaged.items()))
        raise UserError(
            f"{self.directory}: all {len(self._damaged)} checkpoints are damaged ({step}: {reason}): "
            "restore them from a copy, or delete the folder to start from scratch"
        )


def _shards(array: jax.Array) -> dict[str, np.ndarray]:
    """The parts of an array that are on the devices of this process, each once, by their index."""
    return {str(shard.index): np.asarray(shard.data, np.float64) for shard in array.addressable_shards}


def load_params(
    workdir: Path,
    which: str | int = "best",
    sharding: Shardings | None = None,
    undamaged: Callable[[Any], None] = lambda params: None,
) -> Any:
    """The trained parameters of a workdir, on the first device unless `sharding` is given.

    which: "best" by the dev metric (the last one if nothing was evaluated), "last", or n for the mean of the last n.
    undamaged: is called with the parameters if all checkpoints that were read are whole.

    Raises UserError if there is no checkpoint, if none is readable, or if parameters are not finite. A training that
    deletes old checkpoints meanwhile does not matter: the newer ones are read then.
    """
    sharding = sharding or SingleDeviceSharding(jax.devices()[0])
    directory = path_of(workdir) / "checkpoints"
    for _ in range(ATTEMPTS):
        try:
            reader = CheckpointReader(directory)
            params = _load_params(reader, which, sharding)
        except CheckpointChangedError:
            time.sleep(0.05)
            continue
        if params is None:
            raise UserError(f"{workdir}: no checkpoint; train first: `nmt-jax train --config=… --workdir={workdir}`")
        check_parameters(params, str(workdir))
        if reader.undamaged:
            undamaged(params)
        return params
    raise UserError(f"{directory}: training deletes checkpoints faster than they can be read; raise train.keep_last")


def _shardings(tree: Any, sharding: Shardings) -> Any:
    """The sharding of each array of a tree."""
    return sharding(tree) if callable(sharding) else jax.tree.map(lambda _: sharding, tree)


def _load_params(reader: CheckpointReader, which: str | int, sharding: Shardings) -> Any:
    """The parameters as `load_params` returns them; None if there is no checkpoint. Raises CheckpointChangedError."""
    steps = reader.steps()
    if not steps:
        # Set aside while it is saved again, or put back since the folder was listed.
        if any(reader.directory.glob(f"*{REPLACED}")) or reader.steps():
            raise CheckpointChangedError
        return None
    newest_first = steps[::-1]
    if isinstance(which, int):
        return reader.average(newest_first, which, sharding)
    best_first = [*reader.best_steps(), *newest_first] if which == "best" else newest_first
    return reader.newest_params(list(dict.fromkeys(best_first)), sharding)
