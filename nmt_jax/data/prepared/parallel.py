"""Parallel corpora as token ids on disk, written once in the ArrayRecord format through a TFDS builder.

Host memory does not grow with the corpus: pairs are read by index when a batch needs them; only their lengths are
memory-mapped.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import itertools
import json
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow_datasets as tfds
from tensorflow_datasets.proto import tf_example_pb2

from nmt_jax.data.prepared.cache import cache_directory, cached_folder
from nmt_jax.data.readers import sources
from nmt_jax.data.readers.parallel_text import ParallelText, open_text
from nmt_jax.data.vocabulary.vocab import EOS, Vocab
from nmt_jax.errors import UserError
from nmt_jax.progress import track

FORMAT = 2  # increase it whenever the content of a prepared folder changes
# The TFDS writer holds its output in memory (and needs TensorFlow beyond 1 GB), so long corpora are written in parts.
PAIRS_A_PART = 1 << 17
_SPLIT = "pairs"

Pair = tuple[np.ndarray, np.ndarray]
Indices = Sequence[int] | np.ndarray


def prepare(data: Any, split: str, vocabs: tuple[Vocab, Vocab], max_unknown: int = 0) -> PreparedCorpus:
    """Split "train", "dev" or "test" of `config.data` as token ids, from the cache if it was prepared before.

    vocabs: of source and target. The first `max_unknown` source words outside the vocabulary get ids past its end, on
    both sides of the pair; see `Vocab.encode`. Pairs with an empty side, or with more than `data.max_length` tokens on
    a side (EOS included), are skipped and counted; each of several sources is a side. Raises UserError if no pair is
    left, or if the cache cannot be written.
    """
    corpus = open_text(data, split)
    encoding = Encoding(vocabs, data.max_length, max_unknown, len(sources.languages(data.source)))
    key = [FORMAT, corpus.fingerprint(), *(vocab.fingerprint for vocab in vocabs), data.max_length, max_unknown]
    directory = cached_folder(cache_directory(data), split, key, functools.partial(_write, corpus, encoding))
    return PreparedCorpus(directory, f"{split}: {corpus.name}", encoding)


@dataclasses.dataclass(frozen=True)
class Encoding:
    """How pairs become token ids: the vocabularies of source and target, and the arguments of `prepare`."""

    vocabs: tuple[Vocab, Vocab]
    max_length: int
    max_unknown: int
    num_sources: int

    @property
    def dtypes(self) -> list[str]:
        """Types of the ids of source and target on disk."""
        return ["<u2" if len(vocab) + self.max_unknown <= 1 << 16 else "<i4" for vocab in self.vocabs]

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

    `lengths` int32[N, 2]: tokens of the source (the longest of several) and of the target, EOS included;
    `max_length`: their upper bound.
    """

    def __init__(self, directory: pathlib.Path, name: str, encoding: Encoding):
        self.directory, self.name, self.encoding, self.max_length = directory, name, encoding, encoding.max_length
        self.lengths = np.memmap(directory / "lengths.int32", np.int32, "r").reshape(-1, 2)
        self.counts: dict[str, int] = json.loads((directory / "counts.json").read_text())
        parts = sorted(path.parent for path in directory.glob("part-*/*/*/dataset_info.json"))
        raw = tfds.decode.DeserializeMethod.RAW_BYTES  # decoding a record with TFDS would take five times as long
        self._records = tfds.builder_from_directories(parts).as_data_source(_SPLIT, deserialize_method=raw)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitems__(self, indices: Indices) -> list[Pair]:
        """(source int32[S], target int32[T]) for each index; EOS ends the target and each of several sources."""
        source, target = self.encoding.dtypes
        return [
            (
                np.frombuffer(_content(record, "source_ids"), source).astype(np.int32),
                np.frombuffer(_content(record, "target_ids"), target).astype(np.int32),
            )
            for record in self._read(indices)
        ]

    def texts(self, indices: Indices) -> list[tuple[str, str]]:
        """The original (source, target) text for each index."""
        return [
            (_content(record, "source").decode("utf-8"), _content(record, "target").decode("utf-8"))
            for record in self._read(indices)
        ]

    def sample(self, indices: Indices, alpha: float, seeds: np.ndarray) -> list[Pair]:
        """Like `__getitems__`, in random segmentations drawn with seeds uint32[len(indices), 2]: see `Vocab.sample`."""
        drawn = (self.encoding.ids(pair, alpha, row) for pair, row in zip(self.texts(indices), seeds, strict=True))
        return [(np.array(source, np.int32), np.array(target, np.int32)) for source, target in drawn]

    def _read(self, indices: Indices) -> Iterator[Any]:
        for record in self._records.__getitems__([int(i) for i in indices]):
            yield tf_example_pb2.Example.FromString(record).features.feature

    @property
    def report(self) -> str:
        """Summary in one line: numbers of pairs kept and skipped."""
        kept, too_long, empty = (self.counts[key] for key in ("kept", "too_long", "empty"))
        line = f"{self.name}: {kept:,} of {kept + too_long + empty:,} pairs"
        reasons = ((too_long, f"longer than {self.max_length} tokens"), (empty, "with an empty side"))
        skipped = ", ".join(f"{count:,} {why}" for count, why in reasons if count)
        return f"{line}; skipped: {skipped}" if skipped else line


def _content(features: Any, name: str) -> bytes:
    return features[name].bytes_list.value[0]


def _write(corpus: ParallelText, encoding: Encoding, directory: pathlib.Path) -> None:
    """Writes lengths, records in parts, and counts."""
    counts = {"kept": 0, "too_long": 0, "empty": 0}
    with open(directory / "lengths.int32", "wb") as lengths:
        examples = _encode(corpus, encoding, counts, lengths)
        for part in itertools.count():
            first = next(examples, None)
            if first is None:
                break
            rest = itertools.islice(examples, PAIRS_A_PART - 1)
            _write_part(itertools.chain([first], rest), directory / f"part-{part:05d}")
    if not counts["kept"]:
        raise UserError(
            f"{corpus.name}: no pair is left: {counts['too_long']} are longer than config.data.max_length = "
            f"{encoding.max_length} tokens and {counts['empty']} have an empty side"
        )
    (directory / "counts.json").write_text(json.dumps(counts) + "\n")


def _encode(
    corpus: ParallelText, encoding: Encoding, counts: dict[str, int], lengths: io.BufferedWriter
) -> Iterator[dict[str, Any]]:
    """Yields the examples to keep; also counts all pairs, and writes the lengths of those kept."""
    dtypes = encoding.dtypes
    for source, target in track(corpus, f"preparing {corpus.name}"):
        source_ids, target_ids = encoding.ids((source, target))
        tokens = [*sources.lengths(source_ids), len(target_ids)]
        texts = (*sources.split(source, encoding.num_sources), target)
        empty = not all(text.strip() for text in texts) or min(tokens) == 1
        kind = "empty" if empty else "too_long" if max(tokens) > encoding.max_length else "kept"
        counts[kind] += 1
        if kind != "kept":
            continue
        lengths.write(np.array([max(tokens[:-1]), tokens[-1]], np.int32).tobytes())
        yield {
            "source": source,
            "target": target,
            "source_ids": np.array(source_ids, dtypes[0]).tobytes(),
            "target_ids": np.array(target_ids, dtypes[1]).tobytes(),
        }


class PreparedPairs(tfds.core.GeneratorBasedBuilder):
    """Sentence pairs as text and as token ids; the ids are bytes, because TFDS integers take longer to read."""

    VERSION = tfds.core.Version("1.0.0")

    def __init__(self, examples: Iterable[dict[str, Any]], data_dir: pathlib.Path):
        self.examples = examples
        super().__init__(data_dir=data_dir, file_format="array_record")

    def _info(self) -> tfds.core.DatasetInfo:
        texts = {name: tfds.features.Text() for name in ("source", "target", "source_ids", "target_ids")}
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(texts), disable_shuffling=True)

    def _split_generators(self, dl_manager: Any) -> dict[str, Iterator[tuple[int, dict[str, Any]]]]:
        return {_SPLIT: self._generate_examples()}

    def _generate_examples(self) -> Iterator[tuple[int, dict[str, Any]]]:
        yield from enumerate(self.examples)


def _write_part(examples: Iterable[dict[str, Any]], directory: pathlib.Path) -> None:
    tfds.display_progress_bar(False)
    without_network = tfds.download.DownloadConfig(try_download_gcs=False)
    with contextlib.redirect_stdout(io.StringIO()):  # TFDS prints to stdout, which belongs to the data
        PreparedPairs(examples, directory).download_and_prepare(download_config=without_network)
