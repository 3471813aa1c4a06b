"""One output file of a job of several processes: who computes which block, and who joins the parts.

Processes that know the address of process 0 meet at the start, notice at once if one is lost, and process 0 joins the
parts. Processes without it, such as the tasks of a SLURM array, run at any time; the last one to finish joins them.
"""

import pathlib
import sys
import time
from collections.abc import Mapping
from typing import Any

from nmt_jax.distributed.code_version import code_hash
from nmt_jax.distributed.parts import Part, Parts, differing_settings
from nmt_jax.distributed.process_spec import ProcessSpec
from nmt_jax.distributed.rendezvous import VISIBLE_SECONDS, ProcessInfo, Rendezvous
from nmt_jax.errors import UserError
from nmt_jax.interrupts import Interrupted

POLL_SECONDS = 0.2  # between two looks at the parts of other processes


class SharedOutput:
    """The output of a job, a context manager; all processes ask for the same blocks in the same order.

    spec: this process, None if it is the only one; without a coordinator, processes do not meet. together: connect the
    devices of all processes, which compute every block together, because the model is split over them. Raises
    UserError, the same in all processes, if the output is complete or the parts belong to another job, and if processes
    differ.
    """

    def __init__(
        self,
        output: pathlib.Path,
        job: Mapping[str, Any],
        spec: ProcessSpec | None = None,
        *,
        overwrite: bool = False,
        together: bool = False,
        join_seconds: float = 300.0,
        lost_seconds: float = 60.0,
    ):
        self.parts = Parts(output, job)
        self.spec = spec or ProcessSpec("", 1, 0)
        self.together = together
        self._overwrite, self._join_seconds, self._lost_seconds = overwrite, join_seconds, lost_seconds
        self._rendezvous: Rendezvous | None = None
        self._finished: set[int] = set()  # blocks that were finished at the start
        self._turn = 0
        self._complete = False  # when this process started

    def __enter__(self) -> "SharedOutput":
        if not self.spec.coordinator:
            self._start_without_meeting()
            return self
        try:
            self.parts.check(self._overwrite)
            problem = ""
        except UserError as error:
            problem = str(error)
        if self.spec.process == 0:
            try:
                self.parts.folder.mkdir(exist_ok=True)
            except OSError as error:
                raise UserError(problem or f"{self.parts.folder}: cannot be made: {error.strerror}") from None
        self._rendezvous = Rendezvous(self.spec, self.parts.folder, self._lost_seconds, "--output")
        info = {"job": self.parts.job, "code": code_hash(), "problem": problem}
        try:
            address = self._rendezvous.join(info, find_difference, self._join_seconds)
        except UserError:
            if self.spec.process == 0 and not any(self.parts.folder.iterdir()):
                self.parts.discard()
            raise
        self._finished = set(self._rendezvous.broadcast(self._start))
        if self.together:
            from nmt_jax.distributed.processes import connect_devices  # imports JAX, which takes seconds

            connect_devices(address, self.spec, self._lost_seconds)
        return self

    def _start_without_meeting(self) -> None:
        """Start without meeting other processes; if these have written the output, there is nothing left to do."""
        several, written = self.spec.processes > 1, self.parts.output.is_file()
        if several and written and self.parts.is_complete():
            if self._overwrite:
                raise UserError(f"{self.parts.output}: exists; delete it, since the processes do not meet")
            self._complete = True
            return
        self.parts.check(self._overwrite or (several and not written))
        self.parts.start()
        if several and not written and self.parts.output.is_file():  # the parts were joined since this process looked
            self.parts.discard()
            self._complete = True
            return
        self._finished = self.parts.finished()

    def _start(self) -> list[int]:
        self.parts.start()
        return sorted(self.parts.finished())

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if self._rendezvous and self.together:
            from nmt_jax.distributed.processes import disconnect_devices

            disconnect_devices(self._rendezvous, error)
        elif self._rendezvous:
            stopped = error is None or isinstance(error, Interrupted | KeyboardInterrupt)
            self._rendezvous.leave(failed=None if stopped else str(error) or type(error).__name__)
        in_charge = self.spec.process == 0 if self._rendezvous else self.spec.processes == 1
        if error and in_charge and not self.parts.finished():
            self.parts.discard()  # nothing to resume
        # Of two processes that finish at the same time, one may have joined and deleted what the other still reads.
        joined_by_other = isinstance(error, FileNotFoundError) and not self.parts.folder.exists()
        return joined_by_other and self.spec.processes > 1 and not self._rendezvous

    @property
    def num_shares(self) -> int:
        """The number of processes that divide the blocks."""
        return 1 if self.together else self.spec.processes

    def takes(self, block: int, digest: str) -> bool:
        """Return whether this process takes part in a block; called once for each block, in their order.

        digest: of the input of the block. Raises UserError if the block is finished, but from another input.
        """
        if self._complete:
            return False
        if block in self._finished:
            self.parts.check_input(block, digest)
            return False
        if self.together:
            return True
        # Processes that have met divide what is left. Others may have started when more or less was left.
        turn = self._turn if self._rendezvous else block
        self._turn += 1
        return turn % self.spec.processes == self.spec.process

    def write(self, block: int, part: Part) -> None:
        """Write the part of a block; of processes that compute together, the first one does."""
        if not self.together or self.spec.process == 0:
            self.parts.write(block, part)

    def is_joiner(self, num_blocks: int) -> bool:
        """Return whether this process joins the parts; if the processes have met, process 0 waits for the others."""
        if self._complete:
            who = f"process {self.spec.process} of {self.spec.processes} has nothing to do"
            print(f"nmt-jax: {who}: {self.parts.output} is complete", file=sys.stderr)
        if self._complete or (self._rendezvous and self.spec.process):
            return False
        missing = self._missing(num_blocks)
        if self._rendezvous:
            waiting_since = None
            while missing:
                if self._rendezvous.all_finished:  # new files may become visible late
                    waiting_since = waiting_since or time.monotonic()
                    if time.monotonic() - waiting_since > VISIBLE_SECONDS:
                        raise UserError(f"{self._unfinished(missing)}; run the same command again")
                time.sleep(POLL_SECONDS)
                missing = self._missing(num_blocks)
        if missing:
            who = f"process {self.spec.process} of {self.spec.processes} has done its share"
            print(f"nmt-jax: {who}; {self._unfinished(missing)}; the last process joins them", file=sys.stderr)
        return not missing

    def _missing(self, num_blocks: int) -> set[int]:
        return set(range(num_blocks)) - self.parts.finished()

    def _unfinished(self, missing: set[int]) -> str:
        return f"{self.parts.output}: {len(missing)} blocks are not finished"


def find_difference(infos: list[ProcessInfo]) -> str | None:
    """Return why processes with these descriptions cannot do one job, or None if they can."""
    first = infos[0]
    if first["problem"]:
        return str(first["problem"])
    for info in infos[1:]:
        who, other = f"process {info['process']} ({info['host']})", f"process 0 ({first['host']})"
        if differing := differing_settings(info["job"], first["job"]):
            return f"{who} has a different {', '.join(differing)} from {other}; start all with the same command"
        if info["code"] != first["code"]:
            return f"{who} runs another version of nmt-jax than {other}; install the same on all hosts"
    return None
