"""Settings and fixtures of all tests: strict JAX, a compilation cache, the reference data, memory per worker."""

import contextlib
import ctypes
import gc
import importlib.metadata
import os
import pathlib
import resource
from collections.abc import Generator, Iterator

# Programs that tests start inherit these settings.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Tiny shapes take longer to compile than to run: with these flags programs compile in half the time.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_opt_preset=CPU_OPT_PRESET_FAST_COMPILE "
    "--xla_cpu_parallel_codegen_split_count=1"
    # Releases after 0.10 refuse this flag.
    + " --xla_cpu_use_fusion_emitters=false"
    * importlib.metadata.version("jaxlib").startswith("0.10."),
)
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(pathlib.Path(__file__).resolve().parent.parent / ".cache/compilation")
)
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

import hypothesis
import jax
import pytest

hypothesis.settings.register_profile("no deadline", deadline=None)  # compilation and busy machines take time
hypothesis.settings.load_profile("no deadline")

pytest_plugins = (
    "tests.fixtures.workdirs",
    "tests.fixtures.command_line",
    "tests.fixtures.object_store",
    "tests.fixtures.chromium",
)

MOST_MAPS = 30_000  # of memory; Linux allows a process 65,530, and a compiled program takes six or more
MOST_BYTES = 3 << 29  # resident; half of what a worker may take

PEAKS: list[int] = []  # KiB, of the workers
ROOT = pathlib.Path(__file__).resolve().parent.parent
jax.config.update("jax_numpy_rank_promotion", "raise")


def with_devices(count: int) -> dict[str, str]:
    """The environment of a program with `count` simulated devices."""
    return os.environ | {"XLA_FLAGS": f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={count}"}


@pytest.fixture(scope="session")
def shared() -> pathlib.Path:
    """The folder of public data and golden values beside the checkout; tests that need it skip loudly without it."""
    path = pathlib.Path(os.environ.get("NMT_JAX_SHARED", ROOT.parent / "shared"))
    if not path.is_dir():
        pytest.skip(f"reference data not found at {path}: set NMT_JAX_SHARED")
    return path


@pytest.fixture(autouse=True, scope="session")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests share prepared corpora, over all workers of a session but never over sessions."""
    folder = tmp_path_factory.getbasetemp()
    os.environ["NMT_JAX_CACHE"] = str((folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "cache")


@pytest.fixture(autouse=True, scope="module")
def release_programs() -> Iterator[None]:
    """Release compiled programs when a process has too many memory maps, which ends in a crash, or too much memory."""
    yield
    maps, status = pathlib.Path("/proc/self/maps"), pathlib.Path("/proc/self/statm")
    if not maps.exists():
        return
    resident = int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    if maps.read_bytes().count(b"\n") > MOST_MAPS or resident > MOST_BYTES:
        jax.clear_caches()
        gc.collect()
        with contextlib.suppress(AttributeError):  # the GNU C library alone has it
            ctypes.CDLL(None).malloc_trim(0)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage among modules and tests, which stay, and later less often than by default."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000)
        gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker reports its peak memory to the controller."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object, error: object) -> None:
    """The controller collects the peaks of the workers."""
    PEAKS.append(getattr(node, "workeroutput", {}).get("peak", 0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the peak memory of each worker, or of this process where there are none."""
    peaks = PEAKS or [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]
    terminalreporter.write_line("peak memory per worker: " + ", ".join(f"{peak / 2**20:.2f} GiB" for peak in peaks))
