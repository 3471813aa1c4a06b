"""A cache of token vectors on disk, so that references are encoded only once."""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil
import warnings

import numpy as np

SHARD_BYTES = 2**28  # of vectors kept in memory before they are written


class EmbeddingCache:
    """A folder of shards, each a folder with `keys` uint8[M, 32], `ends` int64[M] and `vectors` float32[tokens, E].

    A key is the SHA-256 of the ids of one row of tokens. settings: the name of the folder; it must contain everything
    else that the vectors depend on. A shard is written completely or not at all, so several processes may share the
    folder. A damaged shard is skipped with a warning, and its rows are encoded again. Raises ValueError if the folder
    cannot be created.
    """

    def __init__(self, folder: str | os.PathLike[str], settings: str) -> None:
        self._folder = pathlib.Path(folder) / settings
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"{folder}: cannot create the cache folder: {error.strerror or error}") from error
        self._stored: dict[bytes, np.ndarray] = {}
        self._new: dict[bytes, np.ndarray] = {}
        self._new_bytes = 0
        for shard in sorted(self._folder.glob("shard-*")):
            try:
                self._stored.update(_read(shard))
            except (OSError, ValueError) as error:
                warnings.warn(f"{shard}: damaged, not used ({error}); delete it", stacklevel=3)

    def find(self, ids: np.ndarray) -> np.ndarray | None:
        """The vectors float32[S, E] of ids int32[S], as a view into the file, or None."""
        return self._stored.get(_key(ids))

    def add(self, ids: np.ndarray, vectors: np.ndarray) -> None:
        """Add the vectors float32[S, E] of ids int32[S]; they are on disk after `flush`."""
        self._new[_key(ids)] = vectors
        self._new_bytes += vectors.nbytes
        if self._new_bytes > SHARD_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the added vectors as a new shard."""
        if not self._new:
            return
        keys = np.frombuffer(b"".join(self._new), np.uint8).reshape(-1, 32)
        name = hashlib.sha256(keys.tobytes()).hexdigest()[:32]
        unfinished = self._folder / f"unfinished-{os.getpid()}-{name}"
        unfinished.mkdir(exist_ok=True)
        np.save(unfinished / "keys.npy", keys)
        np.save(unfinished / "ends.npy", np.cumsum([len(vectors) for vectors in self._new.values()]))
        np.save(unfinished / "vectors.npy", np.concatenate(list(self._new.values())))
        try:
            unfinished.rename(self._folder / f"shard-{name}")
        except OSError:  # another process has written the same rows
            shutil.rmtree(unfinished)
        self._new, self._new_bytes = {}, 0


def _key(ids: np.ndarray) -> bytes:
    return hashlib.sha256(ids.astype("<i4").tobytes()).digest()


def _read(shard: pathlib.Path) -> dict[bytes, np.ndarray]:
    """The vectors of a shard by key. Raises ValueError if its files are inconsistent."""
    keys, ends = (np.load(shard / f"{name}.npy", allow_pickle=False) for name in ("keys", "ends"))
    vectors = np.load(shard / "vectors.npy", mmap_mode="r", allow_pickle=False)
    well_formed = keys.shape == (len(ends), 32) and keys.dtype == np.uint8 and vectors.ndim == 2
    if not well_formed or (np.diff(ends, prepend=0) < 1).any() or ends[-1] != len(vectors):
        raise ValueError("its files are inconsistent")
    parts = np.split(vectors, ends[:-1])
    return {key.tobytes(): part for key, part in zip(keys, parts, strict=True)}
