"""Choices that depend on the processor: implementations of operations, chunk sizes, compilation, memory.

Several operations of the layers, losses and decoding have two implementations that compute the same function: one for
accelerators, mostly standard JAX, and one arranged for XLA's CPU compiler. A `Platform` names one implementation for
each. Callers ask for the name (`current().dropout == "bytes"`), so that no model asks which processor runs it.

The choices for CPUs rest on measurements (docs/results/performance.md), those for accelerators on what the compilers
of TPUs and GPUs report (docs/results/accelerators.md).
"""

import contextlib
import ctypes
import dataclasses
import functools
import importlib.util
import math
import os
import resource
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from nmt_jax.errors import UserError

MALLOC_TRIM_THRESHOLD, MALLOC_TOP_PAD, MALLOC_MMAP_MAX = -1, -2, -4  # malloc.h of the GNU C library
PLUGINS = ("gpu", "cuda", "rocm")  # platforms that need a plugin of JAX
XLA_LEVEL = "--xla_backend_optimization_level"


@dataclasses.dataclass(frozen=True)
class Platform:
    """One choice per operation; the defaults are for accelerators.

    activations: type of what lies between the products of a layer: that of the "model", or "float32" (`layers.dense`).
    gelu: "exact", or "approximate", within 1e-6 in float32 and 1e-4 before a bfloat16 product (`layers.activations`).
    product_gradient: "derived" by JAX, or "explicit" (`layers.dense.matmul`).
    transpose: of bfloat16 operands, left to XLA ("lazy") or "materialized" before the product (`layers.dense`).
    dropout: by a "hash" of key and position, or by one of the "bytes" of a random word per unit (`layers.dropout`).
    attention: by two products and a "softmax", or by a kernel of "cudnn" where it has one (`layers.scaled_attention`).
    attention_weights: for the backward pass, they are "recomputed" or "kept" (`layers.scaled_attention`).
    scale_gradient: its terms are "fused" into their sum, or "stored" in the model's type (`layers.normalization`).
    cached_keys: attention caches keys as "rows" [T * K, Dk] or "columns" [Dk, T * K] (`layers.multi_head_attention`).
    batched_product: of word vectors, an "einsum", or "transposed" operands (`models.word_vectors`).
    row_lookup: table rows are numbered by an array as it is ("direct") or "flattened" (`models.word_vectors`).
    row_gradient: of a word table, summed "by_device" before it is summed over devices, or as JAX does it ("direct")
        (`layers.embedding.Embedding`).
    log_sigmoid: that of "jax", or one with a gradient by "tanh" (`losses.sampled`).
    top_k: over all values at once ("direct"), or over "blocks" first (`decoding.topk`).
    loss_parts: the output loss is computed by parts of the "vocabulary" or of the "tokens" (`losses.cross_entropy`).
    logits_per_chunk: number of logits that a chunked loss holds at once (`losses.cross_entropy`).
    ngrams_per_chunk: number of n-gram vectors summed at once (`models.word_vectors`).
    translation_batch_tokens: upper bound of the tokens in a batch to translate; None for no bound.
    host: a step calls functions of the host ("called"), or has something of the same shape in their place ("omitted"),
        for compilation without a device (`losses.minimum_risk`).
    few_rows: products of few rows are as others ("direct"), or have a "transposed" operand (`layers.dense`).
    """

    name: str
    activations: Literal["model", "float32"] = "model"
    gelu: Literal["exact", "approximate"] = "exact"
    product_gradient: Literal["derived", "explicit"] = "derived"
    transpose: Literal["lazy", "materialized"] = "lazy"
    dropout: Literal["hash", "bytes"] = "hash"
    attention: Literal["softmax", "cudnn"] = "softmax"
    attention_weights: Literal["recomputed", "kept"] = "recomputed"
    scale_gradient: Literal["fused", "stored"] = "fused"
    cached_keys: Literal["rows", "columns"] = "rows"
    batched_product: Literal["einsum", "transposed"] = "einsum"
    row_lookup: Literal["direct", "flattened"] = "direct"
    row_gradient: Literal["by_device", "direct"] = "by_device"
    log_sigmoid: Literal["jax", "tanh"] = "jax"
    top_k: Literal["direct", "blocks"] = "direct"
    loss_parts: Literal["vocabulary", "tokens"] = "vocabulary"
    logits_per_chunk: int = 1 << 26  # 256 MiB of float32
    ngrams_per_chunk: int = 1 << 16
    translation_batch_tokens: int | None = None
    host: Literal["called", "omitted"] = "called"
    few_rows: Literal["direct", "transposed"] = "direct"


ACCELERATOR = Platform("accelerator")
CPU = Platform(
    "cpu",
    activations="float32",
    gelu="approximate",
    product_gradient="explicit",
    transpose="materialized",
    dropout="bytes",
    attention_weights="kept",
    cached_keys="columns",
    batched_product="transposed",
    row_lookup="flattened",
    row_gradient="direct",
    log_sigmoid="tanh",
    top_k="blocks",
    loss_parts="tokens",
    logits_per_chunk=1 << 21,  # 8 MiB of float32 stay near the caches
    ngrams_per_chunk=1 << 12,  # their vectors fit the caches
    # The sentences of a batch wait for the longest; a CPU is busy with fewer of them than an accelerator.
    translation_batch_tokens=2560,
    few_rows="transposed",
)
GPU = dataclasses.replace(ACCELERATOR, name="gpu", attention="cudnn", scale_gradient="stored")
PLATFORMS = {"cpu": CPU, "gpu": GPU}  # by the name of JAX's backend; all others are accelerators


def current() -> Platform:
    """The platform that programs are traced for: the one set by `use`, else that of JAX's default backend."""
    import jax

    return _override().value or of_backend(jax.default_backend())


def of_backend(name: str) -> Platform:
    """The platform of a backend of JAX: cpu, gpu or tpu."""
    return PLATFORMS.get(name, ACCELERATOR)


@contextlib.contextmanager
def use(platform: Platform) -> Iterator[None]:
    """Trace for `platform` instead, in tests or to compile ahead of time for another processor.

    The override is part of the key under which `jax.jit` caches programs, so a function that was traced before is
    traced again.
    """
    with _override()(platform):
        yield


@functools.cache
def _override() -> Any:
    import jax

    return jax.make_user_context(None)


def compiled(*, row_by_row: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that makes a method a program of its object, compiled by `jax.jit` with these options.

    row_by_row: with `row_by_row_options`.
    """
    import jax

    def program(method: Any, self: Any) -> Any:
        chosen = row_by_row_options() if row_by_row else None
        return jax.jit(method.__get__(self), compiler_options=chosen, **options)

    return lambda method: functools.cached_property(functools.partial(program, method))


def row_by_row_options() -> dict[str, Any] | None:
    """Options of XLA's compiler with which the result for a row of a batch does not depend on the number of rows.

    By default XLA's CPU compiler sums large arrays by a library, in another order than small ones, and the library may
    take another kernel for another shape.
    """
    import jax

    if jax.default_backend() != "cpu":
        return None
    return {
        "xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT",
        "xla_cpu_enable_platform_dependent_math": False,
    }


def initialization_options() -> dict[str, Any] | None:
    """Options of XLA's compiler for a program that draws the parameters of a model.

    On GPUs XLA joins the draws of all arrays of one shape in one kernel, which then takes minutes to compile
    (docs/results/accelerators.md).
    """
    import jax

    return {"xla_disable_hlo_passes": "multi_output_fusion"} if jax.default_backend() == "gpu" else None


def configure_compilation() -> Path:
    """Cache compiled programs on disk, compile faster on CPUs, and return the cache's folder.

    The folder is $NMT_JAX_CACHE/compilation, by default ~/.cache/nmt-jax/compilation. A folder set by
    JAX_COMPILATION_CACHE_DIR or in code takes precedence, and so does an optimization level in XLA_FLAGS. Must be
    called before JAX looks for devices. Raises UserError for XLA_FLAGS or JAX_PLATFORMS that JAX does not know.
    """
    import jax

    check_environment()
    folder = compilation_folder()
    # JAX compiles a program whose file another process is just writing. Without the filter it warns as well.
    warnings.filterwarnings("ignore", "Error reading persistent compilation cache entry")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # By default JAX caches only what takes a second to compile: of a small model little but the training step.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    # LLVM's last level takes a third to two thirds of the compilation time, and makes none of our programs faster.
    flags = os.environ.get("XLA_FLAGS", "")
    if XLA_LEVEL not in flags and _only_cpus():
        os.environ["XLA_FLAGS"] = f"{flags} {XLA_LEVEL}=2".strip()
    return folder


def compilation_folder() -> Path:
    """The folder of compiled programs."""
    import jax

    configured = jax.config.values["jax_compilation_cache_dir"]
    root = Path(os.environ.get("NMT_JAX_CACHE") or "~/.cache/nmt-jax").expanduser()
    return Path(configured) if configured else root / "compilation"


def kept_folder(name: str) -> Path | None:
    """The folder of other work that is kept beside compiled programs; None without `configure_compilation`."""
    import jax

    configured = jax.config.values["jax_compilation_cache_dir"]
    return Path(configured, name) if configured and jax.config.values["jax_enable_compilation_cache"] else None


@contextlib.contextmanager
def without_cache() -> Iterator[None]:
    """Compile without JAX's cache: a program that was read from it cannot be serialized once more."""
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    before = jax.config.values["jax_enable_compilation_cache"]
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()  # it looks at the setting once
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)
        compilation_cache.reset_cache()


def check_environment() -> None:
    """Raise UserError for JAX_PLATFORMS or XLA_FLAGS with which JAX would crash when it starts."""
    names = os.environ.get("JAX_PLATFORMS", "")
    name = next((name for name in names.split(",") if name in PLUGINS), None)
    if name and not importlib.util.find_spec("jax_plugins"):
        raise UserError(f"JAX_PLATFORMS={name}: JAX is installed without support for it; use cpu, or leave it unset")
    if "XLA_FLAGS" in os.environ and (problem := _xla_problem()):
        raise UserError(f"XLA_FLAGS: {problem}; correct it, or unset XLA_FLAGS")


@functools.cache
def _xla_problem() -> str:
    """Return what XLA reports about XLA_FLAGS, or "". XLA ends the process for wrong flags, so a child tries them."""
    from jaxlib import xla_client

    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX warns of threads, but the child uses no locks of other threads
        child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(writing, 2)
        xla_client.CompileOptions()  # reads the flags
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8", errors="replace") as file:
        said = file.readline()
    refused = os.waitpid(child, 0)[1] != 0
    return said.partition("] ")[2].strip().rstrip(".") or "XLA refuses it" if refused else ""


def _only_cpus() -> bool:
    """Whether JAX will find no accelerator, as far as this is known before its backends start."""
    import jax

    platforms = jax.config.values["jax_platforms"]
    accelerated = any(importlib.util.find_spec(name) for name in ("jax_plugins", "libtpu"))
    return platforms == "cpu" if platforms else not accelerated


def free_memory() -> float:
    """Return the bytes that a device has left, for CPUs those of this machine or container; inf if they are unknown."""
    import jax

    if stats := jax.local_devices()[0].memory_stats():
        return float(stats.get("bytes_limit", math.inf) - stats.get("bytes_in_use", 0))
    free = math.inf
    with contextlib.suppress(OSError, ValueError, KeyError):
        free = _counts("/proc/meminfo")["MemAvailable:"] * 1024.0
    with contextlib.suppress(OSError, ValueError, KeyError):  # "max" without a limit
        group = Path("/sys/fs/cgroup")
        used = int((group / "memory.current").read_text()) - _counts(group / "memory.stat")["file"]  # caches are freed
        free = min(free, float(int((group / "memory.max").read_text()) - used))
    return free


def _counts(path: str | Path) -> dict[str, int]:
    """Return the numbers of a file of the kernel with a name and a number per line."""
    return {line.split()[0]: int(line.split()[1]) for line in Path(path).read_text().splitlines()}


def keep_freed_memory() -> bool:
    """Keep freed memory in the process instead of returning it to the system; return whether this is possible.

    XLA's CPU client allocates the temporary memory of a program at every call. The GNU C library maps blocks of more
    than 32 MiB anew each time, and the kernel clears every page: nearly half the time of a word-vector training step.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return False
    return all([mallopt(MALLOC_MMAP_MAX, 0), mallopt(MALLOC_TRIM_THRESHOLD, 2**31 - 1), mallopt(MALLOC_TOP_PAD, 2**26)])
