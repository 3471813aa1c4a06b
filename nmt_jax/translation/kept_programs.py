"""Compiled programs that are kept on disk, so that the next start neither traces nor compiles them.

JAX's own cache is looked up by the lowered program; tracing and lowering it take longer than translating a sentence. A
program kept here is named by what it is made from: the code, the model, the shapes, the versions and the machine.
"""

import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import os
import warnings
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax

from nmt_jax import platforms
from nmt_jax.storage import kept

FORMAT = 1  # increase it whenever a program is stored in another way
UNSUPPORTED = (ImportError, AttributeError, TypeError)  # by a version of jaxlib with another interface
PACKAGES = ("jax", "jaxlib", "flax", "numpy")
PLAIN = (type(None), bool, int, float, str)
CODE = Path(__file__).parents[1]
PATTERNS = (
    "decoding/**/*.py",
    "models/**/*.py",
    "translation/*programs.py",
    "data/vocabulary/*.py",
    "platforms.py",
)

Executable = Callable[[Sequence[jax.Array]], list[jax.Array]]


class KeptPrograms:
    """A function of arrays with static options, compiled for each shape and option, and kept on disk.

    definition: what decides the function beside its code and options; see `description`.
    """

    def __init__(self, function: Callable[..., tuple[jax.Array, ...]], definition: Any) -> None:
        self.function, self.definition = function, definition
        self._programs: dict[Any, Executable] = {}

    def __call__(self, *arguments: Any, **options: Any) -> tuple[jax.Array, ...]:
        """Call the function on the arrays of `arguments`, all on one device or NumPy's, with static `options`."""
        leaves, tree = jax.tree.flatten(arguments)
        leaves = [leaf if isinstance(leaf, jax.Array) else jax.device_put(leaf) for leaf in leaves]
        shapes = [(leaf.shape, str(leaf.dtype), leaf.weak_type) for leaf in leaves]
        known = (tuple(shapes), tree, tuple(options.items()))
        if known not in self._programs:
            self._programs[known] = self._program(leaves, tree, [shapes, str(tree), description(options)], options)
        return tuple(self._programs[known](leaves))

    def _program(self, leaves: list[jax.Array], tree: Any, signature: Any, options: Any) -> Executable:
        """The program for arrays like `leaves`, read or compiled."""
        key = kept.digest([FORMAT, environment(), code(), self.definition, signature])
        path = (platforms.kept_folder("programs") or Path()) / key[:32]
        (device,) = leaves[0].devices()
        if (content := kept.read(path, key)) is not None:
            try:
                return _load(zlib.decompress(content), device)
            except (jax.errors.JaxRuntimeError, zlib.error, *UNSUPPORTED) as error:
                warnings.warn(f"{path}: cannot be loaded, and is compiled again ({error})", stacklevel=2)

        def flat(*leaves: jax.Array) -> list[jax.Array]:
            return jax.tree.leaves(self.function(*jax.tree.unflatten(tree, leaves), **options))

        # Unused arguments are kept, so that the program takes all leaves.
        with platforms.without_cache():
            options_of_compiler = platforms.row_by_row_options()
            compiled = jax.jit(flat, keep_unused=True, compiler_options=options_of_compiler).lower(*leaves).compile()
        if executable := compiled.runtime_executable():
            with contextlib.suppress(*UNSUPPORTED):
                kept.keep(path, key, zlib.compress(executable.serialize(), 1))
        return lambda leaves: compiled(*leaves)


def possible(devices: int) -> bool:
    """Whether programs for this number of devices can be kept; only those for CPUs are."""
    one = devices == 1 and jax.process_count() == 1
    return one and jax.default_backend() == "cpu" and platforms.kept_folder("programs") is not None


def description(value: Any) -> Any:
    """What tells a value apart from others of any type, as a tree of lists; None if this is not known.

    Plain values, and sequences, dicts and dataclasses of them.
    """
    if isinstance(value, PLAIN):
        return [repr(value)]
    if isinstance(value, tuple | list):
        parts = list(value)
    elif isinstance(value, dict):
        parts = [part for name in sorted(value) for part in (name, value[name])]
    elif dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if field.name not in ("parent", "name")]
        parts = [part for name in names for part in (name, getattr(value, name))]
    else:
        return None
    found = [description(part) for part in parts]
    return None if None in found else [f"{type(value).__module__}.{type(value).__qualname__}", *found]


def modules() -> list[Path]:
    """The modules that decide what a program computes."""
    return sorted(path for pattern in PATTERNS for path in CODE.glob(pattern))


@functools.cache
def code() -> str:
    """The SHA-256 of these modules."""
    digest = hashlib.sha256()
    for path in modules():
        digest.update(f"{path.relative_to(CODE)} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def environment() -> list[Any]:
    """Versions, settings and the processor: what else decides a compiled program."""
    settings = {name: repr(value) for name, value in jax.config.values.items() if isinstance(value, PLAIN)}
    versions = [importlib.metadata.version(name) for name in PACKAGES]
    platform = description(platforms.current())
    return [versions, settings, os.environ.get("XLA_FLAGS", ""), platform, _processor()]


@functools.cache
def _processor() -> list[str]:
    """The lines of the kernel about the first processor that name its model and its instructions."""
    try:
        first = Path("/proc/cpuinfo").read_text(errors="replace").split("\n\n")[0].splitlines()
    except OSError:
        return [os.uname().machine]
    return [os.uname().machine, *(line for line in first if line.startswith(("model", "flags", "Features", "CPU")))]


def _load(content: bytes, device: Any) -> Executable:
    """The program that `serialize` wrote."""
    from jaxlib import xla_client

    program = device.client.deserialize_executable(content, executable_devices=xla_client.DeviceList((device,)))

    def run(leaves: Sequence[jax.Array]) -> list[jax.Array]:
        outputs = program.execute_sharded(list(leaves)).disassemble_into_single_device_arrays()
        return [shards[0] for shards in outputs]

    return run
