"""Checkpoints: written whole or not at all, the last and the best kept, read back on any number of devices."""

import contextlib
import logging
import shutil
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Sharding, SingleDeviceSharding
from orbax.checkpoint import v1 as ocp

from nmt_jax.checkpoints.checksums import check_sums, write_sums
from nmt_jax.checkpoints.train_state import TrainState
from nmt_jax.errors import UserError

# Orbax logs each failure with several tracebacks of its threads; the one line a user needs is raised below.
logging.getLogger("absl").addFilter(lambda record: "orbax" not in record.pathname)


class Restored(NamedTuple):
    """What a checkpoint gives back."""

    step: int
    state: TrainState
    data_state: Any
    meta: dict[str, Any]


class Checkpoints:
    """The folder `checkpoints/` of a workdir: one Orbax checkpoint a step, named by the step.

    Saving is asynchronous; a failure (a full disk, say) comes out of the next call, also of `check()`. All processes
    must make the same calls; process 0 tidies up.
    """

    def __init__(self, directory: Path, keep_last: int = 1, keep_best: int = 0):
        """Keep the `keep_last` newest checkpoints, and the `keep_best` of highest score."""
        if keep_last < 1:
            raise UserError(f"train.keep_last={keep_last}: at least one checkpoint must be kept, use 1 or more")
        self.directory = Path(directory).absolute()  # Orbax fails late, in a thread, on a relative path
        self._keep_last, self._keep_best = keep_last, keep_best
        self._saving: threading.Thread | None = None
        self._failed: UserError | None = None
        self._scores: dict[int, float | None] = {}

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(UserError) if error else contextlib.nullcontext():
            self.wait()  # an error of the run must not be masked by one of its last save

    # Reading

    def steps(self) -> list[int]:
        """The steps of the finished checkpoints, oldest first; a half-written one has another name."""
        if not self.directory.is_dir():
            return []
        return sorted(int(path.name) for path in self.directory.iterdir() if path.name.isdecimal() and path.is_dir())

    def best_steps(self) -> list[int]:
        """The steps that have a score, best first; of equal ones the earlier comes first."""
        scores = [(score, step) for step in self.steps() if (score := self._score(step)) is not None]
        return [step for score, step in sorted(scores, key=lambda pair: (-pair[0], pair[1]))]

    def restore(self, abstract: TrainState) -> Restored | None:
        """The newest readable checkpoint, placed as `abstract` (shapes and shardings) says; None if there is none.

        Damaged newer ones are named on stderr and renamed to `STEP.damaged`. Raises UserError if all are damaged, or if
        a checkpoint holds other arrays than `abstract`.
        """
        for step in reversed(self.steps()):
            try:
                restored = self._load(step, abstract)
            except (UserError, jax.errors.JaxRuntimeError):  # the latter: no memory on the device
                raise
            except Exception as error:  # whatever Orbax and TensorStore say of a damaged file, in a dozen types
                self._say_damaged(step, error)
                continue
            self._set_aside([newer for newer in self.steps() if newer > step])
            return restored
        self._refuse_if_all_damaged()
        return None

    def params(self, step: int, sharding: Sharding) -> Any:
        """The parameters to translate with at `step`: the moving average where the run kept one."""
        check_sums(self._path(step))
        arrays = ocp.checkpointables_metadata(self._path(step)).metadata
        name = "ema" if "ema" in arrays else "params"
        abstract = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), arrays[name]
        )
        return ocp.load_checkpointables(self._path(step), {name: abstract})[name]

    def average(self, count: int, sharding: Sharding) -> Any:
        """The mean of the parameters of the last `count` readable checkpoints, summed in float64."""
        total: Any = None
        used = 0
        for step in reversed(self.steps()):
            if used == count:
                break
            try:
                params = self.params(step, sharding)
            except Exception as error:
                self._say_damaged(step, error)
                continue
            params = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)
            total = params if total is None else jax.tree.map(np.add, total, params)
            used += 1
        if not used:
            self._refuse_if_all_damaged()
            raise UserError(f"{self.directory}: no checkpoint here")
        if used < count:
            print(
                f"nmt-jax: {self.directory}: averaging {used} checkpoints, not {count}: there are no more",
                file=sys.stderr,
            )
        return jax.tree.map(lambda leaf: jax.device_put((leaf / used).astype(np.float32), sharding), total)

    def _path(self, step: int) -> Path:
        return self.directory / str(step)

    def _load(self, step: int, abstract: TrainState) -> Restored:
        path, wanted = self._path(step), _parts(abstract)
        check_sums(path)
        record = ocp.checkpointables_metadata(path).custom_metadata
        if differences := _differences(_shapes(wanted), record["shapes"]):
            raise UserError(
                f"{path}: holds another training state than this config describes ({differences}): "
                "restore the old settings of `model`, `optimizer` and `vocab`, or take a new workdir with init_from"
            )
        loaded = ocp.load_checkpointables(path, wanted)
        state = TrainState(params=loaded["params"], ema=loaded.get("ema", ()), **loaded["rest"])
        return Restored(step, state, record["data"], record["meta"])

    def _score(self, step: int) -> float | None:
        if step not in self._scores:
            try:
                self._scores[step] = ocp.checkpointables_metadata(self._path(step)).custom_metadata["score"]
            except Exception:  # damaged: restoring it will say so
                self._scores[step] = None
        return self._scores[step]

    def _say_damaged(self, step: int, error: Exception) -> None:
        reason = " ".join(str(error).split())[:160]
        print(f"nmt-jax: {self._path(step)}: damaged, trying the checkpoint before it ({reason})", file=sys.stderr)

    def _refuse_if_all_damaged(self) -> None:
        if steps := self.steps():
            raise UserError(
                f"{self.directory}: all {len(steps)} checkpoints are damaged: "
                "put back a copy, or remove the folder to start over"
            )

    # Writing

    def save(
        self, step: int, state: TrainState, data_state: Any, meta: Mapping[str, Any], score: float | None = None
    ) -> None:
        """Start saving; the arrays are copied out before this returns, so the next step may consume `state`.

        data_state and meta are plain JSON values; floats come back exactly. `score` ranks checkpoints, higher is
        better. Raises UserError if an earlier save or this one failed; the finished checkpoints stay.
        """
        self.wait()
        record = {"data": data_state, "meta": dict(meta), "score": score, "shapes": _shapes(_parts(state))}
        try:
            saving = ocp.save_checkpointables_async(
                self._path(step), _parts(state), overwrite=True, custom_metadata=record
            )
        except (OSError, ValueError) as error:
            raise self._save_failed(step, error) from error
        self._scores[step] = score
        self._saving = threading.Thread(target=self._finish, args=(step, saving))
        self._saving.start()

    def check(self) -> None:
        """Raise UserError if the save under way has failed; never waits."""
        if self._saving and not self._saving.is_alive():
            self.wait()

    def wait(self) -> None:
        """Wait for the save under way, then delete what is no longer kept. Raises UserError if the save failed."""
        if self._saving is None:
            return
        self._saving.join()
        failed, self._saving, self._failed = self._failed, None, None
        if failed:
            raise failed
        self._delete([step for step in self.steps() if step not in self._kept()])

    def _finish(self, step: int, saving: Any) -> None:
        try:
            saving.result()
            if jax.process_index() == 0:
                write_sums(self._path(step))
        except Exception as error:  # TensorStore reports a full disk as ValueError, the file system as OSError
            self._failed = self._save_failed(step, error)
            self._failed.__cause__ = error

    def _kept(self) -> set[int]:
        best = self.best_steps()[: self._keep_best] if self._keep_best else []
        return {*self.steps()[-self._keep_last :], *best}

    def _save_failed(self, step: int, error: Exception) -> UserError:
        for half_written in self.directory.glob(f"{step}.orbax-checkpoint-tmp*"):
            shutil.rmtree(half_written, ignore_errors=True)  # gives the space back
        steps = self.steps()
        stays = f"the checkpoint of step {steps[-1]} stays" if steps else "there is no checkpoint yet"
        reason = "the disk is full" if _is_disk_full(error) else " ".join(str(error).split())[:200]
        return UserError(
            f"{self.directory}: cannot save step {step}: {reason}; {stays}: mend that and run the same command again"
        )

    def _delete(self, steps: list[int]) -> None:
        if jax.process_index() == 0:
            for step in steps:
                # Renamed first: a kill in the middle of deleting must not leave what looks like a checkpoint.
                doomed = self._path(step).rename(self.directory / f"{step}.deleted")
                shutil.rmtree(doomed, ignore_errors=True)

    def _set_aside(self, steps: list[int]) -> None:
        if jax.process_index() == 0:
            for step in steps:
                aside = self.directory / f"{step}.damaged"
                shutil.rmtree(aside, ignore_errors=True)
                self._path(step).rename(aside)


def load_params(workdir: Path, which: str | int = "best", sharding: Sharding | None = None) -> Any:
    """The trained parameters of a workdir, on the first device unless `sharding` says otherwise.

    which: "best" by the dev metric (the last one where nothing was evaluated), "last", or n for the mean of the last n.
    Raises UserError when there is no checkpoint, or none that can be read.
    """
    sharding = sharding or SingleDeviceSharding(jax.devices()[0])
    checkpoints = Checkpoints(Path(workdir) / "checkpoints")
    steps = checkpoints.steps()
    if not steps:
        raise UserError(
            f"{workdir}: no checkpoint here: train one first with `nmt-jax train --config=… --workdir={workdir}`"
        )
    if isinstance(which, int):
        return checkpoints.average(which, sharding)
    newest_first = steps[::-1]
    best_first = [*checkpoints.best_steps(), *newest_first] if which == "best" else newest_first
    for step in dict.fromkeys(best_first):
        try:
            return checkpoints.params(step, sharding)
        except Exception as error:
            checkpoints._say_damaged(step, error)
    checkpoints._refuse_if_all_damaged()


def name_differences(wanted: Any, found: Any) -> str:
    """Names of the arrays that are missing, unexpected, or of another shape in `found`; empty when the trees agree."""
    return _differences(_shapes(wanted), _shapes(found))


def _shapes(tree: Any) -> dict[str, list[int]]:
    """The shape of every array of a tree, by its name "layer/kernel"."""
    return {
        jax.tree_util.keystr(path, simple=True, separator="/"): list(leaf.shape)
        for path, leaf in jax.tree.leaves_with_path(tree)
    }


def _differences(wanted: Mapping[str, list[int]], found: Mapping[str, list[int]]) -> str:
    lists = {
        "missing": [name for name in wanted if name not in found],
        "unexpected": [name for name in found if name not in wanted],
        "of another shape": [
            f"{name} {found[name]} instead of {wanted[name]}"
            for name in wanted
            if name in found and list(found[name]) != wanted[name]
        ],
    }
    return "; ".join(f"{what}: {_first(names)}" for what, names in lists.items() if names)


def _first(names: list[str], count: int = 8) -> str:
    return ", ".join(names[:count]) + (f" and {len(names) - count} more" if len(names) > count else "")


def _parts(state: TrainState) -> dict[str, Any]:
    """The state as separately readable trees: translating needs the parameters alone."""
    parts = {
        "params": state.params,
        "rest": {"step": state.step, "opt_state": state.opt_state, "skipped": state.skipped},
    }
    return {**parts, "ema": state.ema} if jax.tree.leaves(state.ema) else parts


def _is_disk_full(error: BaseException) -> bool:
    return "No space left on device" in str(error) or "RESOURCE_EXHAUSTED" in str(error)
