"""Runs cases in a process of their own: fast, as JAX starts once, and able to see hangs, crashes and memory."""

import contextlib
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time
import traceback
from typing import NamedTuple

from nmt_jax import boundary
from tests.conftest import ROOT
from tests.fuzz.mistakes import Case

SECONDS = 60  # a case that takes longer hangs
MEMORY = 2 << 30  # bytes that a case may add
CASES_PER_PROCESS = 100
SIGNALLED = {128 + signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGPIPE}


class Outcome(NamedTuple):
    """How a case ended. `code` is None if the process crashed or hung, and then `stderr` says which."""

    code: int | None
    stderr: str
    seconds: float
    memory: int = 0
    readable: bool = True  # stderr, which the case may have closed

    def fault(self) -> str:
        """What is wrong with the outcome, or ""."""
        if self.code is None:
            return self.stderr
        if "Traceback (most recent call last)" in self.stderr:
            return "a traceback"
        if self.memory > MEMORY:
            return f"{self.memory >> 20} MiB of memory"
        if self.code not in (0, 2, *SIGNALLED):
            return f"exit code {self.code}"
        if not self.readable:
            return ""
        errors = [line for line in self.stderr.split("\n") if line.startswith("nmt-jax: error: ")]
        if (self.code == 2) != (len(errors) == 1):
            return f"exit code {self.code} with {len(errors)} lines of error"
        if self.code == 2 and not self.stderr.rstrip("\n").split("\n")[-1].startswith("nmt-jax: error: "):
            return "more than one line of error"
        return ""


class Runner:
    """A context with a process that runs one case after another."""

    def __init__(self, scratch: pathlib.Path):
        self._scratch = scratch
        self._process: subprocess.Popen[str] | None = None
        self._done = 0

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def run(self, case: Case) -> Outcome:
        """Run a case and return how it ended."""
        if self._process is None or self._done >= CASES_PER_PROCESS:
            self._start()
        self._done += 1
        files = {name: self._scratch / name for name in ("stdin", "stdout", "stderr", "result")}
        files["stdin"].write_bytes(case.stdin)
        files["result"].unlink(missing_ok=True)
        began = time.monotonic()
        request = {"arguments": case.arguments, "folder": str(case.folder), "broken": case.broken}
        request |= {name: str(file) for name, file in files.items()}
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        while not files["result"].exists():
            if self._process.poll() is not None:
                code = self._process.returncode
                self._stop()
                return Outcome(None, f"the process ended with {code}", time.monotonic() - began)
            if time.monotonic() - began > SECONDS:
                self._stop()
                return Outcome(None, f"no end after {SECONDS} s", time.monotonic() - began)
            time.sleep(0.002)
        result = json.loads(files["result"].read_text())
        stderr = files["stderr"].read_text(errors="replace")
        readable = not any(one.startswith("2>") for one in case.broken)
        return Outcome(result["code"], stderr, time.monotonic() - began, result["memory"], readable)

    def _start(self) -> None:
        self._stop()
        command = [sys.executable, "-m", "tests.fuzz.runner"]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, env=environment)
        self._done = 0

    def _stop(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            assert self._process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            self._process = None


def serve() -> None:
    """Run the cases that come as lines of JSON on stdin."""
    boundary.log_libraries()
    for line in os.fdopen(os.dup(0), encoding="utf-8"):
        request = json.loads(line)
        os.chdir(request["folder"])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with streams(request):
            code = call(request["arguments"])
        memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        temporary = pathlib.Path(request["result"] + ".tmp")
        temporary.write_text(json.dumps({"code": code, "memory": memory}))
        temporary.rename(request["result"])


@contextlib.contextmanager
def streams(request):
    """Standard streams of a case, as the program itself opens them; files, closed, or full disks."""
    modes = {0: ("stdin", os.O_RDONLY), 1: ("stdout", os.O_WRONLY), 2: ("stderr", os.O_WRONLY)}
    saved = {number: os.dup(number) for number in modes}
    objects = sys.stdin, sys.stdout, sys.stderr
    for number, (name, mode) in modes.items():
        flags = mode | (os.O_CREAT | os.O_TRUNC if number else 0)
        descriptor = os.open(request[name], flags, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)
    full = os.open("/dev/full", os.O_WRONLY)
    for redirection in request["broken"]:
        number = {"<": 0, ">": 1, "2": 2}[redirection[0]]
        if redirection.endswith("full"):
            os.dup2(full, number)
        else:
            with contextlib.suppress(OSError):  # twice
                os.close(number)
    boundary.open_streams()
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = objects
        for number, copy in saved.items():
            os.dup2(copy, number)
            os.close(copy)
        os.close(full)


def call(arguments: list[str]) -> int:
    """The exit code of `nmt-jax` with these arguments; a traceback is printed, as the interpreter would."""
    from nmt_jax.__main__ import main

    try:
        return main(arguments)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 1
    except BaseException:
        traceback.print_exc()
        return 1


if __name__ == "__main__":
    serve()
