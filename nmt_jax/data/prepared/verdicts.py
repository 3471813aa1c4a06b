"""Which pairs of a corpus `config.data.filters` drops, found once and kept as one byte per pair.

Duplicates are found through files, so that memory does not grow with the corpus and any number of processes can share
the work: every slice writes the sorted hashes of its pairs, then every range of hashes is searched in all slices.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import pathlib
import tempfile
from collections.abc import Iterator, Sequence

import numpy as np

from nmt_jax.data.prepared.cache import cached_folder
from nmt_jax.data.prepared.engine import Engine, written_once
from nmt_jax.data.prepared.filters import make_predicate, reason
from nmt_jax.data.readers import sources
from nmt_jax.data.readers.parallel_text import ParallelText
from nmt_jax.data.readers.slices import Slice
from nmt_jax.progress import track
from nmt_jax.schema.filters import DUPLICATES, Filter

FORMAT = 1  # increase it whenever the content of a folder of verdicts changes
SLICES_A_RANGE = 8  # as many hashes as such slices have are in memory at once
BLOCK = 1 << 20
HASH = np.dtype([("high", "<u8"), ("low", "<u8"), ("pair", "<i8")])  # 128 bits, and the number of the pair
VERDICTS, COUNTS = "verdicts.uint8", "counts.json"

Pair = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Verdicts:
    """A byte for each pair of a corpus, on disk: 0, or the position of the filter that drops it, counted from 1."""

    folder: pathlib.Path
    filters: tuple[Filter, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Number of pairs that each filter dropped."""
        return json.loads((self.folder / COUNTS).read_text())

    @property
    def reasons(self) -> dict[str, str]:
        """Why each filter drops pairs, for messages."""
        return {str(chosen): reason(chosen) for chosen in self.filters}

    def kept(self, pairs: Slice) -> Iterator[Pair]:
        """The pairs of a slice that no filter drops."""
        return itertools.compress(pairs, self._is_kept(pairs.first, pairs.count))

    def kept_of_all(self, corpus: ParallelText) -> Iterator[Pair]:
        """The pairs of the whole corpus that no filter drops."""
        return itertools.compress(corpus, self._is_kept(0, (self.folder / VERDICTS).stat().st_size))

    def _is_kept(self, first: int, count: int) -> Iterator[bool]:
        with (self.folder / VERDICTS).open("rb") as file:
            file.seek(first)
            for start in range(0, count, BLOCK):
                yield from (verdict == 0 for verdict in file.read(min(BLOCK, count - start)))


def judge(
    corpus: ParallelText, filters: Sequence[Filter], num_sources: int, cache: pathlib.Path, size: int, engine: Engine
) -> Verdicts:
    """The verdicts of `filters` about a corpus, from the folder `cache` if they were found before.

    Of several filters that drop a pair, the first counts; duplicates are looked for among the pairs that pass all
    others, and the first of equal pairs is kept. Pairs with an empty side are not looked at. size: of a slice.
    """
    filters = (*(chosen for chosen in filters if chosen.name != DUPLICATES), *_duplicates(filters))
    key = [FORMAT, corpus.fingerprint(), list(map(str, filters)), num_sources]
    write = functools.partial(_write, corpus, filters, num_sources, size, engine)
    return Verdicts(cached_folder(cache, "filters", key, write), filters)


def _duplicates(filters: Sequence[Filter]) -> list[Filter]:
    return [chosen for chosen in filters if chosen.name == DUPLICATES]


def _write(
    corpus: ParallelText,
    filters: Sequence[Filter],
    num_sources: int,
    size: int,
    engine: Engine,
    directory: pathlib.Path,
) -> None:
    """Writes one file of verdicts, and how many pairs each filter drops."""
    with tempfile.TemporaryDirectory(prefix=".scratch-", dir=directory) as name:
        scratch = pathlib.Path(name)
        slices = corpus.slices(size, scratch)
        work = functools.partial(_judge_slice, filters, num_sources, scratch, f"filtering {corpus.name}")
        engine(work, slices, scratch)
        with (directory / VERDICTS).open("wb") as file:
            for part in slices:
                file.write((_folder(scratch, part.number) / VERDICTS).read_bytes())
        if _duplicates(filters):
            ranges = -(-len(slices) // SLICES_A_RANGE)
            engine(functools.partial(_find_duplicates, scratch, len(slices), ranges), range(ranges), scratch)
            verdicts = np.memmap(directory / VERDICTS, np.uint8, "r+")
            for number in range(ranges):
                verdicts[np.fromfile(_range(scratch, number) / "duplicates", np.int64)] = len(filters)
            verdicts.flush()
    counts = _count(directory / VERDICTS, len(filters))
    (directory / COUNTS).write_text(json.dumps(dict(zip(map(str, filters), counts, strict=True))) + "\n")


def _count(path: pathlib.Path, num_filters: int) -> list[int]:
    """The number of pairs that each filter drops."""
    counts = np.zeros(1 + num_filters, np.int64)
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            counts += np.bincount(np.frombuffer(block, np.uint8), minlength=len(counts))
    return counts[1:].tolist()


def _folder(scratch: pathlib.Path, number: int) -> pathlib.Path:
    return scratch / f"slice-{number:06d}"


def _range(scratch: pathlib.Path, number: int) -> pathlib.Path:
    return scratch / f"range-{number:06d}"


def _judge_slice(filters: Sequence[Filter], num_sources: int, scratch: pathlib.Path, label: str, pairs: Slice) -> None:
    """Writes the verdicts of the pairs of a slice, and the sorted hashes of those that pass, to find duplicates."""
    single = [chosen for chosen in filters if chosen.name != DUPLICATES]
    predicates = [(code, make_predicate(chosen)) for code, chosen in enumerate(single, start=1)]
    hashed = len(single) < len(filters)
    verdicts, hashes = bytearray(), bytearray()
    counted = track(pairs, f"{label}, part {pairs.number + 1}", pairs.count)
    for number, (source, target) in enumerate(counted, start=pairs.first):
        texts = (*sources.split(source, num_sources), target)
        empty = not all(text.strip() for text in texts)
        verdict = 0 if empty else next((code for code, drops in predicates if drops(texts)), 0)
        verdicts.append(verdict)
        if hashed and not verdict and not empty:
            # The length of the source says where the target begins.
            content = f"{len(source)} {source}{target}".encode("utf-8", "surrogatepass")
            hashes += hashlib.blake2b(content, digest_size=16).digest() + number.to_bytes(8, "little")
    with written_once(_folder(scratch, pairs.number)) as folder:
        (folder / VERDICTS).write_bytes(verdicts)
        if hashed:
            _sorted(np.frombuffer(bytes(hashes), HASH)).tofile(folder / "hashes")


def _sorted(hashes: np.ndarray) -> np.ndarray:
    """Sorted by hash, equal ones by the number of the pair."""
    return hashes[np.lexsort((hashes["pair"], hashes["low"], hashes["high"]))]


def _find_duplicates(scratch: pathlib.Path, num_slices: int, num_ranges: int, number: int) -> None:
    """Writes the numbers of all pairs of a range of hashes but the first of each hash."""
    first, last = (number * 2**64 // num_ranges, (number + 1) * 2**64 // num_ranges - 1)
    found = []
    for part in range(num_slices):
        path = _folder(scratch, part) / "hashes"
        if path.stat().st_size:
            hashes = np.memmap(path, HASH, "r")
            start = np.searchsorted(hashes["high"], np.uint64(first), "left")
            end = np.searchsorted(hashes["high"], np.uint64(last), "right")
            found.append(np.array(hashes[start:end]))
    here = _sorted(np.concatenate(found)) if found else np.zeros(0, HASH)
    repeated = (here["high"][1:] == here["high"][:-1]) & (here["low"][1:] == here["low"][:-1])
    with written_once(_range(scratch, number)) as folder:
        here["pair"][1:][repeated].tofile(folder / "duplicates")
