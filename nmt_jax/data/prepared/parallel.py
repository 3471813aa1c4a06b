"""A prepared corpus: pairs of piece ids on the disk as ArrayRecord, written once through a TFDS builder.

Host memory does not grow with the corpus: pairs are read by index when a batch wants them; only their lengths are
mapped into memory.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import io
import itertools
import json
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow_datasets as tfds
from tensorflow_datasets.proto import tf_example_pb2

from nmt_jax.data.readers import sources
from nmt_jax.data.readers.corpora import Corpus, open_text
from nmt_jax.data.vocabulary.vocab import EOS, Vocab
from nmt_jax.errors import UserError
from nmt_jax.progress import track

FORMAT = 2  # raise it whenever what lies in a prepared folder changes
# The writer of TFDS holds what it writes in memory (and past 1 GB wants TensorFlow): a long corpus is written in parts.
PAIRS_A_PART = 1 << 17
_SPLIT = "pairs"

Pair = tuple[np.ndarray, np.ndarray]
Indices = Sequence[int] | np.ndarray


def prepare(data: Any, split: str, vocabs: tuple[Vocab, Vocab], max_unknown: int = 0) -> PreparedCorpus:
    """Encodes split "train", "dev" or "test" of `config.data` with (source, target) vocabularies, or finds it done.

    The first `max_unknown` words of a source that its vocabulary lacks are numbered past it, on both sides of the pair;
    see `Vocab.encode`.
    Pairs with an empty side or more than `data.max_length` pieces on a side (EOS included) are left out and counted; of
    several sources each is a side.
    The folder is named by the content, the vocabularies and both limits, and appears whole or not at all: several
    processes may prepare the same corpus at once. Raises UserError where no pair is left, or the disk is full.
    """
    corpus = open_text(data, split)
    num_sources = len(sources.languages(data.source))
    settings = [data.max_length, max_unknown]
    key = json.dumps([FORMAT, corpus.fingerprint(), *(vocab.fingerprint for vocab in vocabs), *settings])
    directory = cache_directory(data) / f"{split}-{hashlib.sha256(key.encode()).hexdigest()[:32]}"
    if not directory.exists():
        try:
            _write(corpus, vocabs, data.max_length, max_unknown, num_sources, directory)
        except OSError as error:
            raise UserError(
                f"{directory.parent}: cannot write the prepared corpus: {error.strerror or error}; "
                "name another folder with config.data.cache"
            ) from error
    return PreparedCorpus(directory, f"{split}: {corpus.name}", vocabs, data.max_length, max_unknown, num_sources)


def cache_directory(data: Any) -> pathlib.Path:
    """The folder of prepared corpora: `data.cache`, else $NMT_JAX_CACHE, else ~/.cache/nmt-jax."""
    return pathlib.Path(data.cache or os.environ.get("NMT_JAX_CACHE") or "~/.cache/nmt-jax").expanduser() / "corpora"


class PreparedCorpus:
    """Random access to the N pairs of a prepared corpus, in the order of the text.

    `lengths` int32[N, 2]: pieces of source (the longest of several) and target, EOS included, mapped from the disk;
    `max_length`: their bound.
    """

    def __init__(
        self,
        directory: pathlib.Path,
        name: str,
        vocabs: tuple[Vocab, Vocab],
        max_length: int,
        max_unknown: int,
        num_sources: int,
    ):
        self.directory, self.name, self.vocabs = directory, name, vocabs
        self.max_length, self.max_unknown, self.num_sources = max_length, max_unknown, num_sources
        self.lengths = np.memmap(directory / "lengths.int32", np.int32, "r").reshape(-1, 2)
        self.counts: dict[str, int] = json.loads((directory / "counts.json").read_text())
        parts = sorted(path.parent for path in directory.glob("part-*/*/*/dataset_info.json"))
        raw = tfds.decode.DeserializeMethod.RAW_BYTES  # TFDS would take five times as long to decode a record
        self._records = tfds.builder_from_directories(parts).as_data_source(_SPLIT, deserialize_method=raw)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitems__(self, indices: Indices) -> list[Pair]:
        """(source int32[S], target int32[T]) for each index, an EOS after each text; several sources in a row."""
        dtypes = [_id_dtype(vocab, self.max_unknown) for vocab in self.vocabs]
        return [
            (
                np.frombuffer(_content(record, "source_ids"), dtypes[0]).astype(np.int32),
                np.frombuffer(_content(record, "target_ids"), dtypes[1]).astype(np.int32),
            )
            for record in self._read(indices)
        ]

    def texts(self, indices: Indices) -> list[tuple[str, str]]:
        """(source, target) as they stood in the text, for each index."""
        return [
            (_content(record, "source").decode("utf-8"), _content(record, "target").decode("utf-8"))
            for record in self._read(indices)
        ]

    def sample(self, indices: Indices, alpha: float, seeds: np.ndarray) -> list[Pair]:
        """Like `__getitems__`, in random segmentations drawn with seeds uint32[len(indices), 2]: see `Vocab.sample`."""
        return [
            tuple(  # type: ignore[misc]
                np.array([*sources.encode(text, count, draw), EOS], np.int32)
                for vocab, text, count, seed in zip(self.vocabs, pair, (self.num_sources, 1), row, strict=True)
                for draw in [functools.partial(vocab.sample, alpha=alpha, seed=int(seed), unknown=unknown)]
            )
            for pair, row in zip(self.texts(indices), seeds, strict=True)
            for unknown in [self.vocabs[0].unknown(pair[0], self.max_unknown)]
        ]

    def _read(self, indices: Indices) -> Iterator[Any]:
        for record in self._records.__getitems__([int(i) for i in indices]):
            yield tf_example_pb2.Example.FromString(record).features.feature

    @property
    def report(self) -> str:
        """What was kept and what was left out, in one line."""
        kept, too_long, empty = (self.counts[key] for key in ("kept", "too_long", "empty"))
        line = f"{self.name}: {kept:,} of {kept + too_long + empty:,} pairs"
        left_out = [
            f"{count:,} {why}"
            for count, why in ((too_long, f"longer than {self.max_length} pieces"), (empty, "with an empty side"))
            if count
        ]
        return f"{line}; left out: {', '.join(left_out)}" if left_out else line


def _content(features: Any, name: str) -> bytes:
    return features[name].bytes_list.value[0]


def _id_dtype(vocab: Vocab, max_unknown: int) -> str:
    return "<u2" if len(vocab) + max_unknown <= 1 << 16 else "<i4"


def _write(
    corpus: Corpus,
    vocabs: tuple[Vocab, Vocab],
    max_length: int,
    max_unknown: int,
    num_sources: int,
    directory: pathlib.Path,
) -> None:
    """Writes the folder beside its place and moves it there; if another process was first, its folder stays."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    unfinished = pathlib.Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    try:
        counts = {"kept": 0, "too_long": 0, "empty": 0}
        with open(unfinished / "lengths.int32", "wb") as lengths:
            examples = _encode(corpus, vocabs, max_length, max_unknown, num_sources, counts, lengths)
            for part in itertools.count():
                first = next(examples, None)
                if first is None:
                    break
                rest = itertools.islice(examples, PAIRS_A_PART - 1)
                _write_part(itertools.chain([first], rest), unfinished / f"part-{part:05d}")
        if not counts["kept"]:
            raise UserError(
                f"{corpus.name}: no pair is left: {counts['too_long']} are longer than config.data.max_length = "
                f"{max_length} pieces and {counts['empty']} have an empty side"
            )
        (unfinished / "counts.json").write_text(json.dumps(counts) + "\n")
        unfinished.chmod(0o755)
        try:
            unfinished.rename(directory)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _encode(
    corpus: Corpus,
    vocabs: tuple[Vocab, Vocab],
    max_length: int,
    max_unknown: int,
    num_sources: int,
    counts: dict[str, int],
    lengths: io.BufferedWriter,
) -> Iterator[dict[str, Any]]:
    """The examples to keep; counts all pairs and writes the lengths of the kept ones on the way."""
    dtypes = [_id_dtype(vocab, max_unknown) for vocab in vocabs]
    for source, target in track(corpus, f"preparing {corpus.name}"):
        unknown = vocabs[0].unknown(source, max_unknown)
        source_ids, target_ids = (
            [*sources.encode(text, count, functools.partial(vocab.encode, unknown=unknown)), EOS]
            for vocab, text, count in zip(vocabs, (source, target), (num_sources, 1), strict=True)
        )
        pieces = [*sources.lengths(source_ids), len(target_ids)]
        if not all(text.strip() for text in (*sources.split(source, num_sources), target)) or min(pieces) == 1:
            counts["empty"] += 1
            continue
        if max(pieces) > max_length:
            counts["too_long"] += 1
            continue
        counts["kept"] += 1
        lengths.write(np.array([max(pieces[:-1]), pieces[-1]], np.int32).tobytes())
        yield {
            "source": source,
            "target": target,
            "source_ids": np.array(source_ids, dtypes[0]).tobytes(),
            "target_ids": np.array(target_ids, dtypes[1]).tobytes(),
        }


class PreparedPairs(tfds.core.GeneratorBasedBuilder):
    """Pairs of sentences as text and as piece ids, these as bytes: TFDS's integers take longer to read."""

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
    with contextlib.redirect_stdout(io.StringIO()):  # TFDS announces itself on stdout, which belongs to the data
        PreparedPairs(examples, directory).download_and_prepare(download_config=without_network)
