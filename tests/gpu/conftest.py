"""Runs `nmt-jax` on the device and on the CPU, for all tests of this folder."""

import pathlib
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.gpu import device

REHEARSED = device.DEVICE == "cpu"
SECONDS = 1800  # for one command; a rehearsal on a busy CPU takes long


@pytest.fixture(scope="session")
def found() -> device.Found:
    """The devices; skips all tests where there is none, as on the machines of continuous integration."""
    found = device.find()
    if not found.count:
        pytest.skip(f"no GPU was found ({found.name}): {device.INSTALL}")
    return found


class Commands:
    """Starts `nmt-jax` on one side or the other."""

    def __init__(self, found: device.Found) -> None:
        self.found = found

    def start(self, *arguments: object, count: int = 0, **environment: str) -> subprocess.Popen[str]:
        """Start a command on the first `count` devices, on the CPU for 0."""
        given = device.environment(count) if count else device.os.environ | {"JAX_PLATFORMS": "cpu"}
        module = "tests.gpu.rehearsal" if count and REHEARSED else "nmt_jax"
        command = [sys.executable, "-m", module, *map(str, arguments)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, env=given | environment, cwd=ROOT, text=True, **pipes)

    def finish(self, *processes: subprocess.Popen[str]) -> list[str]:
        """Wait for commands, and return what each wrote to stdout; on failure its messages are shown."""
        written = []
        for process in processes:
            try:
                written.append(process.communicate(timeout=SECONDS))
            except subprocess.TimeoutExpired:
                process.kill()
                written.append(process.communicate())
        for process, (_, errors) in zip(processes, written, strict=True):
            assert process.returncode == 0, f"{process.args}\n{errors}"
        return [out for out, _ in written]

    def both(self, *arguments: object, **environment: str) -> list[str]:
        """What a command writes to stdout on the CPU and on the device; the environment is that on the device."""
        return self.finish(self.start(*arguments), self.start(*arguments, count=1, **environment))

    def train(
        self, page: str, workdir: pathlib.Path, changes: dict[str, object], count: int, **environment: str
    ) -> subprocess.Popen[str]:
        """Start training on the first `count` devices, on the CPU for 0."""
        flags = [f"--config.{name}={value}" for name, value in changes.items()]
        command = ("train", f"--config={ROOT}/configs/{page}", f"--workdir={workdir}", *flags)
        return self.start(*command, count=count, **environment)


@pytest.fixture(scope="session")
def commands(found: device.Found) -> Commands:
    """The commands on both sides."""
    return Commands(found)
