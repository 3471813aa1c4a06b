"""What every test shares: a strict JAX, a compilation cache, and the way to the reference data."""

import gc
import os
import pathlib
from collections.abc import Iterator

# All of this holds for the programs that tests start, too.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Tiny shapes are compiled for longer than they run: a third less without the compiler's last optimisations.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(pathlib.Path(__file__).resolve().parent.parent / ".cache/compilation")
)
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

import jax
import pytest

MOST_MAPS = 30_000  # of memory; Linux allows a process 65,530, and a compiled program takes six or more

ROOT = pathlib.Path(__file__).resolve().parent.parent
jax.config.update("jax_numpy_rank_promotion", "raise")


def with_devices(count: int) -> dict[str, str]:
    """The environment of a program with so many simulated devices."""
    return os.environ | {"XLA_FLAGS": f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={count}"}


@pytest.fixture(scope="session")
def shared() -> pathlib.Path:
    """The folder of public data and golden values beside the checkout; tests that need it skip loudly without it."""
    path = pathlib.Path(os.environ.get("NMT_JAX_SHARED", ROOT.parent / "shared"))
    if not path.is_dir():
        pytest.skip(f"reference data not found at {path}: set NMT_JAX_SHARED")
    return path


@pytest.fixture(autouse=True, scope="module")
def few_programs() -> Iterator[None]:
    """Lets go of compiled programs in time: a process with too many maps ends with a segmentation fault."""
    yield
    maps = pathlib.Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()
