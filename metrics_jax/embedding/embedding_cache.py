"""Vectors kept on disk, so that references encoded once are never encoded again."""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil
import warnings

import numpy as np

SHARD_BYTES = 2**28  # of vectors held before they are written


class EmbeddingCache:
    """A folder of shards, each a folder with `keys` uint8[M, 32], `ends` int64[M] and `vectors` float32[tokens, E].

    A key is the SHA-256 of the ids of a row of tokens. settings: the folder's name, all else that the vectors depend
    on. A shard appears whole or not at all, so several processes may share the folder; a damaged one is passed over
    with a warning, and its rows are encoded anew. ValueError for a folder that cannot be made.
    """

    def __init__(self, folder: str | os.PathLike[str], settings: str) -> None:
        self._folder = pathlib.Path(folder) / settings
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"{folder}: no folder to keep vectors in: {error.strerror or error}") from error
        self._kept: dict[bytes, np.ndarray] = {}
        self._new: dict[bytes, np.ndarray] = {}
        self._new_bytes = 0
        for shard in sorted(self._folder.glob("shard-*")):
            try:
                self._kept.update(_read(shard))
            except (OSError, ValueError) as error:
                warnings.warn(f"{shard} is damaged and not used ({error}): delete it", stacklevel=3)

    def find(self, ids: np.ndarray) -> np.ndarray | None:
        """Ids int32[S] -> float32[S, E] or None; a view into the file."""
        return self._kept.get(_key(ids))

    def add(self, ids: np.ndarray, vectors: np.ndarray) -> None:
        """Keep the vectors float32[S, E] of ids int32[S]; they are on disk after `flush`."""
        self._new[_key(ids)] = vectors
        self._new_bytes += vectors.nbytes
        if self._new_bytes > SHARD_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what was added."""
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
    """The vectors of a shard by key; ValueError if its files do not belong together."""
    keys, ends = (np.load(shard / f"{name}.npy", allow_pickle=False) for name in ("keys", "ends"))
    vectors = np.load(shard / "vectors.npy", mmap_mode="r", allow_pickle=False)
    whole = keys.shape == (len(ends), 32) and keys.dtype == np.uint8 and vectors.ndim == 2
    if not whole or (np.diff(ends, prepend=0) < 1).any() or ends[-1] != len(vectors):
        raise ValueError("its files do not belong together")
    parts = np.split(vectors, ends[:-1])
    return {key.tobytes(): part for key, part in zip(keys, parts, strict=True)}
