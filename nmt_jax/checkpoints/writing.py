"""Writing checkpoints: atomically and in the background, keeping the last and the best."""

import contextlib
import math
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from orbax.checkpoint import v1 as ocp

from nmt_jax.checkpoints.ranking import Score
from nmt_jax.checkpoints.reading import REPLACED, CheckpointReader
from nmt_jax.checkpoints.train_state import TrainState
from nmt_jax.checkpoints.verification import tree_shapes
from nmt_jax.errors import UserError
from nmt_jax.storage.files import SUMS, is_complete, move_folder, remove_folder, upload, write_sums
from nmt_jax.storage.paths import is_remote


class Checkpoints(CheckpointReader):
    """Reads and writes the folder `checkpoints/` of a workdir.

    Saving is asynchronous. If a save fails, for example on a full disk, the next call raises the error, also `check`.
    All processes must make the same calls; process 0 deletes old checkpoints. In an object store, process 0 also writes
    the arrays of all, since only its local folder is copied there.
    """

    def __init__(
        self,
        directory: Path,
        keep_last: int = 1,
        keep_best: int = 0,
        broadcast: Callable[[Callable[[], Any]], Any] = lambda make: make(),
    ):
        """Keep the `keep_last` newest checkpoints and the `keep_best` ones with the highest scores.

        broadcast: returns in all processes what a function returns in process 0.
        """
        if keep_last < 1:
            raise UserError(f"train.keep_last={keep_last} must be at least 1")
        super().__init__(directory)
        self._keep_last, self._keep_best = keep_last, keep_best
        self._saving: threading.Thread | None = None
        self._failed: UserError | None = None
        # Orbax writes a checkpoint by renaming folders, which object stores cannot; a whole one is copied there.
        # All processes must name the same folder to Orbax; it is that of process 0, and the others do not use it.
        self._staging: Path | None = None
        if is_remote(self.directory):
            self._staging = Path(broadcast(lambda: tempfile.mkdtemp(prefix="nmt-jax-")))
        self._restore_replaced()

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        with contextlib.suppress(UserError) if error else contextlib.nullcontext():
            try:
                self.wait()  # a failed last save must not hide the error that ended the run
            finally:
                if self._staging and jax.process_index() == 0:
                    remove_folder(self._staging)

    def save(
        self, step: int, state: TrainState, data_state: Any, meta: Mapping[str, Any], score: float | None = None
    ) -> None:
        """Start saving; the arrays are copied before this returns, so that the next step may consume `state`.

        data_state and meta are JSON values; floats are restored exactly. score: ranks checkpoints, higher is better,
        among those with the same meta["measure"]; NaN counts as None.
        Raises UserError if this save or the previous one failed; the finished checkpoints stay.
        """
        self.wait()
        if score is not None and math.isnan(score):
            score = None
        parts = state.parts
        record = {"data": data_state, "meta": dict(meta), "score": score, "shapes": tree_shapes(parts)}
        self.set_aside(step)
        try:
            path = self._path(step)
            if self._staging:
                path, parts = self._staging / str(step), jax.tree.map(_gather, parts)
            saving = ocp.save_checkpointables_async(path, parts, overwrite=True, custom_metadata=record)
        except (OSError, ValueError) as error:
            raise self._save_failed(step, error) from error
        self._scores[step] = Score(score, meta.get("measure"))
        self._saving = threading.Thread(target=self._finish, args=(step, saving))
        self._saving.start()

    def check(self) -> None:
        """Raise UserError if the current save has failed; never waits."""
        if self._saving and not self._saving.is_alive():
            self.wait()

    def wait(self) -> None:
        """Wait for the current save, then delete old checkpoints. Raises UserError if the save failed."""
        if self._saving is None:
            return
        self._saving.join()
        failed, self._saving, self._failed = self._failed, None, None
        if failed:
            raise failed
        self.clean()

    def set_aside(self, step: int) -> None:
        """Keep the checkpoint of a step that is saved again: Orbax would delete it before the new one is complete."""
        if jax.process_index() == 0 and is_complete(self._path(step)):
            move_folder(self._path(step), self.directory / f"{step}{REPLACED}")

    def clean(self) -> None:
        """Delete checkpoints that are not kept."""
        self._restore_replaced()
        best = self.best_steps()[: self._keep_best] if self._keep_best else []
        kept = {*self.steps()[-self._keep_last :], *best}
        for step in self.steps() if jax.process_index() == 0 else ():
            if step not in kept:
                self._delete(step)

    def _restore_replaced(self) -> None:
        """Put back checkpoints set aside whose new version was not completed; delete the others."""
        for replaced in self.directory.glob(f"*{REPLACED}") if jax.process_index() == 0 else ():
            path = replaced.with_name(replaced.name.removesuffix(REPLACED))
            if is_complete(path):
                remove_folder(replaced)
            else:
                move_folder(replaced, path)

    def _delete(self, step: int) -> None:
        """Delete a checkpoint; a kill meanwhile must not leave anything that looks like one."""
        path = self._path(step)
        if not is_remote(path):  # there, the sums are deleted first
            deleted = path.with_name(f"{step}.deleted")
            move_folder(path, deleted)
            path = deleted
        remove_folder(path)

    def _finish(self, step: int, saving: Any) -> None:
        try:
            saving.result()
            if jax.process_index() == 0:
                self._complete(step)
        except Exception as error:  # TensorStore reports a full disk as ValueError, the file system as OSError
            self._failed = self._save_failed(step, error)
            self._failed.__cause__ = error

    def _complete(self, step: int) -> None:
        """Write the sums of a checkpoint, and copy it to the object store if it belongs there."""
        if self._staging is None:
            write_sums(self._path(step) / SUMS)
            return
        staged = self._staging / str(step)
        write_sums(staged / SUMS)
        remove_folder(self._path(step))  # what an interrupted upload has left
        upload(staged, self._path(step))
        remove_folder(staged)

    def _save_failed(self, step: int, error: Exception) -> UserError:
        for unfinished in self.directory.glob(f"{step}.orbax-checkpoint-tmp*"):
            remove_folder(unfinished)  # frees the space
        self._restore_replaced()
        steps = self.steps()
        state = f"the checkpoint of step {steps[-1]} is intact" if steps else "there is no checkpoint yet"
        full = any(sign in str(error) for sign in ("No space left on device", "RESOURCE_EXHAUSTED"))
        reason = "the disk is full" if full else " ".join(str(error).split())[:400]
        return UserError(
            f"{self.directory}: cannot save step {step}: {reason}; {state}; "
            "fix the problem and run the same command again"
        )


def _gather(array: jax.Array) -> jax.Array | np.ndarray:
    """The whole array in process 0, and nothing of its size in the others; Orbax writes NumPy arrays in process 0."""
    if array.is_fully_addressable:
        return array
    whole = array if array.is_fully_replicated else multihost_utils.process_allgather(array, tiled=True)
    return np.asarray(whole) if jax.process_index() == 0 else np.zeros(1, array.dtype)
