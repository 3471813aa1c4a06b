"""Several processes on this machine, for trying out training on a cluster."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType
from typing import IO

from absl import flags

from nmt_jax.boundary import USAGE_ERROR
from nmt_jax.distributed.process_spec import free_port
from nmt_jax.errors import UserError
from nmt_jax.interrupts import SIGNALS, Interrupted, handling

MOST_PROCESSES = 256
ERROR = b"nmt-jax: error: "
SAME_SECONDS = 5.0  # within which processes report a mistake that all of them find
LEAVE_SECONDS = 90.0  # for processes to exit after one has failed; longer than --lost_seconds of train


def launch(flag_values: flags.FlagValues, command: Sequence[str]) -> int:
    """Runs `command` in several processes; returns the first exit code that is not 0."""
    if flag_values.processes > MOST_PROCESSES:
        raise UserError(f"--processes={flag_values.processes}: at most {MOST_PROCESSES} are possible on one machine")
    commands = [["nmt-jax", *arguments] for arguments in process_arguments(command, flag_values.processes, free_port())]
    if flag_values.dry_run:
        print("\n".join(map(shlex.join, commands)))
        return 0
    environment = dict(os.environ)
    if flag_values.devices:
        simulated = f"--xla_force_host_platform_device_count={flag_values.devices}"
        environment["XLA_FLAGS"] = f"{environment.get('XLA_FLAGS', '')} {simulated}".strip()
    programs = [[sys.executable, "-m", "nmt_jax", *arguments] for _, *arguments in commands]
    return ProcessGroup(programs, environment).run()


def process_arguments(command: Sequence[str], processes: int, port: int) -> list[list[str]]:
    """Returns the arguments of each process."""
    if processes == 1:
        return [list(command)]
    common = [f"--coordinator=127.0.0.1:{port}", f"--processes={processes}"]
    return [[*command, *common, f"--process={process}"] for process in range(processes)]


class ProcessGroup:
    """Processes that end together; the output of all but the first is prefixed with the number of the process.

    A mistake that all of them find, as in the flags, is reported by the first one only.
    """

    def __init__(self, commands: Sequence[Sequence[str]], environment: dict[str, str]):
        self._received = 0
        self._processes = [
            subprocess.Popen(
                command, env=environment, stderr=subprocess.PIPE if number else None, start_new_session=True
            )
            for number, command in enumerate(commands)
        ]
        self._readers = [
            threading.Thread(target=_copy_lines, args=(f"[{number}] ", process.stderr, self._processes[0]), daemon=True)
            for number, process in enumerate(self._processes)
            if process.stderr
        ]

    def run(self) -> int:
        """Waits for all processes and forwards signals to them; returns the exit code."""
        for reader in self._readers:
            reader.start()
        with handling(dict.fromkeys(SIGNALS, self._forward)):
            try:
                first = self._wait()
            finally:
                self._signal(signal.SIGKILL)
        for process in self._processes:
            process.wait()
        for reader in self._readers:
            reader.join(timeout=5)
        if self._received and first == 128 + self._received:
            raise Interrupted(self._received)
        return first

    def _wait(self) -> int:
        """Returns the exit code of the process that failed; the others get time to exit, then are killed.

        That is the first one that was killed, else one that found invalid input, else the first to exit.
        """
        codes: dict[int, int] = {}  # in the order in which processes exited
        deadline = float("inf")
        while len(codes) < len(self._processes):
            for number, process in enumerate(self._processes):
                if number not in codes and process.poll() is not None:
                    codes[number] = process.returncode
                    if process.returncode:
                        deadline = min(deadline, time.monotonic() + LEAVE_SECONDS)
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
        killed = {number: code for number, code in codes.items() if code < 0}  # the others exited because of these
        for number, code in killed.items():
            who = f"process {number} of {len(self._processes)} was killed by {signal.Signals(-code).name}"
            print(f"nmt-jax: error: {who}; continue with the same command", file=sys.stderr, flush=True)
        invalid = [code for code in codes.values() if code == USAGE_ERROR]
        first = next((code for code in [*killed.values(), *invalid, *codes.values()] if code), 0)
        return 128 - first if first < 0 else first

    def _forward(self, number: int, frame: FrameType | None) -> None:
        self._received = number
        self._signal(number)

    def _signal(self, number: int) -> None:
        for process in self._processes:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(number)


def _copy_lines(prefix: str, stream: IO[bytes], first: subprocess.Popen[bytes]) -> None:
    """Writes the lines of a process to stderr, without the error of invalid input if the first process reports one."""
    with stream:
        for line in stream:
            if line.startswith(ERROR):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    first.wait(SAME_SECONDS)
                if first.returncode == USAGE_ERROR:
                    continue
            sys.stderr.write(prefix + line.decode(errors="replace"))
            sys.stderr.flush()
