"""The cache of prepared data: files and folders named by a hash of what they were made from.

An entry is named by the SHA-256 of its key, a JSON list of everything that decides its content: a format number,
fingerprints of the input, and settings. It is written once, as a whole or not at all, so that several processes may
prepare the same data at the same time.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

from nmt_jax.data.prepared.engine import written_once
from nmt_jax.errors import UserError
from nmt_jax.storage.files import SUMS, check_sums, whole_file, write_sums
from nmt_jax.storage.paths import is_remote


def cache_directory(data: Any) -> pathlib.Path:
    """Folder of prepared corpora: `config.data.cache`, else $NMT_JAX_CACHE, else ~/.cache/nmt-jax.

    Raises UserError if it is in an object store.
    """
    place = data.cache or os.environ.get("NMT_JAX_CACHE") or "~/.cache/nmt-jax"
    if is_remote(place):
        setting = "config.data.cache" if data.cache else "NMT_JAX_CACHE"
        raise UserError(f"{setting}={place}: prepared data is mapped into memory; name a local folder")
    return pathlib.Path(place).expanduser() / "corpora"


def cached_file(
    directory: pathlib.Path, prefix: str, key: Sequence[Any], suffix: str, write: Callable[[BinaryIO], None]
) -> pathlib.Path:
    """Path of the file of this key; `write` fills the open file if it does not exist yet.

    Raises UserError if the file cannot be written, for example because the disk is full.
    """
    path = _entry(directory, prefix, key, suffix)
    if not path.exists():
        with _clear_errors(directory), whole_file(path) as file:
            write(file)
    return path


def cached_folder(
    directory: pathlib.Path, prefix: str, key: Sequence[Any], write: Callable[[pathlib.Path], None]
) -> pathlib.Path:
    """Path of the folder of this key; `write` fills an empty folder if it does not exist yet.

    A folder that was changed since then is made again, with a warning. Raises UserError as `cached_file` does.
    """
    path = _entry(directory, prefix, key, "")
    if path.exists() and (damage := _damage(path)):
        warnings.warn(f"{path}: the prepared data is damaged ({damage}); it is made again", stacklevel=2)
        with _clear_errors(directory):
            _remove(path)
    if not path.exists():
        with _clear_errors(directory), written_once(path) as folder:
            write(folder)
            write_sums(folder / SUMS)
    return path


def _entry(directory: pathlib.Path, prefix: str, key: Sequence[Any], suffix: str) -> pathlib.Path:
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()
    return directory / f"{prefix}-{digest[:32]}{suffix}"


def _damage(path: pathlib.Path) -> str:
    """What is wrong with a folder of the cache, or ""; folders of older versions have no sums."""
    try:
        if not any(path.iterdir()):
            return "it is empty"
        if (path / SUMS).exists():
            # Large corpora are not read again at each start.
            check_sums(path / SUMS, newer_only=True)
    except (OSError, ValueError, RecursionError) as error:
        return str(error)
    return ""


def _remove(path: pathlib.Path) -> None:
    """Delete a folder or file, which other processes may do at the same time."""
    with (
        tempfile.TemporaryDirectory(prefix=".damaged-", dir=path.parent) as aside,
        contextlib.suppress(FileNotFoundError),
    ):
        path.rename(pathlib.Path(aside) / path.name)


@contextlib.contextmanager
def _clear_errors(directory: pathlib.Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{directory}: cannot write prepared data: {error.strerror or error}; "
            "free some space or set config.data.cache to another folder"
        ) from error
