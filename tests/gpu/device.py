"""The device that the tests of this folder compare with the CPU.

python -m tests.gpu.device prints the devices that JAX finds, or one line that says what to install (exit code 1).

$NMT_JAX_TEST_DEVICE names the device as JAX_PLATFORMS does, cuda by default. With `cpu` the tests are rehearsed without
a GPU: the programs made for GPUs run on the CPU, and two devices are simulated.
"""

import os
import subprocess
import sys
from typing import NamedTuple

from tests.conftest import ROOT

DEVICE = os.environ.get("NMT_JAX_TEST_DEVICE", "cuda")
INSTALL = (
    "the tests need an NVIDIA GPU, its driver and `pip install -e '.[cuda]'` in this environment (CONTRIBUTING.md)"
)
SIMULATED = 2
# Asked for by name, or JAX would take the CPU without a word.
PROGRAM = "import jax, sys; found = jax.devices(sys.argv[1]); print(len(found), found[0].device_kind, sep='\\t')"


class Found(NamedTuple):
    """The number of devices and their name; without a device, the last line of JAX's error message."""

    count: int
    name: str


def environment(count: int | None = 1) -> dict[str, str]:
    """The environment of a program that runs on the first `count` devices, by default one; on all of them for None.

    The compiler gets the flags that users have, not those of the other tests, which compile fast for the CPU.
    """
    new = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    new |= {"JAX_PLATFORMS": DEVICE if DEVICE == "cpu" else f"{DEVICE},cpu"}
    new |= {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # other programs may be using the device
    if DEVICE == "cpu":
        new["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={count or SIMULATED}"
    elif count:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        names = visible.split(",") if visible else [str(number) for number in range(count)]
        new["CUDA_VISIBLE_DEVICES"] = ",".join(names[:count])
    return new


def find() -> Found:
    """What JAX finds, in a process of its own."""
    command = [sys.executable, "-c", PROGRAM, DEVICE]
    finished = subprocess.run(command, env=environment(None), cwd=ROOT, capture_output=True, text=True, check=False)
    if finished.returncode:
        return Found(0, (finished.stderr.strip() or "JAX did not start").splitlines()[-1])
    count, name = finished.stdout.splitlines()[-1].split("\t")
    return Found(int(count), name)


def main() -> int:
    """Print one line; return the exit code."""
    count, name = find()
    print(f"{count} x {name}" if count else f"no GPU was found ({name}): {INSTALL}")
    return int(not count)


if __name__ == "__main__":
    sys.exit(main())
