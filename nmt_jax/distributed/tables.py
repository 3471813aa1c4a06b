"""Tables that are computed in blocks of rows, all by this process or shared with others."""

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nmt_jax.distributed.parts import Part, digest
from nmt_jax.distributed.shared_output import SharedOutput
from nmt_jax.progress import track

ROWS = 1024  # of a block that processes share; it must not depend on their number


class Tables:
    """Arrays float[N, ...], one for each call of `add`; `shared` with other processes, or computed here if None."""

    def __init__(self, shared: SharedOutput | None = None):
        self._shared = shared
        self._blocks: list[range] = []  # of each table, if they are shared
        self._arrays: list[np.ndarray] = []  # if not

    def add(
        self, compute: Callable[[int, int], np.ndarray], texts: Sequence[Any], rows_per_call: int, title: str
    ) -> int:
        """Compute rows of one more table, with progress on a terminal under `title`; returns its number, from 0.

        compute: returns rows [first, stop). texts: what the rows are made of, N items. rows_per_call: how many rows to
        ask for at a time. Processes that share the table ask for their blocks only. Raises UserError if finished blocks
        were made from other texts.
        """
        num_rows = len(texts)
        size = rows_per_call if self._shared is None else ROWS
        starts = range(0, num_rows, max(min(size, num_rows), 1))
        first = self._blocks[-1].stop if self._blocks else 0
        identity = "" if self._shared is None else digest(texts)
        taken = [
            start
            for block, start in enumerate(starts, start=first)
            if self._shared is None or self._shared.takes(block, identity)
        ]
        arrays = []
        total = min(len(taken) * starts.step, num_rows)
        for start in track(taken, title, total=total, each=starts.step) if taken[1:] else taken:
            stop = min(start + starts.step, num_rows)
            calls = range(start, stop, min(rows_per_call, stop - start))
            array = np.concatenate([compute(row, min(row + calls.step, stop)) for row in calls])
            if self._shared is None:
                arrays.append(array)
                continue
            stream = io.BytesIO()
            np.save(stream, array, allow_pickle=False)
            self._shared.write(first + start // starts.step, Part(stream.getvalue(), identity))
        if self._shared is None:
            self._arrays.append(np.concatenate(arrays))
            return len(self._arrays) - 1
        self._blocks.append(range(first, first + len(starts)))
        return len(self._blocks) - 1

    def collect(self) -> list[np.ndarray] | None:
        """Return all tables, or None if another process gets them."""
        if self._shared is None:
            return self._arrays
        if not self._shared.is_joiner(self._blocks[-1].stop if self._blocks else 0):
            return None
        return [np.concatenate([self._read(self._shared, block) for block in blocks]) for blocks in self._blocks]

    @staticmethod
    def _read(shared: SharedOutput, block: int) -> np.ndarray:
        array: np.ndarray = np.load(io.BytesIO(shared.parts.read(block).data), allow_pickle=False)
        return array
