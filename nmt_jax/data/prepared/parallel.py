"""Parallel corpora as token ids on disk, written once in the ArrayRecord format through a TFDS builder.

Host memory does not grow with the corpus: pairs are read by index when a batch needs them; only their lengths are
memory-mapped.
"""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import functools
import io
import itertools
import json
import pathlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nmt_jax.data.prepared.cache import cache_directory, cached_folder
from nmt_jax.data.prepared.engine import Engine, this_process, written_once
from nmt_jax.data.prepared.verdicts import Verdicts, judge
from nmt_jax.data.readers import sources
from nmt_jax.data.readers.parallel_text import SYNTHETIC, ParallelText, open_text
from nmt_jax.data.readers.slices import Slice
from nmt_jax.data.readers.source_reader import SourceReader
from nmt_jax.data.vocabulary.vocab import EOS, Vocab
from nmt_jax.errors import UserError
from nmt_jax.progress import track
from nmt_jax.schema.filters import parse_filter

FORMAT = 3  # increase it whenever the content of a prepared folder changes
# The writer of records holds its output in memory, so long corpora are written in parts, one per slice of the text.
PAIRS_A_PART = 1 << 17
ROWS_A_PART = 1 << 11  # pairs whose source is rows of features
READ_AHEAD = 64  # such pairs that several threads read at the same time
_LENGTHS, _COUNTS = "lengths.int32", "counts.json"
_SOURCE, _TARGET, _SOURCE_IDS, _TARGET_IDS = range(4)  # items of a record

Pair = tuple[np.ndarray, np.ndarray]
Indices = Sequence[int] | np.ndarray


def prepare(
    data: Any, split: str, vocabs: tuple[Vocab, Vocab], max_unknown: int = 0, engine: Engine = this_process
) -> PreparedCorpus:
    """A split of `config.data`, see `open_text`, as token ids, from the cache if it was prepared before.

    vocabs: of source and target. The first `max_unknown` source words outside the vocabulary get ids past its end, on
    both sides of the pair; see `Vocab.encode`. Training and synthetic pairs that `data.filters` drops, pairs with an
    empty side, and pairs with more than `data.max_length` tokens on a side (EOS included), are skipped and counted;
    each of several sources is a side; a source that is not text has rows of features instead of tokens. The engine does
    not change the result. Raises UserError if no pair is left, or if the cache cannot be written.
    """
    corpus, verdicts = open_filtered(data, split, engine)
    reader = SourceReader.of(data)
    encoding = Encoding(vocabs, data.max_length, max_unknown, reader)
    key = [FORMAT, corpus.fingerprint(), *(vocab.fingerprint for vocab in vocabs), data.max_length, max_unknown]
    key += list(map(str, verdicts.filters)) if verdicts else []
    key += [] if reader.only_text else [repr(reader)]
    write = functools.partial(_write, corpus, verdicts, encoding, engine)
    directory = cached_folder(cache_directory(data), split, key, write)
    reasons = verdicts.reasons if verdicts else {}
    return PreparedCorpus(directory, f"{split}: {corpus.name}", encoding, reasons)


def open_filtered(data: Any, split: str, engine: Engine = this_process) -> tuple[ParallelText, Verdicts | None]:
    """The text of a split, and which pairs `data.filters` drops; None if none, as from "dev" and "test"."""
    corpus = open_text(data, split)
    filters = [parse_filter(text) for text in data.get("filters", ())]  # workdirs of older versions have none
    if split not in ("train", SYNTHETIC) or not filters:
        return corpus, None
    num_sources = len(sources.languages(data.source))
    return corpus, judge(corpus, filters, num_sources, cache_directory(data), PAIRS_A_PART, engine)


@dataclasses.dataclass(frozen=True)
class Encoding:
    """How pairs become token ids: the vocabularies of source and target, and the arguments of `prepare`."""

    vocabs: tuple[Vocab, Vocab]
    max_length: int
    max_unknown: int
    reader: SourceReader

    @property
    def dtypes(self) -> list[str]:
        """Types of the ids of source and target on disk."""
        return ["<u2" if len(vocab) + self.max_unknown <= 1 << 16 else "<i4" for vocab in self.vocabs]

    @property
    def num_sources(self) -> int:
        """Number of sources of a line."""
        return len(self.reader.readers)

    def encode(self, pair: tuple[str, str]) -> tuple[Any, list[int]]:
        """The source as it is stored (`SourceReader`), and the ids of the target, EOS included."""
        if self.reader.only_text:
            source, target = self.ids(pair)
            return source, target
        return self.reader.read(pair[0], self.vocabs[0].encode), [*self.vocabs[1].encode(pair[1]), EOS]

    def ids(self, pair: tuple[str, str], alpha: float = 0.0, seeds: np.ndarray | None = None) -> list[list[int]]:
        """The ids of source and target, EOS included; with `seeds`, of random segmentations: see `Vocab.sample`."""
        unknown = self.vocabs[0].unknown(pair[0], self.max_unknown)

        def segment(text: str, vocab: Vocab, seed: int | None) -> list[int]:
            return vocab.encode(text, unknown) if seed is None else vocab.sample(text, alpha, int(seed), unknown)

        sides = zip(pair, (self.num_sources, 1), self.vocabs, (None, None) if seeds is None else seeds, strict=True)
        return [
            [*sources.encode(text, count, functools.partial(segment, vocab=vocab, seed=seed)), EOS]
            for text, count, vocab, seed in sides
        ]


class PreparedCorpus:
    """Random access to the N pairs of a prepared corpus, in the order of the text.

    `lengths` int32[N, 2]: tokens (or rows) of the source (the longest of several) and of the target, EOS included;
    `max_length`: their upper bound. `counts`: of pairs by what became of them.
    """

    def __init__(self, directory: pathlib.Path, name: str, encoding: Encoding, reasons: Mapping[str, str]):
        """reasons: why each filter dropped pairs."""
        self.directory, self.name, self.encoding, self.max_length = directory, name, encoding, encoding.max_length
        self.lengths = np.memmap(directory / _LENGTHS, np.int32, "r").reshape(-1, 2)
        self.counts: dict[str, int] = json.loads((directory / _COUNTS).read_text())
        self.reasons = reasons
        parts = sorted(path.parent for path in directory.glob("part-*/*/*/dataset_info.json"))
        from nmt_jax.data.prepared.records import Records  # late: imports TFDS, which translation does not need

        self._records = Records(parts)

    @property
    def parts(self) -> tuple[PreparedCorpus, ...]:
        """The prepared corpora that this consists of: itself; those of a `Mixture` are several."""
        return (self,)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitems__(self, indices: Indices) -> list[Pair]:
        """(source int32[S], target int32[T]) for each index; EOS ends the target and each of several sources.

        For sources that are not text see `SourceReader`.
        """
        source, target = self.encoding.dtypes
        return [
            (
                self.encoding.reader.load(record[_SOURCE_IDS], source),
                np.frombuffer(record[_TARGET_IDS], target).astype(np.int32),
            )
            for record in self._records.read(indices)
        ]

    def texts(self, indices: Indices) -> list[tuple[str, str]]:
        """The original (source, target) text for each index."""
        records = self._records.read(indices)
        return [(record[_SOURCE].decode("utf-8"), record[_TARGET].decode("utf-8")) for record in records]

    def sample(self, indices: Indices, alpha: float, seeds: np.ndarray) -> list[Pair]:
        """Like `__getitems__`, in random segmentations drawn with seeds uint32[len(indices), 2]: see `Vocab.sample`."""
        drawn = (self.encoding.ids(pair, alpha, row) for pair, row in zip(self.texts(indices), seeds, strict=True))
        return [(np.array(source, np.int32), np.array(target, np.int32)) for source, target in drawn]

    @property
    def report(self) -> str:
        """Summary in one line: numbers of pairs kept and skipped."""
        line = f"{self.name}: {self.counts['kept']:,} of {sum(self.counts.values()):,} pairs"
        reasons = {"too_long": f"longer than {self.max_length} tokens", "empty": "with an empty side", **self.reasons}
        skipped = ", ".join(f"{self.counts[kind]:,} {why}" for kind, why in reasons.items() if self.counts[kind])
        return f"{line}; skipped: {skipped}" if skipped else line


def _write(
    corpus: ParallelText, verdicts: Verdicts | None, encoding: Encoding, engine: Engine, directory: pathlib.Path
) -> None:
    """Writes records in parts, one per slice of the text, then joins their lengths and counts."""
    with tempfile.TemporaryDirectory(prefix=".text-", dir=directory) as scratch:
        slices = corpus.slices(PAIRS_A_PART if encoding.reader.only_text else ROWS_A_PART, pathlib.Path(scratch))
        work = functools.partial(_write_slice, encoding, verdicts, directory, f"preparing {corpus.name}")
        engine(work, slices, pathlib.Path(scratch))
    for unfinished in directory.glob(".*"):  # of workers that were killed
        shutil.rmtree(unfinished)
    counts: collections.Counter[str] = collections.Counter(kept=0, too_long=0, empty=0)
    with (directory / _LENGTHS).open("wb") as lengths:
        for part in sorted(directory.glob("part-*")):
            with (part / _LENGTHS).open("rb") as file:
                shutil.copyfileobj(file, lengths)
            counts.update(json.loads((part / _COUNTS).read_text()))
            for name in (_LENGTHS, _COUNTS):
                (part / name).unlink()
            if not any(part.iterdir()):
                part.rmdir()
    filtered = verdicts.counts if verdicts else {}  # these pairs are in no part
    if not counts["kept"]:
        raise UserError(
            f"{corpus.name}: no pair is left: {counts['too_long']} are longer than config.data.max_length = "
            f"{encoding.max_length} tokens and {counts['empty']} have an empty side"
            + "".join(f", {count} are dropped by the filter {name}" for name, count in filtered.items())
        )
    (directory / _COUNTS).write_text(json.dumps({**counts, **filtered}) + "\n")


def _write_slice(
    encoding: Encoding, verdicts: Verdicts | None, directory: pathlib.Path, label: str, pairs: Slice
) -> None:
    """Writes the records, lengths and counts of a slice of the text."""
    from nmt_jax.data.prepared.records import write_records

    counts = {"kept": 0, "too_long": 0, "empty": 0}
    with written_once(directory / f"part-{pairs.number:05d}") as folder:
        with (folder / _LENGTHS).open("wb") as lengths:
            kept = track(verdicts.kept(pairs) if verdicts else pairs, f"{label}, part {pairs.number + 1}", pairs.count)
            records = _encode(kept, encoding, counts, lengths)
            first = next(records, None)
            if first is not None:
                write_records(itertools.chain([first], records), folder)
        (folder / _COUNTS).write_text(json.dumps(counts))


def _encode(
    pairs: Iterable[tuple[str, str]], encoding: Encoding, counts: dict[str, int], lengths: io.BufferedWriter
) -> Iterator[list[str | bytes]]:
    """Yields the records to keep; also counts all pairs, and writes the lengths of those kept."""
    source_type, target_type = encoding.dtypes
    complete = _complete(pairs, encoding.num_sources, counts)
    for (source, target), (example, target_ids) in _encoded(complete, encoding):
        tokens = [*encoding.reader.lengths(example), len(target_ids)]
        ended = zip(tokens, (*encoding.reader.readers, None), strict=True)
        empty = any(length == 1 and not reader for length, reader in ended)  # nothing but EOS
        kind = "empty" if empty else "too_long" if max(tokens) > encoding.max_length else "kept"
        counts[kind] += 1
        if kind != "kept":
            continue
        lengths.write(np.array([max(tokens[:-1]), tokens[-1]], np.int32).tobytes())
        ids = np.array(target_ids, target_type).tobytes()
        yield [source, target, encoding.reader.store(example, source_type), ids]


def _complete(pairs: Iterable[tuple[str, str]], num_sources: int, counts: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Yields the pairs without an empty text; counts the others."""
    for source, target in pairs:
        if all(text.strip() for text in (*sources.split(source, num_sources), target)):
            yield source, target
        else:
            counts["empty"] += 1


def _encoded(
    pairs: Iterable[tuple[str, str]], encoding: Encoding
) -> Iterator[tuple[tuple[str, str], tuple[Any, list[int]]]]:
    """Yields each pair and what `Encoding.encode` makes of it; threads read files."""
    if encoding.reader.only_text:
        for pair in pairs:
            yield pair, encoding.encode(pair)
        return
    remaining = iter(pairs)
    with concurrent.futures.ThreadPoolExecutor() as threads:
        while ahead := list(itertools.islice(remaining, READ_AHEAD)):
            yield from zip(ahead, threads.map(encoding.encode, ahead), strict=True)
