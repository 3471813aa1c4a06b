"""Parameters to translate with, kept beside the compiled programs: for each workdir those that were used last.

Orbax takes longer to import than this file takes to read, and the mean of several checkpoints takes longer still.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import safetensors.numpy

from nmt_jax.checkpoints.verification import report_average
from nmt_jax.platforms import kept_folder
from nmt_jax.storage import kept
from nmt_jax.storage.paths import is_remote, path_of

FORMAT = 1  # increase it whenever the same checkpoints give other parameters
LARGEST = 1 << 28  # bytes; importing Orbax takes little time beside reading more than this
SEPARATOR = "/"  # between the names of nested dicts


def load(workdir: Path, which: str | int, shardings: Callable[[Any], Any]) -> Any:
    """Return what `checkpoints.reading.load_params` returns, which reads no checkpoint if none changed since then.

    The parameters are kept only if they have at most `LARGEST` bytes and no checkpoint was damaged, so that each call
    reports the damage.
    """
    directory, folder = path_of(workdir).absolute() / "checkpoints", kept_folder("parameters")
    possible = folder and not is_remote(directory) and jax.process_count() == 1
    key = _key(directory, which) if possible else None
    if folder is None or key is None:
        from nmt_jax.checkpoints.reading import load_params

        return load_params(workdir, which, shardings)
    path = folder / kept.digest([str(directory), which])[:32]
    if (content := kept.read(path, key)) is not None:
        arrays = _unflatten(safetensors.numpy.load(content))
        if isinstance(which, int):
            report_average(directory, sum(one.name.isdecimal() for one in directory.iterdir()), which)
        return jax.device_put(arrays, shardings(arrays))

    def keep(params: Any) -> None:
        if sum(leaf.nbytes for leaf in jax.tree.leaves(params)) > LARGEST:
            return
        flat = {
            jax.tree_util.keystr(name, simple=True, separator=SEPARATOR): np.asarray(leaf)
            for name, leaf in jax.tree.leaves_with_path(params)
        }
        same = str(jax.tree.structure(_unflatten(flat))) == str(jax.tree.structure(params))
        if same and all(leaf.dtype == np.float32 for leaf in flat.values()) and _key(directory, which) == key:
            kept.keep(path, key, safetensors.numpy.save(flat))

    from nmt_jax.checkpoints.reading import load_params

    return load_params(workdir, which, shardings, undamaged=keep)


def _key(directory: Path, which: str | int) -> str | None:
    """What changes whenever the choice of checkpoints or a file of theirs changes; None if they are being replaced."""
    files = []
    try:
        for checkpoint in sorted(directory.iterdir()):
            for file in sorted(checkpoint.rglob("*")):
                status = file.stat()
                files.append([str(file.relative_to(directory)), status.st_size, status.st_mtime_ns])
    except OSError:  # deleted meanwhile
        return None
    return kept.digest([FORMAT, which, files])


def _unflatten(flat: dict[str, Any]) -> dict[str, Any]:
    """The nested dict of names with separators."""
    tree: dict[str, Any] = {}
    for name, leaf in flat.items():
        *parents, last = name.split(SEPARATOR)
        inner = tree
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[last] = leaf
    return tree
